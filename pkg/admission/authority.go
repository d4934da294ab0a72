package admission

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// authorityEntry is where the rotator keeps the authorities in its Secret. It signs with
// the first and puts all of them into the configurations.
const authorityEntry = "ca.crt"

// overlapping is a manager whose client never takes a valid authority out of the Secret.
// The rotator replaces an authority at once, and until the mounted certificate follows,
// which a kubelet takes a minute for, nobody would believe what is served.
type overlapping struct {
	manager.Manager
	secret types.NamespacedName
}

// GetClient implements manager.Manager.
func (o overlapping) GetClient() client.Client {
	return keeping{o.Manager.GetClient(), o.GetAPIReader(), o.secret}
}

// keeping is a client that keeps what the Secret believes in.
type keeping struct {
	client.Client
	live   client.Reader
	secret types.NamespacedName
}

// Update implements client.Client.
func (k keeping) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if secret, ok := object.(*corev1.Secret); ok && client.ObjectKeyFromObject(secret) == k.secret {
		var before corev1.Secret
		if err := k.live.Get(ctx, k.secret, &before); err != nil {
			return fmt.Errorf("reading the authorities in the Secret %s: %w", k.secret, err)
		}
		secret.Data[authorityEntry] = authorities(secret.Data[authorityEntry], before.Data[authorityEntry], time.Now())
	}
	return k.Client.Update(ctx, object, options...)
}

// authorities are the fresh ones, and those of before that have not ended.
func authorities(fresh, before []byte, now time.Time) []byte {
	all := bytes.Clone(fresh)
	for rest := before; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !now.Before(certificate.NotAfter) || bytes.Contains(all, pem.EncodeToMemory(block)) {
			continue
		}
		all = append(all, pem.EncodeToMemory(block)...)
	}
}
