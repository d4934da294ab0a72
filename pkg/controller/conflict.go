package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// findConflict looks for others who decide the replicas of a target that exists:
// another object of ours, whatever its mode, and a HorizontalPodAutoscaler or a
// ScaledObject unless it is meant to act on our metric.
func (f *targetFinder) findConflict(ctx context.Context, v *variant) error {
	if err := f.findConflictOn(ctx, v, v.target.key); err != nil || v.target.child == "" || v.target.state != decision.TargetFound {
		return err
	}
	return f.findConflictOn(ctx, v, v.target.child)
}

// findConflictOn looks for others on one object: the target, or the workload below it.
func (f *targetFinder) findConflictOn(ctx context.Context, v *variant, key string) error {
	here := []client.ListOption{client.InNamespace(v.key.Namespace), client.MatchingFields{indexTarget: key}, client.UnsafeDisableDeepCopy}
	var variants v1alpha1.VariantAutoscalingList
	if err := f.reader.List(ctx, &variants, here...); err != nil {
		return fmt.Errorf("listing the VariantAutoscaling objects on %s: %w", &v.target, err)
	}
	var others []string
	for i := range variants.Items {
		if other := &variants.Items[i]; other.Name != v.key.Name {
			others = append(others, other.Name)
			// The pods of a shared target serve once: the object that was there first
			// counts them.
			v.target.lent = v.target.lent || v1alpha1.Older(other, v.object)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		state := decision.TargetConflict
		if v.target.lent {
			state = decision.TargetShared
		}
		v.target.refuse(state, v1alpha1.ReasonTargetShared, "%s", review.SharedTarget(others, &v.target))
		return nil
	}
	if v.object.Spec.Actuation != "" && v.object.Spec.Actuation != v1alpha1.ActuationScale {
		return nil
	}
	autoscalers, err := f.autoscalers(ctx, here)
	if err != nil {
		return fmt.Errorf("listing the autoscalers on %s: %w", &v.target, err)
	}
	if len(autoscalers) > 0 {
		v.target.refuse(decision.TargetConflict, v1alpha1.ReasonAutoscalerOnTarget, "%s", review.AutoscalerOnTarget(autoscalers, &v.target))
	}
	return nil
}

// autoscalers names the autoscalers on a target. KEDA's own HorizontalPodAutoscaler is
// named after its ScaledObject, which is what a user knows.
func (f *targetFinder) autoscalers(ctx context.Context, here []client.ListOption) ([]string, error) {
	var names []string
	if f.access.ScaledObjects {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kindScaledObject.GroupVersion().WithKind(kindScaledObject.Kind + "List"))
		if err := f.reader.List(ctx, objects, here...); err != nil {
			return nil, err
		}
		for i := range objects.Items {
			names = append(names, "ScaledObject "+objects.Items[i].GetName())
		}
	}
	var autoscalers autoscalingv2.HorizontalPodAutoscalerList
	if err := f.reader.List(ctx, &autoscalers, here...); err != nil {
		return nil, err
	}
	for i := range autoscalers.Items {
		if name := autoscalers.Items[i].Name; len(names) == 0 || !strings.HasPrefix(name, "keda-hpa-") {
			names = append(names, "HorizontalPodAutoscaler "+name)
		}
	}
	slices.Sort(names)
	return names, nil
}
