package demo

import (
	"context"
	"net"
	"path/filepath"
)

// certificateSecret is what the manager's webhooks are served with.
const certificateSecret = "workload-variant-autoscaler-webhook-cert"

// webhookSettings install the manager's webhooks and are its settings of them: where they
// are, and which of them it serves.
func (s *stack) webhookSettings(ctx context.Context) ([]string, error) {
	address, err := s.cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	paths := []string{filepath.Join(s.plan.manifests, "webhook")}
	if s.plan.LlamaStack {
		paths = append(paths, filepath.Join(s.plan.manifests, "llamastack"))
	}
	if err := s.cluster.ApplyWebhooks(ctx, address, paths...); err != nil {
		return nil, err
	}
	directory := filepath.Join(filepath.Dir(s.cluster.Kubeconfig()), "webhook-cert")
	// Not with ctx: as long as the manager runs.
	if err := s.cluster.MountSecret(s.emulating, systemNamespace, certificateSecret, directory); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return []string{
		"WEBHOOK_HOST=" + host, "WEBHOOK_PORT=" + port, "WEBHOOK_CERT_PATH=" + directory,
		"WEBHOOK_VALIDATE_VARIANTS=true", "WEBHOOK_PLACE_PODS=true",
	}, nil
}
