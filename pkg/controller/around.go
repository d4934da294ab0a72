package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
)

// Handles reports whether the object is one of those that this controller handles.
func (c *Controller) Handles(object client.Object) bool {
	return object.GetLabels()[v1alpha1.LabelControllerInstance] == c.instance && c.watches(object.GetNamespace())
}

func (c *Controller) watches(namespace string) bool {
	return c.namespace == "" || c.namespace == namespace
}

// Around is what there is beside an object on its target, and the service classes in
// force. What may be scaled is left to the caller.
func (c *Controller) Around(ctx context.Context, v *v1alpha1.VariantAutoscaling) (review.Surroundings, error) {
	around := review.Surroundings{Classes: &c.settings.Current().ServiceClasses}
	target, err := review.TargetOf(v)
	if err != nil {
		return around, nil //nolint:nilerr // what names no target has nothing beside it; the review says so
	}
	here := []client.ListOption{
		client.InNamespace(v.Namespace), client.MatchingFields{indexTarget: targetKey(target.Kind, target.Name)}, client.UnsafeDisableDeepCopy,
	}
	if around.Variants, err = c.variantsOn(ctx, v, here); err != nil {
		return around, fmt.Errorf("listing the VariantAutoscaling objects on %s: %w", target, err)
	}
	around.Autoscalers, err = autoscalersOn(ctx, c.cached, c.access, here)
	if err != nil {
		return around, fmt.Errorf("listing the autoscalers on %s: %w", target, err)
	}
	for i := range around.Autoscalers {
		around.Autoscalers[i].Target = target
	}
	return around, nil
}

// variantsOn are the other objects on a target. The cache may have one that is gone, or going: each
// is asked for again, so that nobody is refused for an object that was just deleted.
func (c *Controller) variantsOn(ctx context.Context, v *v1alpha1.VariantAutoscaling, here []client.ListOption) ([]*v1alpha1.VariantAutoscaling, error) {
	var list v1alpha1.VariantAutoscalingList
	if err := c.cached.List(ctx, &list, here...); err != nil {
		return nil, err
	}
	var there []*v1alpha1.VariantAutoscaling
	for i := range list.Items {
		if list.Items[i].Name == v.Name {
			continue
		}
		other := &v1alpha1.VariantAutoscaling{}
		err := c.live.Get(ctx, client.ObjectKeyFromObject(&list.Items[i]), other)
		switch {
		case apierrors.IsNotFound(err), other.DeletionTimestamp != nil:
		case err != nil:
			return nil, err
		default:
			there = append(there, other)
		}
	}
	return there, nil
}
