package localcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity outlives any run of a cluster; clocks that differ within a machine do not exist, but a test may
// travel in time.
const validity = 365 * 24 * time.Hour

// authority is the certificate authority of one cluster. It signs the serving certificate of all of the
// cluster's programs and a client certificate per user.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "localcluster"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority back: %w", err)
	}
	return &authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// serving signs a certificate for programs that listen at host.
func (a *authority) serving(host string) (certificate, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "localcluster"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.ParseIP(host)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client signs a certificate that makes its holder this user of these groups for the API server.
func (a *authority) client(user string, groups ...string) (certificate, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(template *x509.Certificate) (certificate, key []byte, err error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = a.certificate.NotBefore
	template.NotAfter = a.certificate.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	private, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return encode("CERTIFICATE", der), key, nil
}

// newKey makes a private key and its PEM form.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return private, encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeCertificates puts the files that the cluster's programs read into its directory.
func (c *Cluster) writeCertificates() error {
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	c.authority = authority
	// By it the API server shows aggregated ones who it is. It is another authority, because whoever it signs
	// for may speak for any user.
	frontProxy, err := newAuthority()
	if err != nil {
		return err
	}
	proxy, proxyKey, err := frontProxy.client("front-proxy-client")
	if err != nil {
		return err
	}
	serving, servingKey, err := authority.serving(c.block.host())
	if err != nil {
		return err
	}
	_, accountKey, err := newKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt": authority.pem, "front-proxy-ca.crt": frontProxy.pem,
		"front-proxy-client.crt": proxy, "front-proxy-client.key": proxyKey,
		"serving.crt": serving, "serving.key": servingKey, "service-account.key": accountKey,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the certificates: %w", err)
		}
	}
	return nil
}
