package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// objects are the nodes, and of the kinds that may be read the objects that say what pods
// will be and how many there may be.
func (o *observer) objects(ctx context.Context, pods []*corev1.Pod) (inventory.Objects, error) {
	unread := o.access.Unread
	var (
		nodes      corev1.NodeList
		runtimes   nodev1.RuntimeClassList
		priorities schedulingv1.PriorityClassList
		budgets    policyv1.PodDisruptionBudgetList
		quotas     corev1.ResourceQuotaList
	)
	for _, kind := range []struct {
		unread bool
		name   string
		list   client.ObjectList
	}{
		{false, "nodes", &nodes},
		{unread.RuntimeClasses, "runtime classes", &runtimes},
		{unread.PriorityClasses, "priority classes", &priorities},
		{unread.Budgets, "disruption budgets", &budgets},
		{unread.Quotas, "resource quotas", &quotas},
	} {
		if kind.unread {
			continue
		}
		if err := o.reader.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return inventory.Objects{}, fmt.Errorf("listing %s: %w", kind.name, err)
		}
	}
	return inventory.Objects{
		Nodes: pointers(nodes.Items), Pods: pods, Unread: unread,
		RuntimeClasses: pointers(runtimes.Items), PriorityClasses: pointers(priorities.Items),
		Budgets: pointers(budgets.Items), Quotas: pointers(quotas.Items),
	}, nil
}
