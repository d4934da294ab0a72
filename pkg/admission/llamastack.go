package admission

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/validation"
)

// LlamaStackConfigurations are where the webhooks of LlamaStackDistribution are named.
func LlamaStackConfigurations(webhookConfiguration string) []Configuration {
	return []Configuration{
		{rotator.CRDConversion, v1alpha2.Resource + "." + v1alpha2.GroupName},
		{rotator.Validating, webhookConfiguration},
	}
}

// LlamaStack serves the conversion and the validation of LlamaStackDistribution. The
// scheme of the manager knows both versions.
func LlamaStack(mgr manager.Manager) error {
	spoke := conversion.NewSpokeConverter(&v1alpha1.LlamaStackDistribution{},
		func(_ context.Context, hub *v1alpha2.LlamaStackDistribution, view *v1alpha1.LlamaStackDistribution) error {
			v1alpha1.ConvertFromHub(hub, view)
			return nil
		},
		func(_ context.Context, view *v1alpha1.LlamaStackDistribution, hub *v1alpha2.LlamaStackDistribution) error {
			v1alpha1.ConvertToHub(view, hub)
			return nil
		})
	err := ctrl.NewWebhookManagedBy(mgr, &v1alpha2.LlamaStackDistribution{}).
		WithConverter(conversion.NewHubSpokeConverter(&v1alpha2.LlamaStackDistribution{}, spoke)).
		WithValidator(llamaStack{}).
		Complete()
	if err != nil {
		return fmt.Errorf("adding the webhooks of LlamaStackDistribution: %w", err)
	}
	return nil
}

// llamaStack checks objects of v1alpha2. Those that are written as v1alpha1 arrive
// converted.
type llamaStack struct{}

var _ admission.Validator[*v1alpha2.LlamaStackDistribution] = llamaStack{}

// ValidateCreate implements admission.Validator.
func (llamaStack) ValidateCreate(_ context.Context, object *v1alpha2.LlamaStackDistribution) (admission.Warnings, error) {
	if err := invalid(object, validation.Create(object)); err != nil {
		return nil, err
	}
	return validation.Warnings(object), nil
}

// ValidateUpdate implements admission.Validator.
func (llamaStack) ValidateUpdate(ctx context.Context, old, object *v1alpha2.LlamaStackDistribution) (admission.Warnings, error) {
	if object.DeletionTimestamp != nil {
		return nil, nil // whoever takes a finalizer away may
	}
	if err := invalid(object, validation.Update(old, object)); err != nil {
		return nil, err
	}
	warnings := append(validation.Warnings(object), validation.Reapplied(old, object)...)
	if request, err := admission.RequestFromContext(ctx); err == nil && request.RequestKind != nil && request.RequestKind.Version == v1alpha1.GroupVersion.Version {
		warnings = append(warnings, validation.Dropped(old, object)...)
	}
	return warnings, nil
}

// ValidateDelete implements admission.Validator.
func (llamaStack) ValidateDelete(context.Context, *v1alpha2.LlamaStackDistribution) (admission.Warnings, error) {
	return nil, nil
}

func invalid(object *v1alpha2.LlamaStackDistribution, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind(v1alpha2.Kind).GroupKind(), object.Name, errs)
}
