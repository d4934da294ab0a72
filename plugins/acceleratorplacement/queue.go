package acceleratorplacement

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}, QueueingHintFn: p.afterPod},
	}, nil
}

// afterNode asks only whether the node could hold the pod if it were empty. What it
// carries is left to the next attempt, because labels and variants change too.
func (p *Plugin) afterNode(_ klog.Logger, pod *corev1.Pod, _, object any) (fwk.QueueingHint, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return fwk.Queue, nil
	}
	resource := inventory.DeviceOf(pod)
	if resource == "" {
		return fwk.Queue, nil
	}
	offered, ok := node.Status.Allocatable[resource]
	if !ok || offered.Sign() <= 0 || inventory.Out(node) != "" {
		return fwk.QueueSkip, nil
	}
	if takes, err := inventory.PodTakes(pod); err == nil && offered.Value() < int64(takes.Devices) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// afterPod asks whether the pod that is gone held devices of the resource that this
// one needs. CPU and memory are the business of the plugin that counts them.
func (p *Plugin) afterPod(_ klog.Logger, pod *corev1.Pod, object, _ any) (fwk.QueueingHint, error) {
	gone, ok := object.(*corev1.Pod)
	if !ok {
		return fwk.Queue, nil
	}
	if gone.Spec.NodeName == "" || inventory.DeviceOf(gone) != inventory.DeviceOf(pod) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// variantChanged wakes the waiting pods of a variant.
func (p *Plugin) variantChanged(variant *v1alpha1.VariantAutoscaling) {
	// Before the first pod has come by, none can wait, and there is no queue.
	if !p.scheduling.Load() {
		return
	}
	// The scheduler's cache of pods has no index by namespace.
	pods, err := p.owners.pods.List(labels.Everything())
	if err != nil {
		return
	}
	wanted := target{namespace: variant.Namespace, kind: kindOf(variant), name: variant.Spec.ScaleTargetRef.Name}
	wake := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || pod.Namespace != variant.Namespace || pod.Spec.SchedulerName != p.handle.ProfileName() {
			continue
		}
		if owners, _ := p.owners.of(pod); slices.Contains(owners, wanted) {
			wake[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	if len(wake) > 0 {
		p.handle.Activate(klog.Background().WithName(Name), wake)
	}
}

// signature is what the pods of one signature have in common, as far as this
// plugin's answers depend on the pod: what it takes, and who owns it.
type signature struct {
	Takes     inventory.Takes
	Namespace string                 `json:",omitempty"`
	Owner     *metav1.OwnerReference `json:",omitempty"`
}

// SignPod lets pods of the same owner share the work of one scheduling cycle. It
// looks at the pod alone.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	takes, err := inventory.PodTakes(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	s := signature{Takes: takes}
	if takes.Devices == 0 {
		return []fwk.SignFragment{{Key: Name, Value: s}}, nil
	}
	affinity, err := fwk.NodeAffinitySigner(pod)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("signing the node affinity of pod %s: %w", klog.KObj(pod), err))
	}
	s.Namespace, s.Owner = pod.Namespace, metav1.GetControllerOf(pod)
	return []fwk.SignFragment{
		{Key: Name, Value: s},
		// A variant's accelerator may be what its pods select.
		{Key: fwk.NodeAffinitySignerName, Value: affinity},
		{Key: fwk.NodeSelectorSignerName, Value: pod.Spec.NodeSelector},
	}, nil
}
