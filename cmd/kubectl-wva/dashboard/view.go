package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/status"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// surroundings are what changes seldom: prices, promises and the names of accelerators.
type surroundings struct {
	costs    config.UnitCosts
	classes  config.ServiceClasses
	names    *inventory.Names
	selected map[string][]selected
	notes    []string
}

// view is the state of the page.
type view struct {
	where string
	// all says that the variants of all namespaces are shown, by their namespaces.
	all     bool
	every   time.Duration
	history *history
	around  *surroundings
	// loads are nil while Prometheus is not known.
	loads *loads
	notes []string
}

// name is how a thing of a namespace is called on the page.
func (v *view) name(namespace, name string) string {
	if v.all {
		return namespace + "/" + name
	}
	return name
}

func (v *view) dashboard() *report.Dashboard {
	h := v.history
	d := &report.Dashboard{Where: v.where, Start: h.start, Now: h.changed.Sub(h.start), Every: v.every, Since: max(0, h.first.Sub(h.start)), PodsKnown: h.last.podsKnown, Notes: slices.Concat(v.notes, v.around.notes)}
	if v.loads != nil {
		// The charts end where the last point does, or where something changed after it.
		d.Now = max(d.Now, time.Duration(v.loads.complete)*v.loads.step)
	}
	promises := v.addVariants(d)
	v.addModels(d, promises)
	v.addNodes(d)
	v.addMoves(d)
	for _, one := range h.decisions {
		out := report.DashboardDecision{At: one.at.Sub(h.start), Variant: v.name(one.variant.Namespace, one.variant.Name),
			From: one.from, To: one.to, Reason: one.reason, Message: one.message}
		for _, s := range one.steps {
			out.Steps = append(out.Steps, report.DashboardStep{Stage: s.Stage, Reason: s.Reason, Detail: s.Detail, Before: int(s.Before), After: int(s.After)})
		}
		d.Decisions = append(d.Decisions, out)
	}
	report.SortDecisions(d.Decisions)
	return d
}

// addMoves adds the lives of the pods. A name may come again, as those of a StatefulSet do.
func (v *view) addMoves(d *report.Dashboard) {
	all := slices.SortedFunc(maps.Values(v.history.lives), func(a, b *report.PodLife) int {
		return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Name, b.Name))
	})
	times := map[string]int{}
	for _, life := range all {
		shown := *life
		namespace, name, _ := strings.Cut(life.Variant, "/")
		shown.Variant, shown.Name = v.name(namespace, name), v.name(namespace, life.Name)
		if times[shown.Name]++; times[shown.Name] > 1 {
			shown.Name += fmt.Sprintf(" (%d)", times[shown.Name])
		}
		d.Moves = append(d.Moves, shown.Moves(v.history.start)...)
	}
	report.SortMoves(d.Moves)
}

// promise is the service class of a model.
type promise struct {
	key   modelKey
	class string
	slo   capacity.SLO
}

// addVariants adds the variants, and finds their models and the promises of these.
func (v *view) addVariants(d *report.Dashboard) map[string]promise {
	h := v.history
	pods := v.podsByVariant()
	promises, targets := map[string]promise{}, v.promises()
	for _, object := range h.last.variants {
		row := status.RowOf(object, nil)
		out := report.DashboardVariant{
			Key: v.name(row.Namespace, row.Name), Model: v.name(row.Namespace, row.Model), Accelerator: capacity.Accelerator(row.Accelerator),
			Pods: podsOf(object), Wanted: row.Desired, Current: row.Current, Pending: row.Pending, Fit: row.Fit, FitIsBound: row.FitIsBound,
			Shape: row.Shape(), State: row.State, Message: row.Message, Reason: row.Reason,
		}
		if row.Devices != nil {
			out.Devices = int(*row.Devices)
		}
		if cost, err := v.costOf(object); err == nil {
			out.Cost = new(float64(cost))
		}
		key := keyOf(object)
		for _, s := range h.replicas[key] {
			out.Replicas = append(out.Replicas, report.ReplicaState{At: s.at.Sub(h.start), Desired: s.wanted, Ready: s.ready})
		}
		out.KVUse, out.Waiting = v.measured(pods[key])
		d.Variants = append(d.Variants, out)
		p := promises[out.Model]
		p.key = modelKey{row.Namespace, row.Model}
		if class := object.Status.ServiceClass; class != "" {
			p.class, p.slo = class, targets[p.key]
		}
		promises[out.Model] = p
	}
	slices.SortFunc(d.Variants, func(a, b report.DashboardVariant) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Key, b.Key))
	})
	return promises
}

// promises are the targets of the models that have one.
func (v *view) promises() map[modelKey]capacity.SLO {
	found := map[modelKey]capacity.SLO{}
	for _, object := range v.history.last.variants {
		class := object.Status.ServiceClass
		if class == "" {
			continue
		}
		if slo := v.promised(class, object.Spec.ModelID, object.Spec.SLOClassRef); slo != (capacity.SLO{}) {
			found[modelKey{object.Namespace, object.Spec.ModelID}] = slo
		}
	}
	return found
}

// costOf is the price of one replica per hour.
func (v *view) costOf(object *v1alpha1.VariantAutoscaling) (capacity.Cost, error) {
	var device capacity.Device
	count := 0
	if p := object.Status.Placement; p != nil && p.Shape != nil {
		device = p.Shape.Device()
		if p.Shape.Devices != nil {
			count = int(*p.Shape.Devices) * podsOf(object)
		}
	}
	return v.around.costs.Replica(&object.Spec, device, count)
}

// promised is what a class promises to the clients of a model.
func (v *view) promised(class, model string, ref *v1alpha1.SLOClassReference) capacity.SLO {
	if ref != nil && ref.Key != "" {
		if slo, ok := v.target(class, ref.Key); ok {
			return slo
		}
	}
	slo, _ := v.target(class, model)
	return slo
}

func (v *view) target(class, model string) (capacity.SLO, bool) {
	for _, c := range v.around.classes.Classes {
		if strings.EqualFold(c.Name, class) {
			slo, ok := c.Targets[model]
			return slo, ok
		}
	}
	return capacity.SLO{}, false
}

// podsByVariant are the names of the pods that are there.
func (v *view) podsByVariant() map[types.NamespacedName][]types.NamespacedName {
	pods := map[types.NamespacedName][]types.NamespacedName{}
	owners := newOwners(v.history.last.variants, v.around.selected)
	for _, pod := range v.history.last.pods {
		if key, own := owners.of(pod); own {
			pods[key] = append(pods[key], types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return pods
}

// measured is the mean use of the KV caches of pods, and the requests in their queues.
func (v *view) measured(pods []types.NamespacedName) (kvUse, queued *float64) {
	if v.loads == nil {
		return nil, nil
	}
	total, waiting, n := 0.0, 0.0, 0
	for _, pod := range pods {
		if use, ok := v.loads.kvUse[pod]; ok {
			total, n = total+use, n+1
		}
		if value, ok := v.loads.queued[pod]; ok {
			waiting += value
			queued = &waiting
		}
	}
	if n > 0 {
		kvUse = new(total / float64(n))
	}
	return kvUse, queued
}

func (v *view) addModels(d *report.Dashboard, promises map[string]promise) {
	waiting := map[string]*float64{}
	for i := range d.Variants {
		one := &d.Variants[i]
		if one.Waiting != nil {
			sum := cmp.Or(waiting[one.Model], new(float64))
			*sum += *one.Waiting
			waiting[one.Model] = sum
		}
	}
	for i := range d.Variants {
		key := d.Variants[i].Model
		if n := len(d.Models); n > 0 && d.Models[n-1].Key == key {
			continue
		}
		p := promises[key]
		m := report.DashboardModel{Key: key, SLO: p.slo, Class: p.class, Waiting: waiting[key]}
		if v.loads != nil {
			m.Step, m.Points = v.loads.step, v.loads.of(p.key)
			if before, ok := v.loads.gatewayOf(p.key); ok {
				m.Waiting = new(before + *cmp.Or(m.Waiting, new(float64)))
			}
		}
		if m.Step == 0 {
			m.Step = emptyStep
		}
		d.Models = append(d.Models, m)
	}
}

// emptyStep is the step of charts without points.
const emptyStep = 15 * time.Second

// gatewayOf is the gateway's queue of a model; a gateway need not say the namespace.
func (l *loads) gatewayOf(key modelKey) (float64, bool) {
	if value, ok := l.waiting[key]; ok {
		return value, true
	}
	value, ok := l.waiting[modelKey{"", key.model}]
	return value, ok
}

// addNodes adds the nodes with devices, and how many of these are held by pods that are no
// variant's. A node with several kinds of devices is shown once for each.
func (v *view) addNodes(d *report.Dashboard) {
	owners := newOwners(v.history.last.variants, v.around.selected)
	held := map[string]corev1.ResourceList{}
	for _, pod := range v.history.last.pods {
		node := inventory.HeldBy(pod)
		if node == "" || !inventory.UsesDevices(pod) {
			continue
		}
		if _, own := owners.of(pod); own {
			continue
		}
		sum := held[node]
		if sum == nil {
			sum = corev1.ResourceList{}
			held[node] = sum
		}
		for name, amount := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true}) {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	for _, node := range v.history.last.nodes {
		for i, devices := range v.around.names.Carried(node).Devices {
			amount := held[node.Name][devices.Resource]
			shown := report.ObservedNode{
				Name: node.Name, Accelerator: devices.Name.Accelerator(), Devices: devices.Count,
				Others: min(devices.Count, int(amount.Value())), Out: inventory.Out(node),
			}
			if i > 0 {
				shown.Name = fmt.Sprintf("%s (%s)", node.Name, devices.Name)
			}
			d.Nodes = append(d.Nodes, shown)
		}
	}
	slices.SortFunc(d.Nodes, func(a, b report.ObservedNode) int { return cmp.Compare(a.Name, b.Name) })
}
