package inventory

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// A quota of a namespace limits its pods whatever the nodes have: beyond it, the API
// server refuses them. What a pod counts is what the quota controller counts of it.

// quotaKey names what one quota says of one resource.
type quotaKey struct {
	namespace, name string
	resource        corev1.ResourceName
}

// readQuotas gives the cluster the quotas, each resource of each by itself.
func (inv *Inventory) readQuotas() {
	inv.quotas = make(map[quotaKey]int, len(inv.objects.Quotas))
	for _, q := range inv.objects.Quotas {
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			key := quotaKey{q.Namespace, q.Name, name}
			hard, known := q.Status.Hard[name]
			if _, twice := inv.quotas[key]; twice || !known {
				continue
			}
			inv.quotas[key] = len(inv.Cluster.Quotas)
			all := countedBy(name, hard)
			inv.Cluster.Quotas = append(inv.Cluster.Quotas, placement.Quota{
				Namespace: q.Namespace, Name: q.Name, Resource: string(name), Hard: all, Left: all - countedBy(name, q.Status.Used[name]),
			})
		}
	}
}

// countedBy is an amount of a resource in the unit that it is counted in here.
func countedBy(name corev1.ResourceName, q resource.Quantity) int64 {
	if strings.HasSuffix(string(name), "cpu") {
		return milli(q, most)
	}
	return amount(q, most)
}

// charges is what one such pod counts against the quotas of its namespace, and what of
// them is not known.
func (inv *Inventory) charges(next *expected) (charges []placement.Amount, bounds []string) {
	if inv.objects.Unread.Quotas {
		return nil, []string{"resource quotas"}
	}
	pod, usage := next.pod, corev1.ResourceList(nil)
	for _, q := range inv.objects.Quotas {
		if q.Namespace != pod.Namespace {
			continue
		}
		counts, known := inv.inScope(q, next)
		if !known {
			bounds = append(bounds, "resource quota "+q.Name)
		}
		if !counts {
			continue
		}
		if usage == nil {
			usage = usageOf(pod)
		}
		of, known := inv.chargesOf(q, next, usage)
		if !known {
			bounds = append(bounds, "resource quota "+q.Name)
		}
		charges = append(charges, of...)
	}
	return charges, bounds
}

// chargesOf is what a pod counts against one quota. It reports false while the quota
// controller has not said yet what is left.
func (inv *Inventory) chargesOf(q *corev1.ResourceQuota, next *expected, usage corev1.ResourceList) (charges []placement.Amount, known bool) {
	known = true
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		used := usage[name]
		charge := placement.Amount{Count: countedBy(name, used)}
		if next.seen && !saidByAll(next.pod, name) {
			// Admission refuses every pod, whatever is left. It may add what a template
			// does not say.
			charge.Count, charge.Name = most, "every container must say "+string(name)
		}
		if charge.Count == 0 {
			continue
		}
		at, found := inv.quotas[quotaKey{q.Namespace, q.Name, name}]
		if !found {
			known = false
			continue
		}
		charge.Index = at
		charges = append(charges, charge)
	}
	return charges, known
}

// saidByAll reports whether every container says its request or limit of a resource of
// which a quota demands it. It demands it of CPU and memory.
func saidByAll(pod *corev1.Pod, counted corev1.ResourceName) bool {
	limits := counted == corev1.ResourceLimitsCPU || counted == corev1.ResourceLimitsMemory
	name := corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(string(counted), "requests."), "limits."))
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory || resourcehelper.IsPodLevelResourcesSet(pod) {
		return true
	}
	silent := func(c corev1.Container) bool {
		said := c.Resources.Requests
		if limits {
			said = c.Resources.Limits
		}
		_, says := said[name]
		return !says
	}
	return !slices.ContainsFunc(pod.Spec.Containers, silent) && !slices.ContainsFunc(pod.Spec.InitContainers, silent)
}

// usageOf is what a pod counts, by the names that quotas have for it.
func usageOf(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	usage := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, q := range requestsOf(pod) {
		usage[corev1.ResourceName("requests."+string(name))] = q
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			usage[name] = q
		}
	}
	for name, q := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			usage[corev1.ResourceName("limits."+string(name))] = q
		}
	}
	return usage
}

// inScope reports whether the quota counts such pods. A scope that is not known, or one that
// admission may yet change, makes that unknown.
func (inv *Inventory) inScope(q *corev1.ResourceQuota, next *expected) (counts, known bool) {
	selectors := make([]corev1.ScopedResourceSelectorRequirement, 0, len(q.Spec.Scopes))
	for _, scope := range q.Spec.Scopes {
		selectors = append(selectors, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		selectors = append(selectors, q.Spec.ScopeSelector.MatchExpressions...)
	}
	for _, s := range selectors {
		counts, known := inv.selects(s, next)
		if !counts || !known {
			return false, known
		}
	}
	return true, true
}

func (inv *Inventory) selects(s corev1.ScopedResourceSelectorRequirement, next *expected) (counts, known bool) {
	spec := &next.pod.Spec
	// Defaults of the namespace may be added to a pod that asks for nothing.
	settled := next.seen || !bestEffort(spec)
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return spec.ActiveDeadlineSeconds != nil, true
	case corev1.ResourceQuotaScopeNotTerminating:
		return spec.ActiveDeadlineSeconds == nil, true
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(spec), settled
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(spec), settled
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return affineBeyond(spec.Affinity), true
	case corev1.ResourceQuotaScopePriorityClass:
		if !next.seen && inv.objects.Unread.PriorityClasses && spec.PriorityClassName == "" {
			// Some class may be the default.
			return false, false
		}
		has := spec.PriorityClassName != "" && slices.Contains(s.Values, spec.PriorityClassName)
		switch s.Operator {
		case corev1.ScopeSelectorOpExists:
			return spec.PriorityClassName != "", true
		case corev1.ScopeSelectorOpDoesNotExist:
			return spec.PriorityClassName == "", true
		case corev1.ScopeSelectorOpIn:
			return has, true
		case corev1.ScopeSelectorOpNotIn:
			return !has, true
		}
	}
	return false, false
}

// bestEffort reports whether no container asks for CPU or memory, or limits them.
func bestEffort(spec *corev1.PodSpec) bool {
	some := func(r *corev1.ResourceRequirements) bool {
		if r == nil {
			return false
		}
		for _, list := range [...]corev1.ResourceList{r.Requests, r.Limits} {
			if cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]; cpu.Sign() > 0 || memory.Sign() > 0 {
				return true
			}
		}
		return false
	}
	asks := func(c corev1.Container) bool { return some(&c.Resources) }
	return !some(spec.Resources) && !slices.ContainsFunc(spec.Containers, asks) && !slices.ContainsFunc(spec.InitContainers, asks)
}

// affineBeyond reports whether affinity to pods, or away from them, means other
// namespaces too.
func affineBeyond(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	beyond := func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }
	weighted := func(t corev1.WeightedPodAffinityTerm) bool { return beyond(t.PodAffinityTerm) }
	to, from := a.PodAffinity, a.PodAntiAffinity
	return to != nil && (slices.ContainsFunc(to.RequiredDuringSchedulingIgnoredDuringExecution, beyond) ||
		slices.ContainsFunc(to.PreferredDuringSchedulingIgnoredDuringExecution, weighted)) ||
		from != nil && (slices.ContainsFunc(from.RequiredDuringSchedulingIgnoredDuringExecution, beyond) ||
			slices.ContainsFunc(from.PreferredDuringSchedulingIgnoredDuringExecution, weighted))
}
