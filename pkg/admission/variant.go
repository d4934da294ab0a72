package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	Scalable(ctx context.Context, gvk schema.GroupVersionKind) (scalable, known bool)
}

// VariantConfigurations are where the webhook of VariantAutoscaling is named.
func VariantConfigurations(webhookConfiguration string) []Configuration {
	return []Configuration{{rotator.Validating, webhookConfiguration}}
}

// Variants serves the validation of VariantAutoscaling.
func Variants(mgr manager.Manager, cluster Cluster) {
	mgr.GetWebhookServer().Register(variantsPath, variantsWebhook(mgr.GetScheme(), cluster))
}

// variantsPath is where manifests/webhook and the chart have the API server call.
const variantsPath = "/validate-llmd-ai-v1alpha1-variantautoscaling"

func variantsWebhook(scheme *runtime.Scheme, cluster Cluster) *admission.Webhook {
	webhook := admission.WithValidator(scheme, &variants{cluster})
	webhook.Handler = readable{webhook.Handler, cluster}
	return webhook
}

// readable answers for objects that do not fit the Go type, as those that were stored under an
// earlier schema. To refuse them would mean that nobody could correct one.
type readable struct {
	admission.Handler
	cluster Cluster
}

// Handle implements admission.Handler. What the API server lets stay as it was may stay; of an
// object that is corrected, nothing but its metadata counts as what was there before.
func (r readable) Handle(ctx context.Context, request admission.Request) admission.Response {
	if v, why := decode(request.Object.Raw); why != "" {
		if !r.cluster.Handles(v) {
			return admission.Allowed("")
		}
		return admission.Allowed("").WithWarnings("the object cannot be read, so the autoscaler leaves it out: " + why)
	}
	if old, why := decode(request.OldObject.Raw); why != "" {
		text, err := json.Marshal(old)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		request.OldObject.Raw = text
	}
	return r.Handler.Handle(ctx, request)
}

// decode is an object, and why it cannot be read; empty where it can.
func decode(raw []byte) (v *v1alpha1.VariantAutoscaling, why string) {
	stored := &unstructured.Unstructured{}
	if json.Unmarshal(raw, stored) != nil {
		return nil, "" // the decoder says it
	}
	v = v1alpha1.Decode(stored)
	return v, v.Annotations[v1alpha1.AnnotationUndecodable]
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
	around.Scalable = func(gvk schema.GroupVersionKind) (bool, bool) { return w.cluster.Scalable(ctx, gvk) }
	errs, warnings := of(around)
	return warnings, errors.Join(errs...)
}
