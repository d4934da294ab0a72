package operator

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
)

// rolling is what pods of before still need. The Deployment tells as soon as they are gone, and what was
// kept for them goes in the turn that follows.
func (o *operator) rolling(ctx context.Context, object *v1alpha2.LlamaStackDistribution) (r child.Rolling, err error) {
	deployment, err := deploymentOf(ctx, o.cached, object)
	if err != nil || deployment == nil {
		return r, err // there are no pods
	}
	port, named := namedPort(deployment)
	if named && port == child.Port(object) && !isRolling(deployment) {
		return r, nil
	}
	service := &corev1.Service{}
	if err := o.kept(ctx, object, "-service", service); err != nil {
		return r, err
	}
	// Once the Service leads to the name, all pods have it.
	if r.Unnamed = !named; len(service.Spec.Ports) > 0 {
		r.Unnamed = service.Spec.Ports[0].TargetPort.Type == intstr.Int
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := o.kept(ctx, object, "-network-policy", policy); err != nil {
		return r, err
	}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if p.Port != nil && p.Port.Type == intstr.Int && p.Port.IntVal != child.Port(object) && !slices.Contains(r.Ports, p.Port.IntVal) {
				r.Ports = append(r.Ports, p.Port.IntVal)
			}
		}
	}
	return r, nil
}

// kept is a child as it is; empty where there is none.
func (o *operator) kept(ctx context.Context, object *v1alpha2.LlamaStackDistribution, suffix string, into client.Object) error {
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Name + suffix}
	if err := o.cached.Get(ctx, key, into); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return nil
}

// namedPort is the server's port in the pods that a Deployment makes, if it has its name.
func namedPort(d *appsv1.Deployment) (port int32, named bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == child.PortName {
				return p.ContainerPort, true
			}
		}
	}
	return 0, false
}
