package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
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
func (c *Controller) variantOf(ctx context.Context, pod *corev1.Pod) (v *v1alpha1.VariantAutoscaling, err error) {
	if !c.watches(pod.Namespace) {
		return nil, nil //nolint:nilnil // a pod of no variant is no error
	}
	err = nearestOwner(ctx, pod, func(key string) (_ bool, err error) {
		v, err = c.oldestOn(ctx, pod.Namespace, key)
		return v != nil, err
	}, c.cached, c.live)
	return v, err
}

func (c *Controller) oldestOn(ctx context.Context, namespace, target string) (*v1alpha1.VariantAutoscaling, error) {
	var list v1alpha1.VariantAutoscalingList
	if err := c.cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{indexTarget: target}); err != nil {
		return nil, fmt.Errorf("listing VariantAutoscaling objects: %w", err)
	}
	var oldest *v1alpha1.VariantAutoscaling
	for i := range list.Items {
		if v := &list.Items[i]; c.Handles(v) && (oldest == nil || v1alpha1.Older(v, oldest)) {
			oldest = v
		}
	}
	return oldest, nil
}

// sendsTo are the namespaces whose pods the webhook sends on their way.
func (o *observer) sendsTo(ctx context.Context) (map[string]bool, error) {
	sends := map[string]bool{}
	if !o.access.Namespaces {
		return sends, nil
	}
	var namespaces corev1.NamespaceList
	if err := o.reader.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.LabelPlacePods: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the namespaces whose pods are placed: %w", err)
	}
	for i := range namespaces.Items {
		sends[namespaces.Items[i].Name] = true
	}
	return sends, nil
}
