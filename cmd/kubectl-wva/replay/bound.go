package replay

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

// boundByOthers bounds the variants that only publish their metric by the HorizontalPodAutoscalers that
// act on it. As the manager has it, the one that allows the fewest replicas counts.
func boundByOthers(ctx context.Context, api client.Reader, variants []scenario.LiveVariant) (notes []string, err error) {
	of := map[string][]autoscalingv2.HorizontalPodAutoscaler{}
	for i := range variants {
		object := variants[i].Object
		target, wrong := review.TargetOf(object)
		if object.Spec.Actuation != v1alpha1.ActuationMetric || wrong != nil {
			continue
		}
		if _, read := of[object.Namespace]; !read {
			var list autoscalingv2.HorizontalPodAutoscalerList
			err := api.List(ctx, &list, client.InNamespace(object.Namespace))
			if apierrors.IsForbidden(err) {
				notes = append(notes, "the HorizontalPodAutoscalers of namespace "+object.Namespace+" may not be listed, so what they allow does not count: ask for the permission to list them")
			} else if err != nil {
				return notes, cluster.Advise(err, "list", "horizontalpodautoscalers", object.Namespace)
			}
			of[object.Namespace] = list.Items
		}
		if follower := narrowest(of[object.Namespace], target); follower != nil {
			variants[i].Object = bounded(object, follower)
			spec := &variants[i].Object.Spec
			notes = append(notes, fmt.Sprintf("variant %s/%s has from %d to %d replicas, because HorizontalPodAutoscaler %s scales it",
				object.Namespace, object.Name, *spec.MinReplicas, *spec.MaxReplicas, follower.Name))
		}
	}
	return notes, nil
}

// narrowest is the one on a target that allows the fewest replicas; nil without one.
func narrowest(all []autoscalingv2.HorizontalPodAutoscaler, target review.Target) (least *autoscalingv2.HorizontalPodAutoscaler) {
	for i := range all {
		a := &all[i]
		ref := a.Spec.ScaleTargetRef
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		if kind == target.Kind && ref.Name == target.Name && (least == nil || a.Spec.MaxReplicas < least.Spec.MaxReplicas) {
			least = a
		}
	}
	return least
}

// bounded is an object with what a HorizontalPodAutoscaler allows. KEDA has one for a
// ScaledObject, which takes the last replica itself.
func bounded(object *v1alpha1.VariantAutoscaling, by *autoscalingv2.HorizontalPodAutoscaler) *v1alpha1.VariantAutoscaling {
	object = object.DeepCopy()
	spec, least, most := &object.Spec, ptr.Deref(by.Spec.MinReplicas, 1), by.Spec.MaxReplicas
	if owner := metav1.GetControllerOf(by); owner != nil && owner.Kind == "ScaledObject" && least == 1 {
		least = 0
	}
	most = min(most, ptr.Deref(spec.MaxReplicas, most))
	least = min(most, max(least, ptr.Deref(spec.MinReplicas, 0)))
	spec.MinReplicas, spec.MaxReplicas = &least, &most
	return object
}
