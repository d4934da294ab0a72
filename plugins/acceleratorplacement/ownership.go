package acceleratorplacement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Two schedulers that place pods on the same node race: each believes a device or a
// CPU free that the other has just given away, and the kubelet refuses the pod that
// comes second. So nodes belong to one scheduler, by a taint. What breaks that rule is
// told as events of the pods that break it, each once.

// Reasons of the events.
const (
	reasonForeign = "ForeignPodOnOwnedNode"
	reasonRefused = "RefusedForDevices"

	actionPlacing = "Scheduling"
)

// owns reports whether the node belongs to this profile by its taint.
func (p *Plugin) owns(node *corev1.Node) bool {
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		keepsAway := t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		if t.Key == v1alpha1.TaintScheduler && t.Value == p.profile && keepsAway {
			return true
		}
	}
	return false
}

// foreign are the pods of another scheduler on owned nodes.
func (p *Plugin) foreign(nodes []*corev1.Node, pods []*corev1.Pod) []*corev1.Pod {
	owned := map[string]bool{}
	for _, node := range nodes {
		if p.owns(node) {
			owned[node.Name] = true
		}
	}
	if len(owned) == 0 {
		return nil
	}
	var found []*corev1.Pod
	for _, pod := range pods {
		if owned[pod.Spec.NodeName] && pod.Spec.SchedulerName != p.profile && !harmless(pod) {
			found = append(found, pod)
		}
	}
	return found
}

// harmless reports whether a pod may sit on an owned node whoever placed it there: it
// leaves already, or it has no devices and is of the cluster's own equipment. That is
// a pod of a DaemonSet, one that a kubelet runs from a file, and one that tolerates
// every taint, as the operators of networks and drivers do: nobody could change them.
func harmless(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return true
	}
	if inventory.UsesDevices(pod) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || owner != nil && owner.Kind == "DaemonSet" || toleratesAll(pod)
}

func toleratesAll(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == "" && t.Operator == corev1.TolerationOpExists && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
	})
}

// mostTold bounds the events of one look at the cluster: a taint can come to nodes
// that are full of pods. The others are told at the next look.
const mostTold = 100

// reported remembers of which foreign pods it was told.
type reported struct {
	mu   sync.Mutex
	pods map[types.UID]bool
}

// first returns pods of which it was not told at the last call, and remembers all of
// which it now was.
func (t *reported) first(pods []*corev1.Pod) []*corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := make(map[types.UID]bool, len(pods))
	var fresh []*corev1.Pod
	for _, pod := range pods {
		if !t.pods[pod.UID] {
			if len(fresh) == mostTold {
				continue
			}
			fresh = append(fresh, pod)
		}
		now[pod.UID] = true
	}
	t.pods = now
	return fresh
}

// tellForeign says it in the events of foreign pods. A scheduler that only stands by
// keeps quiet: the one that leads says it.
func (p *Plugin) tellForeign(pods []*corev1.Pod) {
	if !p.scheduling.Load() {
		return
	}
	for _, pod := range p.reported.first(pods) {
		p.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, reasonForeign, actionPlacing,
			"%s placed it on node %s, which belongs to %s by its taint %s: two schedulers race for what is free there. Set schedulerName: %s, or let it go elsewhere: without a toleration of the taint it does not come back",
			nameOf(pod.Spec.SchedulerName), pod.Spec.NodeName, p.profile, v1alpha1.TaintScheduler, p.profile)
	}
}

func nameOf(scheduler string) string {
	if scheduler == "" {
		return "another scheduler"
	}
	return scheduler
}

// failedPods lists and watches failed pods alone.
func failedPods(client kubernetes.Interface) cache.ListerWatcher {
	const failed = "status.phase=" + string(corev1.PodFailed)
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = failed
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = failed
			return pods.Watch(ctx, options)
		},
	}, client)
}

// newFailed prepares an informer of failed pods, which the scheduler's own leaves
// out.
func (p *Plugin) newFailed(from cache.ListerWatcher) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(from, &corev1.Pod{}, 0, nil)
	if err := informer.SetTransform(slimFailed); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, before bool) {
			// Whoever led before has told of those that are there at the start.
			if pod, ok := object.(*corev1.Pod); ok && !before {
				p.seeRefused(pod)
			}
		},
	})
	return informer, err
}

// slimFailed keeps what says why a pod failed: thousands of them may lie about.
func slimFailed(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{}
	slim.Namespace, slim.Name, slim.UID, slim.ResourceVersion = pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion
	slim.Spec.NodeName, slim.Spec.SchedulerName = pod.Spec.NodeName, pod.Spec.SchedulerName
	slim.Status.Phase, slim.Status.Reason = pod.Status.Phase, pod.Status.Reason
	for i := range pod.Spec.Containers {
		slim.Spec.Containers = append(slim.Spec.Containers, corev1.Container{Resources: pod.Spec.Containers[i].Resources})
	}
	return slim, nil
}

// How the kubelet names the refusal of a pod: by the resource that it has too little
// of; when a device plugin does not hand out what it offered; or when its topology
// manager may not give the pod devices and CPUs that lie so far apart.
const (
	outOf                    = "OutOf"
	unexpectedAdmissionError = "UnexpectedAdmissionError"
	topologyAffinityError    = "TopologyAffinityError"
)

// A refusal that comes while this scheduler stands by is the leader's to tell. It is
// kept for a while all the same, because it may be of the time between two leaders.
const (
	keepRefusals = 5 * time.Minute
	mostRefusals = 100
)

// beforeLead are the refusals from before this scheduler led, the oldest first.
type beforeLead struct {
	mu   sync.Mutex
	pods []*corev1.Pod
	came []time.Time
}

// keep remembers a refusal, unless this scheduler leads by now.
func (e *beforeLead) keep(pod *corev1.Pod, leads func() bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if leads() {
		return false
	}
	e.pods, e.came = append(e.pods, pod), append(e.came, time.Now())
	if len(e.pods) > mostRefusals {
		e.pods, e.came = slices.Delete(e.pods, 0, 1), slices.Delete(e.came, 0, 1)
	}
	return true
}

// take returns those that are not too old, and forgets all.
func (e *beforeLead) take() []*corev1.Pod {
	e.mu.Lock()
	defer e.mu.Unlock()
	recent := len(e.came)
	for recent > 0 && time.Since(e.came[recent-1]) < keepRefusals {
		recent--
	}
	pods := e.pods[recent:]
	e.pods, e.came = nil, nil
	return pods
}

// refusedForDevices reports whether a failed pod was refused for want of devices.
func refusedForDevices(pod *corev1.Pod) bool {
	if resource, ok := strings.CutPrefix(pod.Status.Reason, outOf); ok {
		return inventory.IsDevice(corev1.ResourceName(resource))
	}
	known := pod.Status.Reason == unexpectedAdmissionError || pod.Status.Reason == topologyAffinityError
	return known && inventory.UsesDevices(pod)
}

// seeRefused tells of a failed pod that a kubelet refused for want of devices, where
// this scheduler placed it or owns the node, once it leads.
func (p *Plugin) seeRefused(pod *corev1.Pod) {
	if !refusedForDevices(pod) {
		return
	}
	node, err := p.nodes.Get(pod.Spec.NodeName)
	if pod.Spec.SchedulerName != p.profile && (err != nil || !p.owns(node)) {
		return
	}
	if !p.beforeLead.keep(pod, p.scheduling.Load) {
		p.tellRefused(pod)
	}
}

// causeOfRefusal is the reason without what a cluster makes up, such as the slices of
// its devices: the maker's name is enough.
func causeOfRefusal(reason string) string {
	cause, _, _ := strings.Cut(reason, "/")
	return cause
}

// tellRefused counts a pod that was refused, and says it in its event. The scheduler
// that leads does so alone: the counts of two would add up.
func (p *Plugin) tellRefused(pod *corev1.Pod) {
	refusals.WithLabelValues(p.profile, causeOfRefusal(pod.Status.Reason)).Inc()
	why := fmt.Sprintf("something else holds the devices that it was placed on. See that %s alone places pods with devices there: taint the node %s=%s:NoSchedule",
		p.profile, v1alpha1.TaintScheduler, p.profile)
	if pod.Status.Reason == topologyAffinityError {
		why = "its topology manager found no devices and CPUs near enough to each other, of which schedulers know nothing. Ask for what one NUMA node holds, or set another topologyManagerPolicy for the kubelet"
	}
	p.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, reasonRefused, actionPlacing,
		"the kubelet of node %s refused it (%s): %s", pod.Spec.NodeName, pod.Status.Reason, why)
}
