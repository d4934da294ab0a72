package acceleratorplacement

import (
	"context"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// EventsToRegister are the events after which a pod that this plugin turned down may
// fit. Changes of variants are not among them: the scheduler would wait for their
// CRD, so the plugin's own informer wakes their pods.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	node := fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: node}, QueueingHintFn: p.afterNode},
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown}, QueueingHintFn: p.afterPod},
	}, nil
}

// A hint must not lose an event that can help: then the pod would wait for minutes.
// It asks only whether the node could hold the pod if it were empty. Every change
// from no to yes, and every pod that leaves a node of which the answer is yes, lets
// the pod be tried again. The answer depends on nothing but the node and what the pod
// wants; when the latter changes, the pod is woken.

// afterNode lets a node through that could hold the pod and could not before, or has
// more of anything than before.
func (p *Plugin) afterNode(_ klog.Logger, pod *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	now, ok := after.(*corev1.Node)
	if !ok {
		return fwk.Queue, nil
	}
	t := p.waiting.of(pod.UID)
	if t.hopeless() {
		return fwk.QueueSkip, nil
	}
	w := t.asks
	if w == nil {
		return fwk.Queue, nil
	}
	have := p.recalled(&p.lastAfter, now)
	if !w.couldUse(have) {
		return fwk.QueueSkip, nil
	}
	old, ok := before.(*corev1.Node)
	if !ok {
		return fwk.Queue, nil
	}
	if had := p.recalled(&p.lastBefore, old); w.couldUse(had) && !w.gains(had, have) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// afterPod lets a pod through that leaves a node, or takes less of it, which could
// hold the waiting one.
func (p *Plugin) afterPod(_ klog.Logger, pod *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	moved, ok := before.(*corev1.Pod)
	if now, updated := after.(*corev1.Pod); updated {
		moved, ok = now, true
	}
	if !ok || moved.UID == pod.UID {
		return fwk.Queue, nil
	}
	name := moved.Spec.NodeName
	if name == "" {
		// A node was kept free for it.
		name = moved.Status.NominatedNodeName
	}
	if name == "" {
		return fwk.QueueSkip, nil
	}
	t := p.waiting.of(pod.UID)
	if t.hopeless() {
		return fwk.QueueSkip, nil
	}
	w := t.asks
	if w == nil {
		return fwk.Queue, nil
	}
	// A node that is not there is gone, or its own event is still to come.
	if node, err := p.nodes.Get(name); err == nil && w.couldUse(p.recalled(&p.lastAfter, node)) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// recalled is what the node carries. One event meets many waiting pods, so that what
// was asked last is remembered.
func (p *Plugin) recalled(last *atomic.Pointer[carried], node *corev1.Node) *carried {
	if known := last.Load(); known != nil && known.node == node && known.generation == p.names.Generation() {
		return known
	}
	what := p.catalog.of(p.names, node)
	last.Store(what)
	return what
}

// couldUse reports whether the node could hold the pod if no other pod were on it.
func (w *preFilterState) couldUse(what *carried) bool {
	if w.out(what) != "" {
		return false
	}
	pool, _, ok := w.choose(what)
	return ok && what.Devices[pool].Count >= w.shape.Devices
}

// gains reports whether the node offers more than before of something that the pod
// needs, or other devices.
func (w *preFilterState) gains(had, have *carried) bool {
	before, _, _ := w.choose(had)
	after, _, _ := w.choose(have)
	if had.devices[before] != have.devices[after] || have.Devices[after].Count > had.Devices[before].Count {
		return true
	}
	more := func(resource corev1.ResourceName) bool {
		now, then := have.node.Status.Allocatable[resource], had.node.Status.Allocatable[resource]
		return now.Cmp(then) > 0
	}
	return more(corev1.ResourceCPU) || more(corev1.ResourceMemory) || more(corev1.ResourcePods)
}

// variantChanged wakes the waiting pods of a variant.
func (p *Plugin) variantChanged(variant *v1alpha1.VariantAutoscaling) {
	if variant == nil {
		p.wakeAll(klog.Background().WithName(Name))
		return
	}
	wanted := targetOf(variant)
	p.wake(klog.Background().WithName(Name), func(pod *corev1.Pod) bool {
		if pod.Namespace != variant.Namespace {
			return false
		}
		owners, _ := p.owners.of(pod)
		return slices.Contains(owners, wanted)
	})
}

// wakeAll wakes every waiting pod with devices.
func (p *Plugin) wakeAll(logger klog.Logger) { p.wake(logger, inventory.UsesDevices) }

// wake has the pods tried again that are on no node, also one that is being tried
// now.
func (p *Plugin) wake(logger klog.Logger, concerned func(*corev1.Pod) bool) {
	// Before the first pod has come by, none can wait, and there is no queue.
	if !p.scheduling.Load() {
		return
	}
	// The scheduler's cache of pods has no index by namespace.
	pods, err := p.owners.pods.List(labels.Everything())
	if err != nil {
		return
	}
	found := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && pod.Spec.SchedulerName == p.profile && concerned(pod) {
			found[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	if len(found) > 0 {
		p.handle.Activate(logger, found)
	}
}
