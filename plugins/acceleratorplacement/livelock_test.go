package acceleratorplacement

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// queue is a model of the scheduler's queue with this plugin alone: pods that were
// turned down wait, events move those for which a hint says so, and events that come
// while a pod is being tried count once it comes back.
type queue struct {
	*world
	t   *testing.T
	rng *rand.Rand

	nodes    []fwk.NodeInfo
	bound    map[string]*corev1.Pod
	active   []*corev1.Pod
	asleep   map[string]*corev1.Pod
	inFlight *corev1.Pod
	// later are pods that come back after a back-off, because something could not be
	// read.
	later []*corev1.Pod
	// unread is set while the variants are not to be read.
	unread  bool
	invalid int
	// recalled is set when something happened that brings the pod in flight back.
	recalled bool
	serial   int
	placed   int
	named    bool
}

// event is one event as the queue hands it to the hints of one kind.
type event struct {
	kind          int
	before, after any
	// node is where it happened.
	node *nodeInfo
}

func newQueue(t *testing.T, seed uint64) *queue {
	var objects []runtime.Object
	var served []*v1alpha1.VariantAutoscaling
	for i, accelerator := range []string{"H100", "A100", "A100-80GB"} {
		name := fmt.Sprintf("v%d", i)
		objects = append(objects, deployed(name))
		served = append(served, variant(name, accelerator, 0))
	}
	q := &queue{world: newWorld(t, objects, served...), t: t, rng: rand.New(rand.NewPCG(seed, 99)), bound: map[string]*corev1.Pod{}, asleep: map[string]*corev1.Pod{}}
	synced := q.variants.synced
	q.variants.synced = func() bool { return !q.unread && synced() }
	q.handle.onActivate = func(pods map[string]*corev1.Pod) {
		for _, pod := range pods {
			q.wakeUp(pod)
			q.recalled = q.recalled || q.inFlight != nil && q.inFlight.UID == pod.UID
		}
	}
	return q
}

func (q *queue) wakeUp(pod *corev1.Pod) {
	if _, waits := q.asleep[pod.Name]; waits {
		delete(q.asleep, pod.Name)
		q.active = append(q.active, pod)
	}
}

// try is one scheduling cycle, with events in the middle of it.
func (q *queue) try(pod *corev1.Pod) {
	ctx, state := context.Background(), newState()
	snapshot := q.snapshot()
	q.handle.nodes = snapshot
	narrowed, status := q.PreFilter(ctx, state, pod, snapshot)
	switch {
	case status.IsSuccess():
		for i, n := range snapshot {
			if (narrowed.AllNodes() || narrowed.NodeNames.Has(n.Node().Name)) && q.Filter(ctx, state, pod, n).IsSuccess() {
				q.bind(pod, q.nodes[i].(*nodeInfo))
				return
			}
		}
	case status.Code() == fwk.Error:
		require.True(q.t, q.unread, status.Message())
		q.later = append(q.later, pod)
		return
	default:
		require.True(q.t, status.IsRejected(), status.Message())
		q.invalid++
	}
	q.inFlight, q.recalled = pod, false
	var meanwhile []event
	for range q.rng.IntN(3) {
		meanwhile = append(meanwhile, q.happen()...)
	}
	_, status = q.PostFilter(ctx, state, pod, nil)
	require.True(q.t, status.IsRejected())
	q.inFlight = nil
	for _, e := range meanwhile {
		q.recalled = q.recalled || q.asked(pod, e)
	}
	if q.recalled {
		q.active = append(q.active, pod)
	} else {
		q.asleep[pod.Name] = pod
	}
}

// snapshot copies what can change under a pod that is being tried.
func (q *queue) snapshot() []fwk.NodeInfo {
	copied := make([]fwk.NodeInfo, len(q.nodes))
	for i := range q.nodes {
		n := *q.nodes[i].(*nodeInfo)
		n.requested.scalars = maps.Clone(n.requested.scalars)
		copied[i] = &n
	}
	return copied
}

func (q *queue) bind(pod *corev1.Pod, n *nodeInfo) {
	q.placed++
	bound := pod.DeepCopy()
	bound.Spec.NodeName = n.node.Name
	q.bound[pod.Name] = bound
	q.take(n, bound, 1)
	q.see(q.t, bound)
}

func (q *queue) take(n *nodeInfo, pod *corev1.Pod, sign int64) {
	takes, err := inventory.PodTakes(pod)
	require.NoError(q.t, err)
	n.requested.scalars[takes.Resource] += sign * int64(takes.Devices)
	n.requested.milliCPU += sign * takes.MilliCPU
}

// asked is what the hint says, which must not bring back a pod that the node could
// not hold even if it were empty.
func (q *queue) asked(pod *corev1.Pod, e event) bool {
	events, err := q.EventsToRegister(context.Background())
	require.NoError(q.t, err)
	hint, err := events[e.kind].QueueingHintFn(klog.Background(), pod, e.before, e.after)
	require.NoError(q.t, err)
	t := q.waiting.of(pod.UID)
	require.False(q.t, t.hopeless() && hint == fwk.Queue, "%s was brought back, though no event can help it", pod.Name)
	if known := t.asks; known != nil && hint == fwk.Queue {
		empty := *e.node
		empty.requested = resources{}
		if after, ok := e.after.(*corev1.Node); ok {
			// The node may have changed again since.
			empty.node = after
		}
		view := q.view(known, &empty, nil)
		switch verdict := view.verdict(); verdict {
		case placement.Fits, placement.TooLittleCPU:
		default:
			q.t.Fatalf("%s was brought back by an event on node %s, on which it never fits: %s", pod.Name, e.node.node.Name, verdict)
		}
	}
	return hint == fwk.Queue
}

// happen changes the cluster at random and lets the queue see it.
func (q *queue) happen() []event {
	events := q.change()
	for _, e := range events {
		for _, name := range slices.Sorted(maps.Keys(q.asleep)) {
			if pod := q.asleep[name]; q.asked(pod, e) {
				q.wakeUp(pod)
			}
		}
	}
	return events
}

var eventProducts = []string{h100, a100, "NVIDIA-A100-SXM4-40GB", "NVIDIA-FOO", ""}

func (q *queue) change() []event {
	switch kind := q.rng.IntN(13); {
	case kind < 2 || len(q.nodes) == 0:
		return q.addNode()
	case kind == 2:
		return q.removeNode()
	case kind < 6:
		return q.updateNode()
	case kind < 9:
		return q.removePod()
	case kind == 9:
		q.changeVariant()
	case kind == 10:
		q.changeNames()
	case kind == 11:
		q.unread = q.rng.IntN(4) == 0
	default:
		q.addPod()
	}
	return nil
}

func (q *queue) addNode() []event {
	if len(q.nodes) > 6 {
		return nil
	}
	q.serial++
	n := node(fmt.Sprintf("n%d", q.serial), eventProducts[q.rng.IntN(len(eventProducts))], q.rng.IntN(3)*4, 0)
	n.node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(2 + q.rng.IntN(4)))
	q.nodes = append(slices.Clone(q.nodes), n)
	q.see(q.t, n.node)
	return []event{{kind: 0, after: n.node, node: n}}
}

func (q *queue) removeNode() []event {
	at := q.rng.IntN(len(q.nodes))
	n := q.nodes[at].(*nodeInfo)
	var events []event
	for _, name := range slices.Sorted(maps.Keys(q.bound)) {
		if q.bound[name].Spec.NodeName == n.node.Name {
			events = append(events, q.gone(name)...)
		}
	}
	q.nodes = slices.Delete(slices.Clone(q.nodes), at, at+1)
	q.lose(q.t, n.node)
	return events
}

func (q *queue) updateNode() []event {
	n := q.nodes[q.rng.IntN(len(q.nodes))].(*nodeInfo)
	before := n.node
	after := before.DeepCopy()
	switch q.rng.IntN(6) {
	case 0:
		after.Labels["nvidia.com/gpu.product"] = eventProducts[q.rng.IntN(len(eventProducts))]
	case 1:
		after.Spec.Unschedulable = !after.Spec.Unschedulable
	case 2:
		ready := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}
		after.Status.Conditions[0].Status = ready[q.rng.IntN(2)]
	case 3:
		after.Status.Allocatable[gpu] = *resource.NewQuantity(int64(q.rng.IntN(9)), resource.DecimalSI)
	case 4:
		after.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(1 + q.rng.IntN(6)))
	default:
		after.Labels["of-no-account"] = fmt.Sprint(q.rng.Int())
	}
	n.node = after
	q.see(q.t, after)
	return []event{{kind: 0, before: before, after: after, node: n}}
}

func (q *queue) removePod() []event {
	names := slices.Sorted(maps.Keys(q.bound))
	if len(names) == 0 {
		return nil
	}
	return q.gone(names[q.rng.IntN(len(names))])
}

func (q *queue) gone(name string) []event {
	pod := q.bound[name]
	delete(q.bound, name)
	q.lose(q.t, pod)
	for _, info := range q.nodes {
		if n := info.(*nodeInfo); n.node.Name == pod.Spec.NodeName {
			q.take(n, pod, -1)
			return []event{{kind: 1, before: pod, node: n}}
		}
	}
	return nil
}

func (q *queue) changeVariant() {
	indexer := q.variants.informer.GetIndexer()
	object, found, err := indexer.GetByKey(fmt.Sprintf("llm/v%d", q.rng.IntN(3)))
	require.NoError(q.t, err)
	require.True(q.t, found)
	before := object.(*v1alpha1.VariantAutoscaling)
	after := before.DeepCopy()
	after.Spec.Accelerator = []string{"H100", "A100", "A100-80GB", ""}[q.rng.IntN(4)]
	require.NoError(q.t, indexer.Update(after))
	q.variants.event(before, after)
}

func (q *queue) changeNames() {
	q.named = !q.named
	overrides := inventory.Overrides{}
	if q.named {
		var err error
		overrides, err = inventory.ParseOverrides(map[string]string{"NVIDIA-FOO": "H100"})
		require.NoError(q.t, err)
	}
	q.setNames(klog.Background(), overrides)
}

func (q *queue) addPod() {
	if len(q.asleep)+len(q.active)+len(q.later) > 8 {
		return
	}
	q.serial++
	pod := gpuPod(fmt.Sprintf("p%d", q.serial), 1+q.rng.IntN(5), deployed(fmt.Sprintf("v%d", q.rng.IntN(3))))
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(1 + q.rng.IntN(3)))
	if q.rng.IntN(4) == 0 {
		pod.OwnerReferences = nil
		pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: "A100-80GB,H100"}
	}
	switch q.rng.IntN(10) {
	case 0:
		pod.Spec.Containers[0].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
	case 1:
		// A contradiction while its variant says what it is.
		delete(pod.Spec.Containers[0].Resources.Requests, gpu)
		pod.Spec.Containers[0].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
	case 2:
		pod.OwnerReferences = nil
		pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: "H100,,"}
	}
	q.see(q.t, pod)
	q.active = append(q.active, pod)
}

// settle tries pods until none is left that should be.
func (q *queue) settle() {
	q.active, q.later = append(q.active, q.later...), nil
	for steps := 0; len(q.active) > 0; steps++ {
		require.Less(q.t, steps, 10_000, "the queue does not come to rest")
		pod := q.active[0]
		q.active = q.active[1:]
		q.try(pod)
	}
}

// A pod that could fit is never left waiting, whatever happens in whatever order, also
// while it is being tried; and no event brings back a pod that it cannot help.
func TestNoPodWaitsThatCouldFit(t *testing.T) {
	placed, waited, invalid := 0, 0, 0
	for seed := range uint64(30) {
		q := newQueue(t, seed)
		for step := range 600 {
			q.happen()
			q.settle()
			for _, name := range slices.Sorted(maps.Keys(q.asleep)) {
				waited++
				w, status := q.preFilterStateOf(context.Background(), q.asleep[name])
				if status.IsRejected() || q.unread {
					continue
				}
				require.True(t, status.IsSuccess(), status.Message())
				for _, info := range q.nodes {
					v := q.view(w, info, nil)
					require.NotEqual(t, placement.Fits, v.verdict(), "seed %d, step %d: %s waits and would fit on %s", seed, step, name, info.Node().Name)
				}
			}
		}
		placed, invalid = placed+q.placed, invalid+q.invalid
	}
	require.Greater(t, placed, 500)
	require.Greater(t, waited, 5_000)
	require.Greater(t, invalid, 100)
}
