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

// rules are the objects that say what pods will be and how many there may be, of the
// kinds that may be read.
func (o *observer) rules(ctx context.Context) (inventory.Objects, error) {
	objects := inventory.Objects{Unread: o.access.Unread}
	var (
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
		{objects.Unread.RuntimeClasses, "runtime classes", &runtimes},
		{objects.Unread.PriorityClasses, "priority classes", &priorities},
		{objects.Unread.Budgets, "disruption budgets", &budgets},
		{objects.Unread.Quotas, "resource quotas", &quotas},
	} {
		if kind.unread {
			continue
		}
		if err := o.reader.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return objects, fmt.Errorf("listing %s: %w", kind.name, err)
		}
	}
	objects.RuntimeClasses, objects.PriorityClasses = pointers(runtimes.Items), pointers(priorities.Items)
	objects.Budgets, objects.Quotas = pointers(budgets.Items), pointers(quotas.Items)
	return objects, nil
}
