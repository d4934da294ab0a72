package child

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Bounds of a bundle, beyond which a source is taken for a mistake.
const (
	largestBundle    = 10 << 20
	mostCertificates = 1000
)

// Source is one entry of a ConfigMap with certificate authorities.
type Source struct {
	// Name says where it is, for errors.
	Name string
	Data string
	// Foreign is that the author of the server may not read it, so that no error quotes it.
	Foreign bool
}

// Bundle joins the certificates of the sources, in their order. Whatever else is in them
// is left out; an entry that has data and no certificate is an error, and so is a bundle
// without any.
func Bundle(sources []Source) ([]byte, error) {
	var all [][]byte
	size := 0
	for _, source := range sources {
		if size += len(source.Data); size > largestBundle {
			return nil, fmt.Errorf("the certificate authorities are more than %d MiB: leave out what the server does not need", largestBundle>>20)
		}
		found, err := certificates(source)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); len(all) > mostCertificates {
			return nil, fmt.Errorf("there are more than %d certificate authorities: leave out those that the server does not need", mostCertificates)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no certificate in any source of certificate authorities")
	}
	return bytes.Join(all, []byte("\n")), nil
}

func certificates(source Source) ([][]byte, error) {
	var found [][]byte
	rest := []byte(source.Data)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		switch _, err := x509.ParseCertificate(block.Bytes); {
		case err != nil && source.Foreign:
			return nil, fmt.Errorf("certificate %d in %s cannot be read: correct it there", len(found)+1, source.Name)
		case err != nil:
			return nil, fmt.Errorf("certificate %d in %s cannot be read: %w", len(found)+1, source.Name, err)
		}
		found = append(found, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	if len(found) == 0 && strings.TrimSpace(source.Data) != "" {
		return nil, fmt.Errorf("%s has no certificate in PEM form", source.Name)
	}
	return found, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
