package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/scale"
	"llmd.ai/workload-variant-autoscaler/pkg/admission"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/controller"
)

// webhooks are those of one kind of objects.
type webhooks struct {
	// configurations are where the API server finds them.
	configurations []admission.Configuration
	// start serves them, once there is a certificate.
	start func() error
}

// knowledge answers the webhooks from what the controller and the scale client know.
type knowledge struct {
	*controller.Controller
	*scale.Client
}

// variantWebhooks are those of VariantAutoscaling that are wanted.
func variantWebhooks(mgr ctrl.Manager, c config.Config, known knowledge) []webhooks {
	var wanted []webhooks
	if c.Webhook.ValidateVariants {
		wanted = append(wanted, webhooks{
			admission.VariantConfigurations(c.Webhook.VariantsConfiguration),
			func() error { admission.Variants(mgr, known); return nil },
		})
	}
	if c.Webhook.PlacePods {
		wanted = append(wanted, webhooks{
			admission.PodConfigurations(c.Webhook.PodsConfiguration),
			func() error { return admission.Pods(mgr, known) },
		})
	}
	return wanted
}

// addWebhooks serves webhooks with a certificate of our own, or the one that is mounted.
func addWebhooks(mgr ctrl.Manager, c config.Config, wanted []webhooks) error {
	if len(wanted) == 0 {
		return nil
	}
	var serving atomic.Bool
	ready := func(request *http.Request) error {
		if !serving.Load() {
			return errors.New("the certificate of the webhooks is not there yet")
		}
		return mgr.GetWebhookServer().StartedChecker()(request)
	}
	if err := mgr.AddReadyzCheck("webhooks", ready); err != nil {
		return fmt.Errorf("adding the readiness check of the webhooks: %w", err)
	}
	start := func() error {
		for _, w := range wanted {
			if err := w.start(); err != nil {
				return err
			}
		}
		serving.Store(true)
		return nil
	}
	if c.Webhook.CertSecret == "" {
		return start()
	}
	var configurations []admission.Configuration
	for _, w := range wanted {
		configurations = append(configurations, w.configurations...)
	}
	rotated, err := admission.Rotate(mgr, admission.Certificate{
		Directory: c.Webhook.CertPath, Service: c.Webhook.Service,
		Secret: types.NamespacedName{Namespace: c.PodNamespace, Name: c.Webhook.CertSecret},
	}, configurations)
	if err != nil {
		return err
	}
	return mgr.Add(everywhere(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-rotated:
			return start()
		}
	}))
}

// everywhere runs whether or not the manager leads.
type everywhere func(context.Context) error

var _ manager.LeaderElectionRunnable = everywhere(nil)

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }
