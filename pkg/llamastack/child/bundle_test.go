package child_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
)

// authority is a new certificate in PEM form.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestBundle(t *testing.T) {
	one, two := authority(t), authority(t)
	key := "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	got, err := child.Bundle([]child.Source{{Name: "a", Data: "text\n" + one + key}, {Name: "blank", Data: " \n"}, {Name: "b", Data: two}})
	require.NoError(t, err)
	assert.Equal(t, one+"\n"+two, string(got), "certificates and nothing else, in their order")

	for name, c := range map[string]struct {
		sources []child.Source
		want    string
	}{
		"no source":      {nil, "there is no certificate in any source"},
		"only blanks":    {[]child.Source{{Name: "a", Data: "\n"}}, "there is no certificate in any source"},
		"no certificate": {[]child.Source{{Name: "a", Data: one}, {Name: "b", Data: key}}, "b has no certificate in PEM form"},
		"a broken one":   {[]child.Source{{Name: "a", Data: one + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}}, "certificate 2 in a cannot be read"},
		"too large":      {[]child.Source{{Name: "a", Data: strings.Repeat(" ", 11<<20)}}, "more than 10 MiB"},
		"too many":       {[]child.Source{{Name: "a", Data: strings.Repeat(one, 1001)}}, "more than 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := child.Bundle(c.sources)
			assert.ErrorContains(t, err, c.want)
		})
	}
}
