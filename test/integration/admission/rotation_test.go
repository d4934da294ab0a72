package admission_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// signer is a certificate with its key.
type signer struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

// soon is an end that the manager does not wait for: it renews 90 days before.
func soon() time.Time { return time.Now().Add(30 * 24 * time.Hour) }

// issue makes a certificate that ends soon, signed by an authority, or by itself.
func issue(t *testing.T, by *signer, name string) signer {
	t.Helper()
	return issueUntil(t, soon(), by, name)
}

func issueUntil(t *testing.T, end time.Time, by *signer, name string) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if by == nil {
		template.IsCA, template.ExtKeyUsage, template.KeyUsage = true, nil, template.KeyUsage|x509.KeyUsageCertSign
		by = &signer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return signer{certificate, key}
}

func (s signer) certificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
}

func (s signer) keyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(s.key)})
}

func kept(t *testing.T) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: secret}}
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	return s
}

// first is the first certificate of an entry.
func first(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return certificate
}

// served is the certificate that a manager serves now.
func served(t *testing.T, address string) *x509.Certificate {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // #nosec G402: what is served is what is asked
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// follows waits until the manager serves a certificate that it made after this one, which
// ends soon, and returns its Secret.
func follows(t *testing.T, old *x509.Certificate) *corev1.Secret {
	t.Helper()
	var s *corev1.Secret
	conditiontest.Eventually(t, patience, "a certificate that lasts is served", func() (string, bool) {
		s = kept(t)
		next, now := first(t, s.Data["tls.crt"]), served(t, webhooks)
		return fmt.Sprintf("kept until %s, served until %s", next.NotAfter, now.NotAfter), !next.Equal(old) && now.Equal(next) && now.NotAfter.After(soon())
	})
	return s
}

// stream asks for what the webhook refuses, again and again. The API server stores what
// nobody answers for, so that an answer that is missing shows.
type stream struct {
	answered atomic.Int64
	failed   atomic.Pointer[string]
}

func ask(t *testing.T) *stream {
	t.Helper()
	namespace := space(t, nil)
	create(t, variant(namespace, "first", "server"))
	listen(t).answers(t, variant(namespace, "second", "server"), shared)
	s := &stream{}
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := api.Create(t.Context(), variant(namespace, "second", "server"), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), shared) {
				text := fmt.Sprint(err)
				s.failed.CompareAndSwap(nil, &text)
				return
			}
			s.answered.Add(1)
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	return s
}

// more waits for further answers, and that none was missing.
func (s *stream) more(t *testing.T) {
	t.Helper()
	enough := s.answered.Load() + 20
	conditiontest.Eventually(t, patience, "further answers", func() (string, bool) {
		if failed := s.failed.Load(); failed != nil {
			require.Failf(t, "a request was not answered by the webhook", "after %d: %s", s.answered.Load(), *failed)
		}
		return fmt.Sprint(s.answered.Load()), s.answered.Load() >= enough
	})
}

// A certificate and an authority that end soon are replaced while requests come, and none
// of them fails.
func TestRotationWithoutAFailedRequest(t *testing.T) {
	requests := ask(t)
	requests.more(t)

	before := kept(t)
	key, _ := pem.Decode(before.Data["ca.key"])
	signing, err := x509.ParsePKCS1PrivateKey(key.Bytes)
	require.NoError(t, err)
	authority := &signer{first(t, before.Data["ca.crt"]), signing}
	ending := issue(t, authority, service+"."+home+".svc")
	edit := before.DeepCopy()
	edit.Data["tls.crt"], edit.Data["tls.key"] = ending.certificatePEM(), ending.keyPEM()
	require.NoError(t, api.Update(t.Context(), edit))
	after := follows(t, ending.certificate)
	assert.Equal(t, string(before.Data["ca.crt"]), string(after.Data["ca.crt"]), "its authority lasts")
	requests.more(t)

	other := issue(t, nil, service)
	edit = after.DeepCopy()
	edit.Data["ca.crt"], edit.Data["ca.key"] = append(other.certificatePEM(), after.Data["ca.crt"]...), other.keyPEM()
	require.NoError(t, api.Update(t.Context(), edit))
	last := follows(t, first(t, after.Data["tls.crt"]))
	assert.NotEqual(t, other.certificate.Raw, first(t, last.Data["ca.crt"]).Raw, "a new authority")
	assert.True(t, strings.HasSuffix(string(last.Data["ca.crt"]), string(edit.Data["ca.crt"])), "those of before are believed until they end")
	requests.more(t)
	t.Logf("%d requests were answered", requests.answered.Load())
}

// A certificate that has ended, as after a long time without a manager, is replaced at once. Until then
// requests are stored as if nobody served them.
func TestACertificateThatHasEnded(t *testing.T) {
	before := kept(t)
	key, _ := pem.Decode(before.Data["ca.key"])
	signing, err := x509.ParsePKCS1PrivateKey(key.Bytes)
	require.NoError(t, err)
	authority := &signer{first(t, before.Data["ca.crt"]), signing}
	namespace := space(t, nil)
	for name, by := range map[string]*signer{"its authority lasts": authority, "another one's": nil} {
		t.Run(name, func(t *testing.T) {
			ended := issueUntil(t, time.Now().Add(-time.Minute), by, service+"."+home+".svc")
			edit := kept(t)
			edit.Data["tls.crt"], edit.Data["tls.key"] = ended.certificatePEM(), ended.keyPEM()
			require.NoError(t, api.Update(t.Context(), edit))
			require.NoError(t, api.Create(t.Context(), variant(namespace, "meanwhile", "server"), client.DryRunAll))
			follows(t, ended.certificate)
			requests := ask(t)
			requests.more(t)
		})
	}
}

// A certificate that somebody else keeps is served as it is mounted, also when it changes,
// by a manager without any right to Secrets or to what names webhooks.
func TestAMountedCertificate(t *testing.T) {
	authority := issue(t, nil, service)
	directory := t.TempDir()
	mount := func() signer {
		next := issue(t, &authority, service+"."+home+".svc")
		for file, text := range map[string][]byte{"tls.crt": next.certificatePEM(), "tls.key": next.keyPEM()} {
			require.NoError(t, os.WriteFile(filepath.Join(directory, "new"), text, 0o600))
			require.NoError(t, os.Rename(filepath.Join(directory, "new"), filepath.Join(directory, file)))
		}
		return next
	}
	first := mount()
	address, err := cluster.FreeAddress()
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	process, err := managerProcess(t.Context(), "mounted", withoutWebhookRights(t), "--controller-instance=mounted",
		"--webhook-host="+host, "--webhook-port="+port, "--webhook-cert-path="+directory, "--webhook-cert-secret=", "--webhook-validate-variants")
	require.NoError(t, err)
	require.NoError(t, cluster.StartProcess(t.Context(), process))
	t.Cleanup(func() { require.NoError(t, cluster.Terminate("mounted")) })
	assert.Equal(t, first.certificate.Raw, served(t, address).Raw)
	second := mount()
	conditiontest.Eventually(t, patience, "the other certificate is served", func() (string, bool) {
		now := served(t, address)
		return now.NotAfter.String(), now.Equal(second.certificate)
	})
	text, err := os.ReadFile(filepath.Join(cluster.Logs(), "mounted.log"))
	require.NoError(t, err)
	assert.NotContains(t, string(text), " cannot ", "it asks for nothing that it may not have")
}

// withoutWebhookRights is a service account with all rights of the manager but those that
// come with the webhooks.
func withoutWebhookRights(t *testing.T) string {
	t.Helper()
	const name = "without-webhooks"
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: name}}
	ours := func(meta metav1.ObjectMeta, of []rbacv1.Subject) bool {
		return !strings.Contains(meta.Name, "webhook") && slices.ContainsFunc(of, func(s rbacv1.Subject) bool { return s.Name == account })
	}
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}})
	var everywhere rbacv1.ClusterRoleBindingList
	require.NoError(t, api.List(t.Context(), &everywhere))
	for _, b := range everywhere.Items {
		if ours(b.ObjectMeta, b.Subjects) {
			create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "test-" + b.Name}, RoleRef: b.RoleRef, Subjects: subjects})
		}
	}
	var atHome rbacv1.RoleBindingList
	require.NoError(t, api.List(t.Context(), &atHome, client.InNamespace(home)))
	for _, b := range atHome.Items {
		if ours(b.ObjectMeta, b.Subjects) {
			create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "test-" + b.Name}, RoleRef: b.RoleRef, Subjects: subjects})
		}
	}
	return name
}
