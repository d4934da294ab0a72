package admission

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Sender knows where the pods of variants go.
type Sender interface {
	// Send is the spec of a pod that says where it goes; nil leaves the pod as it is, and
	// why says why. A pod of no variant is left with nothing to say.
	Send(ctx context.Context, pod *corev1.Pod) (sent *corev1.PodSpec, why string, err error)
}

// PodConfigurations are where the webhook of pods is named.
func PodConfigurations(webhookConfiguration string) []Configuration {
	return []Configuration{{rotator.Mutating, webhookConfiguration}}
}

// Pods serves what fills in where the pods of variants go.
func Pods(mgr manager.Manager, sender Sender) error {
	if err := ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(pods{sender}).Complete(); err != nil {
		return fmt.Errorf("adding the webhook of pods: %w", err)
	}
	return nil
}

type pods struct{ sender Sender }

var _ admission.Defaulter[*corev1.Pod] = pods{}

// Default implements admission.Defaulter. Whatever goes wrong, the pod is made as it is.
func (w pods) Default(ctx context.Context, pod *corev1.Pod) error {
	asked := *pod
	if request, err := admission.RequestFromContext(ctx); err == nil {
		asked.Namespace = request.Namespace
	}
	sent, why, err := w.sender.Send(ctx, &asked)
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "The pod is admitted unchanged")
	case sent != nil:
		pod.Spec = *sent
	case why != "":
		log.FromContext(ctx).V(1).Info("The pod is admitted unchanged", "why", why)
	}
	return nil
}
