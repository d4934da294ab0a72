package admission

import (
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Certificate is what webhooks are served with.
type Certificate struct {
	// Directory is where the Secret is mounted, as the files tls.crt and tls.key.
	Directory string
	// Secret has the certificate. It exists, maybe without content.
	Secret types.NamespacedName
	// Service is the name, in the namespace of the Secret, by which the API server calls.
	Service string
}

// Configuration names an object of the cluster that names webhooks, and has to name the
// authority that signed their certificate.
type Configuration struct {
	kind rotator.WebhookType
	name string
}

// Rotate keeps a certificate of our own in the Secret, and its authority in the
// configurations. It is renewed long before it ends, signed by the same authority. An
// authority that ends is followed by a new one, and both are believed until it has ended:
// in neither case does a request fail. The channel is closed when the certificate can be
// served.
func Rotate(mgr manager.Manager, c Certificate, configurations []Configuration) (ready <-chan struct{}, err error) {
	served := make(chan struct{})
	var webhooks []rotator.WebhookInfo
	for _, configuration := range configurations {
		webhooks = append(webhooks, rotator.WebhookInfo{Name: configuration.name, Type: configuration.kind})
	}
	err = rotator.AddRotator(overlapping{mgr, c.Secret}, &rotator.CertRotator{
		SecretKey:      c.Secret,
		CertDir:        c.Directory,
		CAName:         c.Service,
		CAOrganization: c.Service,
		DNSName:        fmt.Sprintf("%s.%s.svc", c.Service, c.Secret.Namespace),
		IsReady:        served,
		Webhooks:       webhooks,
		FieldOwner:     c.Service,
	})
	if err != nil {
		return nil, fmt.Errorf("adding the rotation of the webhooks' certificate: %w", err)
	}
	return served, nil
}
