package admission

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
)

// Cluster is what the validation of VariantAutoscaling asks about the cluster.
type Cluster interface {
	// Handles reports whether an object is one of those that this manager handles.
	Handles(object client.Object) bool
	// Around is what there is beside an object, without Scalable.
	Around(ctx context.Context, v *v1alpha1.VariantAutoscaling) (review.Surroundings, error)
	// Scalable reports whether objects of a kind can be scaled, if that is known.
	Scalable(gvk schema.GroupVersionKind) (scalable, known bool)
}

// VariantConfigurations are where the webhook of VariantAutoscaling is named.
func VariantConfigurations(webhookConfiguration string) []Configuration {
	return []Configuration{{rotator.Validating, webhookConfiguration}}
}

// Variants serves the validation of VariantAutoscaling.
func Variants(mgr manager.Manager, cluster Cluster) error {
	err := ctrl.NewWebhookManagedBy(mgr, &v1alpha1.VariantAutoscaling{}).WithValidator(&variants{cluster}).Complete()
	if err != nil {
		return fmt.Errorf("adding the webhook of VariantAutoscaling: %w", err)
	}
	return nil
}

// variants checks objects against what there is beside them. Objects of another
// controller are passed over: that one checks them.
type variants struct{ cluster Cluster }

var _ admission.Validator[*v1alpha1.VariantAutoscaling] = &variants{}

// ValidateCreate implements admission.Validator.
func (w *variants) ValidateCreate(ctx context.Context, v *v1alpha1.VariantAutoscaling) (admission.Warnings, error) {
	return w.review(ctx, v, func(around review.Surroundings) ([]error, []string) { return review.Object(v, around) })
}

// ValidateUpdate implements admission.Validator.
func (w *variants) ValidateUpdate(ctx context.Context, old, v *v1alpha1.VariantAutoscaling) (admission.Warnings, error) {
	if v.DeletionTimestamp != nil {
		return nil, nil // whoever takes a finalizer away may
	}
	if !w.cluster.Handles(old) {
		return w.ValidateCreate(ctx, v) // it becomes ours
	}
	return w.review(ctx, v, func(around review.Surroundings) ([]error, []string) { return review.Change(old, v, around) })
}

// ValidateDelete implements admission.Validator.
func (w *variants) ValidateDelete(context.Context, *v1alpha1.VariantAutoscaling) (admission.Warnings, error) {
	return nil, nil
}

func (w *variants) review(ctx context.Context, v *v1alpha1.VariantAutoscaling, of func(review.Surroundings) ([]error, []string)) (admission.Warnings, error) {
	if !w.cluster.Handles(v) {
		return nil, nil
	}
	around, err := w.cluster.Around(ctx, v)
	if err != nil {
		// A cluster that cannot be read is no fault of the object.
		log.FromContext(ctx).Error(err, "The object is admitted unchecked, because the cluster could not be read")
		return admission.Warnings{"nobody looked at what else is on the target: the autoscaler cannot read the cluster"}, nil
	}
	around.Scalable = w.cluster.Scalable
	errs, warnings := of(around)
	return warnings, errors.Join(errs...)
}
