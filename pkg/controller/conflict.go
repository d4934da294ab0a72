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
	err := f.findConflictOn(ctx, v, v.target.key)
	for _, key := range []string{v.target.child, v.target.above} {
		if err == nil && key != "" && v.target.state == decision.TargetFound {
			err = f.findConflictOn(ctx, v, key)
		}
	}
	return err
}

// findConflictOn looks for others on one object: the target, the workload below it, or what
// made the target and sets its replicas.
func (f *targetFinder) findConflictOn(ctx context.Context, v *variant, key string) error {
	variants, err := variantsOn(ctx, f.reader, v.key.Namespace, key)
	if err != nil {
		return err
	}
	var others []string
	for _, other := range variants {
		if other.Name != v.key.Name {
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
	switch v.object.Spec.Actuation {
	case v1alpha1.ActuationMetric:
		return f.findFollower(ctx, v, key)
	case v1alpha1.ActuationOff:
		return nil
	case "", v1alpha1.ActuationScale:
	}
	found, err := autoscalersOn(ctx, f.reader, f.access, v.key.Namespace, key)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		var names []string
		for _, a := range found {
			names = append(names, a.String())
		}
		slices.Sort(names)
		v.target.refuse(decision.TargetConflict, v1alpha1.ReasonAutoscalerOnTarget, "%s", review.AutoscalerOnTarget(names, &v.target))
	}
	return nil
}

// findFollower finds the HorizontalPodAutoscaler that allows the fewest replicas: what is shown
// beyond them nobody makes, and other variants can carry the load. KEDA has one for each of its
// ScaledObjects.
func (f *targetFinder) findFollower(ctx context.Context, v *variant, key string) error {
	var autoscalers autoscalingv2.HorizontalPodAutoscalerList
	if err := listOn(ctx, f.reader, &autoscalers, v.key.Namespace, key); err != nil {
		return err
	}
	for _, a := range pointers(autoscalers.Items) {
		if narrowest := v.target.follower; narrowest == nil || a.Spec.MaxReplicas < narrowest.Spec.MaxReplicas {
			v.target.follower = a
		}
	}
	return nil
}

// autoscalersOn are the autoscalers on a target; the caller knows which. KEDA's own
// HorizontalPodAutoscaler is named after its ScaledObject, which is what a user knows.
func autoscalersOn(ctx context.Context, reader client.Reader, access Access, namespace, key string) ([]review.Autoscaler, error) {
	var found []review.Autoscaler
	if access.ScaledObjects {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kindScaledObject.GroupVersion().WithKind(kindScaledObject.Kind + "List"))
		if err := listOn(ctx, reader, objects, namespace, key); err != nil {
			return nil, err
		}
		for i := range objects.Items {
			found = append(found, review.Autoscaler{Kind: kindScaledObject.Kind, Name: objects.Items[i].GetName()})
		}
	}
	var autoscalers autoscalingv2.HorizontalPodAutoscalerList
	if err := listOn(ctx, reader, &autoscalers, namespace, key); err != nil {
		return nil, err
	}
	for i := range autoscalers.Items {
		if name := autoscalers.Items[i].Name; len(found) == 0 || !strings.HasPrefix(name, "keda-hpa-") {
			found = append(found, review.Autoscaler{Kind: "HorizontalPodAutoscaler", Name: name})
		}
	}
	return found, nil
}

// variantsOn are our objects on a target, by its targetKey, whatever instance handles them.
func variantsOn(ctx context.Context, cached client.Reader, namespace, key string) ([]*v1alpha1.VariantAutoscaling, error) {
	var list v1alpha1.VariantAutoscalingList
	err := listOn(ctx, cached, &list, namespace, key)
	return pointers(list.Items), err
}

// listOn lists the objects of a kind on a target without a copy: nobody may change them.
func listOn(ctx context.Context, cached client.Reader, list client.ObjectList, namespace, key string) error {
	err := cached.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{indexTarget: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing %T on %s in namespace %s: %w", list, key, namespace, err)
	}
	return nil
}
