package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// authority is a certificate that ends at an instant, in PEM form.
func authority(t *testing.T, ends time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestAuthoritiesAreKeptUntilTheyEnd(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fresh, valid, other, ended := authority(t, now.Add(time.Hour)), authority(t, now.Add(time.Second)), authority(t, now.Add(time.Minute)), authority(t, now)
	for name, c := range map[string]struct{ before, want string }{
		"there was none":              {"", fresh},
		"one follows another":         {valid, fresh + valid},
		"several are kept, in order":  {other + valid, fresh + other + valid},
		"one that has ended goes":     {valid + ended, fresh + valid},
		"the same one is there once":  {fresh + valid, fresh + valid},
		"what is no certificate goes": {"nonsense\n" + valid, fresh + valid},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, string(authorities([]byte(fresh), []byte(c.before), now)))
		})
	}
}

// The authority that is in the Secret stays in it when another takes its place; other
// Secrets are written as they are.
func TestTheSecretKeepsItsAuthority(t *testing.T) {
	ours := types.NamespacedName{Namespace: "home", Name: "cert"}
	fresh, valid := authority(t, time.Now().Add(time.Hour)), authority(t, time.Now().Add(time.Hour))
	secret := func(name, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ours.Namespace, Name: name}, Data: map[string][]byte{authorityEntry: []byte(text)}}
	}
	api := fake.NewClientBuilder().WithObjects(secret("cert", valid), secret("other", valid)).Build()
	for name, want := range map[string]string{"cert": fresh + valid, "other": fresh} {
		require.NoError(t, keeping{api, api, ours}.Update(t.Context(), secret(name, fresh)))
		got := &corev1.Secret{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: ours.Namespace, Name: name}, got))
		assert.Equal(t, want, string(got.Data[authorityEntry]), name)
	}
}
