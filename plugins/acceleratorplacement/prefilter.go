package acceleratorplacement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// ownerGrace is how long a pod waits for its owner to be seen. Pods and their
// owners come by different watches, and the pod's can be faster.
const ownerGrace = 10 * time.Second

// preFilterState is what one pod with devices wants of a node. It never changes once made.
type preFilterState struct {
	pod      *corev1.Pod
	resource corev1.ResourceName
	// variant is the pod's, or nil.
	variant *v1alpha1.VariantAutoscaling
	// selected is what the pod itself selects where its variant says otherwise.
	selected capacity.Device
	// stale is set when it is the variant's status alone that says otherwise.
	stale bool
	// devices are those that would do, in the pod's order; none means that any would.
	devices []capacity.Device
	// own are the nodes, by name, on which pods of the variant hold devices of which no
	// label says anything: there they are what the variant says. Nil is none.
	own map[string]bool
	// spans is set when the pod is a part of what spans several hosts. No type is known
	// of their devices, of which the pod accepts any: its own selectors say which.
	spans bool
	// shape has no devices' type yet: that depends on the node.
	shape capacity.Shape
	// other is what the pod takes of extended resources beside its devices.
	other []placement.Amount
	// table values the room that the pod takes; nil does as for usual sizes.
	table *placement.Table
	// checks is set for a pod that may go to cordoned nodes.
	checks bool
	// mates are the nodes that hold pods of the same owner, where that matters.
	mates mates
}

// Clone implements fwk.StateData.
func (w *preFilterState) Clone() fwk.StateData { return w }

// any reports whether the pod goes on devices of any type.
func (w *preFilterState) any() bool { return len(w.devices) == 0 }

// key tells requests apart that accept different devices.
func (w *preFilterState) key() string {
	var b strings.Builder
	b.WriteString(string(w.resource))
	for _, d := range w.devices {
		fmt.Fprintf(&b, ",%s/%d/%s", d.Accelerator, d.MemoryGiB, d.Form)
	}
	if w.spans {
		b.WriteString(",spans")
	}
	return b.String()
}

// of is the shape on devices of that type.
func (w *preFilterState) of(d capacity.Device) capacity.Shape {
	s := w.shape
	s.Accelerator, s.MemoryGiB, s.Form = d.Accelerator, d.MemoryGiB, d.Form
	return s
}

// choose is which of a node's devices the pod gets there, and the place of their type
// in its order. It reports false when it accepts none of them.
func (w *preFilterState) choose(what *carried) (pool, order int, ok bool) {
	if w.any() {
		pool = what.under(w.resource)
		return pool, 0, pool >= 0
	}
	for order := range w.devices {
		if pool := what.pool(w.devices[order], w.resource); pool >= 0 {
			return pool, order, true
		}
	}
	if w.spans {
		pool = what.spanning(w.resource)
		return pool, 0, pool >= 0
	}
	if w.own[what.node.Name] {
		pool = what.under(w.resource)
		return pool, 0, pool >= 0
	}
	return -1, 0, false
}

// preFilterStateOf finds the pod's variant and what it wants. The status is an error, which
// brings the pod back after a short back-off as no event would, while something is
// not known yet that must be.
func (p *Plugin) preFilterStateOf(ctx context.Context, pod *corev1.Pod) (*preFilterState, *fwk.Status) {
	takes, err := inventory.PodTakes(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	w := &preFilterState{
		pod:      pod,
		resource: takes.Resource,
		spans:    takes.Spans(&pod.Spec),
		shape:    capacity.Shape{Devices: takes.Devices, Pods: 1, MilliCPU: takes.MilliCPU, MemoryBytes: takes.MemoryBytes},
		other:    takes.Other(),
	}
	if !p.variants.known() {
		return nil, fwk.NewStatus(fwk.Error, "the VariantAutoscaling objects are not read yet")
	}
	owners, complete := p.owners.of(pod)
	if !complete && time.Since(pod.CreationTimestamp.Time) < ownerGrace {
		return nil, fwk.NewStatus(fwk.Error, "the owners of the pod are not seen yet")
	}
	if w.variant = p.variants.of(owners); w.variant != nil {
		if w.devices, err = p.devicesOf(ctx, w.variant, pod, takes.Resource); err != nil {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("VariantAutoscaling %s: %v", w.variant.Name, err))
		}
		w.prefer(p.names)
	} else {
		w.checks = toleratesCordon(pod)
	}
	if w.any() {
		if w.devices, err = accepted(p.names, pod, takes.Resource); err != nil {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
		}
	}
	return w, nil
}

// toleratesCordon reports whether the pod tolerates by its name what Kubernetes makes of a
// cordon, as those of DaemonSets do, and of whoever checks a node before it is used again.
// Those that tolerate everything mean taints.
func toleratesCordon(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == corev1.TaintNodeUnschedulable && t.Value == "" && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
	})
}

// out says why the node takes no such pod at all, or empty. The model knows of no pods
// that go to cordoned nodes, so that a variant has none.
func (w *preFilterState) out(what *carried) string {
	if w.checks && what.Cordoned() {
		return ""
	}
	return what.Out
}

// devicesOf are the devices that the pods of a variant go to that ask for them by the
// resource: what the autoscaler resolved counts first, so that both mean the same.
// There are none while nothing says them, or what does is ambiguous. It is an error when what is said contradicts the resource.
func (p *Plugin) devicesOf(ctx context.Context, v *v1alpha1.VariantAutoscaling, pod *corev1.Pod, resource corev1.ResourceName) ([]capacity.Device, error) {
	if s := observed(v); s != nil {
		return []capacity.Device{s.Device()}, nil
	}
	name, err := nameWanted(p.names, v, &pod.Spec)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The variant's accelerator is ambiguous; its pods go by their annotation and node selectors",
			"plugin", Name, "variant", klog.KObj(v), "reason", err.Error())
		return nil, nil
	}
	if !name.Known() {
		return nil, nil
	}
	name, err = name.As(resource)
	if err != nil {
		return nil, err
	}
	return []capacity.Device{name.Device()}, nil
}

// prefer puts what the pod itself selects before what the status of its variant says,
// where these differ: no node but those that it selects will admit it. The status may
// be from before the template was changed, of an autoscaler that is gone. What it says
// is still accepted, because a node may be corrected by a label that outranks the one
// that the pod selects it by. An accelerator that the object itself names counts
// whatever the pod selects, as it does for the autoscaler.
func (w *preFilterState) prefer(names *inventory.Names) {
	spec := &w.pod.Spec
	if w.any() || len(spec.NodeSelector) == 0 && spec.Affinity == nil {
		return
	}
	name, _, err := names.Resolve("", "", &corev1.PodTemplateSpec{Spec: *spec}, nil)
	if err != nil || !name.Known() {
		return
	}
	if name, err = name.As(w.resource); err != nil || !apart(name.Device(), w.devices[0]) {
		return
	}
	w.selected = name.Device()
	if w.stale = !w.otherwise(names, w.selected); w.stale {
		w.devices = []capacity.Device{w.selected, w.devices[0]}
	}
}

// otherwise reports whether the variant's object itself names another accelerator.
func (w *preFilterState) otherwise(names *inventory.Names, selected capacity.Device) bool {
	named, _, err := names.Resolve(w.variant.Spec.Accelerator, w.variant.Labels[v1alpha1.LabelAcceleratorName], nil, nil)
	if err == nil && named.Known() {
		named, err = named.As(w.resource)
	}
	return err != nil || named.Known() && apart(selected, named.Device())
}

// apart reports whether no device is both. Labels of different makers may call one
// form differently, so that forms are of no account.
func apart(a, b capacity.Device) bool {
	a.Form, b.Form = "", ""
	return !a.Covers(b) && !b.Covers(a)
}

// contradiction says that the pod and its variant name different accelerators; it is
// empty where they agree.
func (w *preFilterState) contradiction(names *inventory.Names) string {
	if w.variant == nil || w.any() {
		return ""
	}
	if w.stale {
		return fmt.Sprintf("; its node selector or affinity says %s, and the status of VariantAutoscaling %s still says %s", w.selected, w.variant.Name, w.devices[1])
	}
	if w.selected.Accelerator != "" {
		return fmt.Sprintf("; its node selector or affinity says %s, and VariantAutoscaling %s says %s: correct one of them", w.selected, w.variant.Name, w.devices[0])
	}
	listed, err := accepted(names, w.pod, w.resource)
	if err != nil || len(listed) == 0 || slices.ContainsFunc(listed, func(d capacity.Device) bool { return !apart(d, w.devices[0]) }) {
		return ""
	}
	return fmt.Sprintf("; its annotation %s says %s, but what VariantAutoscaling %s says counts: correct one of them",
		v1alpha1.AnnotationAccelerators, shorten(w.pod.Annotations[v1alpha1.AnnotationAccelerators]), w.variant.Name)
}
