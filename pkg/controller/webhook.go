package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Send is the spec of a pod that is about to be made and says where it goes, if it belongs
// to one of our variants; else nil, with the reason if it is worth one.
func (c *Controller) Send(ctx context.Context, pod *corev1.Pod) (sent *corev1.PodSpec, why string, err error) {
	v, err := c.variantOf(ctx, pod)
	if err != nil || v == nil {
		return nil, "", err
	}
	name, _, err := c.names.Resolve(v.Spec.Accelerator, v.Labels[v1alpha1.LabelAcceleratorName], &corev1.PodTemplateSpec{Spec: pod.Spec}, nil)
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // what contradicts itself is left alone, which is no failure
	}
	var nodes corev1.NodeList
	if c.access.Capacity {
		if err := c.cached.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, "", fmt.Errorf("listing nodes: %w", err)
		}
	}
	sent, why = inventory.NewSending(c.scheduler, c.names, pointers(nodes.Items)).Send(&pod.Spec, name)
	return sent, why, nil
}

// variantOf is the object on the nearest owner of a pod that one of ours is on; nil is
// none. Of several on one target, the oldest counts.
func (c *Controller) variantOf(ctx context.Context, pod *corev1.Pod) (oldest *v1alpha1.VariantAutoscaling, err error) {
	if !c.watches(pod.Namespace) {
		return nil, nil //nolint:nilnil // a pod of no variant is no error
	}
	handled := func(v *v1alpha1.VariantAutoscaling) bool { return c.Handles(v) }
	found, err := variantsAbove(ctx, pod, handled, c.cached, c.live)
	for _, v := range found {
		if oldest == nil || v1alpha1.Older(v, oldest) {
			oldest = v
		}
	}
	return oldest, err
}

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
	key := targetKey(target.Kind, target.Name)
	if around.Variants, err = c.othersOn(ctx, v, key); err != nil {
		return around, err
	}
	around.Autoscalers, err = autoscalersOn(ctx, c.cached, c.access, v.Namespace, key)
	for i := range around.Autoscalers {
		around.Autoscalers[i].Target = target
	}
	return around, err
}

// othersOn are the other objects on a target. The cache may have one that is gone, or going: each
// is asked for again, so that nobody is refused for an object that was just deleted.
func (c *Controller) othersOn(ctx context.Context, v *v1alpha1.VariantAutoscaling, key string) ([]*v1alpha1.VariantAutoscaling, error) {
	cached, err := variantsOn(ctx, c.cached, v.Namespace, key)
	var there []*v1alpha1.VariantAutoscaling
	for _, seen := range cached {
		if seen.Name == v.Name {
			continue
		}
		other := &v1alpha1.VariantAutoscaling{}
		err := c.live.Get(ctx, client.ObjectKeyFromObject(seen), other)
		switch {
		case apierrors.IsNotFound(err), other.DeletionTimestamp != nil:
		case err != nil:
			return nil, fmt.Errorf("reading VariantAutoscaling %s/%s: %w", seen.Namespace, seen.Name, err)
		default:
			there = append(there, other)
		}
	}
	return there, err
}
