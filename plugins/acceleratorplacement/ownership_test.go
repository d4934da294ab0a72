package acceleratorplacement

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// owned gives the node to a scheduler by its taint.
func owned(n *nodeInfo, scheduler string) *nodeInfo {
	n.node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintScheduler, Value: scheduler, Effect: corev1.TaintEffectNoSchedule}}
	return n
}

// told are the events so far.
func (w *world) told() (events []string) {
	for {
		select {
		case e := <-w.handle.recorder.Events:
			events = append(events, e)
		default:
			return events
		}
	}
}

func placedBy(scheduler, name, node string, devices int) *corev1.Pod {
	pod := gpuPod(name, devices, nil)
	pod.Spec.SchedulerName, pod.Spec.NodeName = scheduler, node
	return pod
}

// equipment is a pod of another scheduler that may be anywhere.
func equipment(name string) *corev1.Pod {
	pod := placedBy("default-scheduler", name, "ours", 0)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

func TestWhatIsForeignToAnOwnedNode(t *testing.T) {
	daemon := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "exporter", Controller: ptr.To(true)}
	for name, c := range map[string]struct {
		devices int
		change  func(*corev1.Pod)
		foreign bool
	}{
		"with devices":                  {1, func(*corev1.Pod) {}, true},
		"without devices":               {0, func(*corev1.Pod) {}, true},
		"its own":                       {0, func(p *corev1.Pod) { p.Spec.SchedulerName = "variant-scheduler" }, false},
		"elsewhere":                     {1, func(p *corev1.Pod) { p.Spec.NodeName = "nobodys" }, false},
		"a daemon":                      {0, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{daemon} }, false},
		"a daemon with devices":         {1, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{daemon} }, true},
		"static":                        {0, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, false},
		"terminating":                   {1, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, false},
		"tolerates every taint":         {0, func(p *corev1.Pod) { p.Spec.Tolerations = equipment("e").Spec.Tolerations }, false},
		"tolerates it, and has devices": {1, func(p *corev1.Pod) { p.Spec.Tolerations = equipment("e").Spec.Tolerations }, true},
		"tolerates this taint": {0, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintScheduler, Operator: corev1.TolerationOpExists}}
		}, true},
		"tolerates every taint that evicts": {0, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
		}, true},
	} {
		for effect, owns := range map[corev1.TaintEffect]bool{corev1.TaintEffectNoSchedule: true, corev1.TaintEffectNoExecute: true, corev1.TaintEffectPreferNoSchedule: false} {
			ours := owned(node("ours", h100, 8, 0), "variant-scheduler").node
			ours.Spec.Taints[0].Effect = effect
			pod := placedBy("default-scheduler", "p", "ours", c.devices)
			c.change(pod)
			found := newWorld(t, nil).foreign([]*corev1.Node{ours, node("nobodys", h100, 8, 0).node}, []*corev1.Pod{pod})
			assert.Equal(t, c.foreign && owns, len(found) == 1, "%s, %s", name, effect)
		}
	}
}

func TestATaintOnAFullClusterIsNoFloodOfEvents(t *testing.T) {
	var pods []*corev1.Pod
	for i := range mostTold + 10 {
		pods = append(pods, placedBy("default-scheduler", strconv.Itoa(i), "ours", 0))
	}
	var known reported
	seen := map[types.UID]int{}
	for _, want := range []int{mostTold, 10, 0} {
		fresh := known.first(pods)
		assert.Len(t, fresh, want)
		for _, pod := range fresh {
			seen[pod.UID]++
			assert.Equal(t, 1, seen[pod.UID])
		}
	}
}

func TestForeignPodsOnOwnedNodesAreToldOnce(t *testing.T) {
	foreign := placedBy("default-scheduler", "foreign", "ours", 1)
	w := newWorld(t, []runtime.Object{
		owned(node("ours", h100, 8, 0), "variant-scheduler").node, owned(node("theirs", h100, 8, 0), "another").node, node("nobodys", h100, 8, 0).node,
		foreign, placedBy("variant-scheduler", "own", "ours", 1), equipment("web"),
		placedBy("default-scheduler", "elsewhere", "nobodys", 1), placedBy("default-scheduler", "at-theirs", "theirs", 1),
	})
	ctx := context.Background()
	w.takeStock(ctx)
	assert.Empty(t, w.told(), "a scheduler that stands by keeps quiet")
	w.schedule(t, gpuPod("web", 0, nil))
	w.takeStock(ctx)
	events := w.told()
	require.Len(t, events, 1)
	assert.Equal(t, "Warning ForeignPodOnOwnedNode default-scheduler placed it on node ours, which belongs to variant-scheduler by its taint wva.llmd.ai/scheduler: "+
		"two schedulers race for what is free there. Set schedulerName: variant-scheduler, or let it go elsewhere: without a toleration of the taint it does not come back", events[0])
	assert.Equal(t, 1.0, gaugeOf(t, "acceleratorplacement_foreign_pods", nil))
	w.takeStock(ctx)
	assert.Empty(t, w.told())

	w.lose(t, foreign)
	w.takeStock(ctx)
	assert.Equal(t, 0.0, gaugeOf(t, "acceleratorplacement_foreign_pods", nil))
	w.see(t, foreign)
	w.takeStock(ctx)
	assert.Len(t, w.told(), 1, "it came back")
}

// failedFor is a pod that a kubelet refused.
func failedFor(reason, scheduler, name, node string, devices int) *corev1.Pod {
	pod := placedBy(scheduler, name, node, devices)
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, reason
	return pod
}

func TestRefusalsOfKubeletsAreToldOnce(t *testing.T) {
	registerMetrics()
	refusals.Reset()
	w := newWorld(t, []runtime.Object{owned(node("ours", h100, 8, 0), "variant-scheduler").node, node("nobodys", h100, 8, 0).node})
	source := fcache.NewFakeControllerSource()
	const ours, outOfGPUs = "variant-scheduler", "OutOfnvidia.com/gpu"
	source.Add(failedFor(outOfGPUs, ours, "before", "ours", 1))
	informer, err := w.newFailed(source)
	require.NoError(t, err)
	go informer.RunWithContext(t.Context())
	require.Eventually(t, informer.HasSynced, time.Minute, time.Millisecond)
	counted := func(reason string) float64 {
		got, err := testutil.GetCounterMetricValue(refusals.WithLabelValues("variant-scheduler", reason))
		require.NoError(t, err)
		return got
	}
	source.Add(failedFor("OutOfnvidia.com/mig-1g.10gb", ours, "early", "nobodys", 1))
	kept := func() bool {
		w.beforeLead.mu.Lock()
		defer w.beforeLead.mu.Unlock()
		return len(w.beforeLead.pods) == 1
	}
	require.Eventually(t, kept, time.Minute, time.Millisecond)
	assert.Empty(t, w.told(), "it may only stand by")
	assert.Equal(t, 0.0, counted("OutOfnvidia.com"), "the one that leads counts it")
	w.schedule(t, gpuPod("web", 0, nil))
	assert.Equal(t, 1.0, counted("OutOfnvidia.com"))
	events := w.told()
	require.Len(t, events, 1, "nobody else told it")
	assert.Contains(t, events[0], "refused it (OutOfnvidia.com/mig-1g.10gb)")

	for _, pod := range []*corev1.Pod{
		failedFor(outOfGPUs, ours, "late", "nobodys", 1),
		failedFor("UnexpectedAdmissionError", "default-scheduler", "foreign", "ours", 1),
		failedFor("TopologyAffinityError", ours, "numa", "ours", 1),
		failedFor("TopologyAffinityError", ours, "web", "ours", 0),
		failedFor("UnexpectedAdmissionError", ours, "web", "ours", 0),
		failedFor("OutOfcpu", ours, "starved", "ours", 1),
		failedFor("Evicted", ours, "evicted", "ours", 1),
		failedFor(outOfGPUs, "default-scheduler", "elsewhere", "nobodys", 1),
		failedFor(outOfGPUs, ours, "last", "ours", 1),
	} {
		source.Add(pod)
	}
	events = nil
	require.Eventually(t, func() bool {
		events = append(events, w.told()...)
		return len(events) >= 4
	}, time.Minute, time.Millisecond)
	require.Len(t, events, 4)
	for _, e := range events {
		assert.True(t, strings.HasPrefix(e, "Warning RefusedForDevices the kubelet of node "), e)
	}
	assert.Contains(t, events[0], "node nobodys refused it (OutOfnvidia.com/gpu)")
	assert.Contains(t, events[0], "wva.llmd.ai/scheduler=variant-scheduler:NoSchedule")
	assert.Contains(t, events[2], "refused it (TopologyAffinityError)")
	assert.Contains(t, events[2], "topology manager", "no other scheduler is to blame")
	for reason, want := range map[string]float64{"OutOfnvidia.com": 3, "UnexpectedAdmissionError": 1, "TopologyAffinityError": 1, "OutOfcpu": 0} {
		assert.Equal(t, want, counted(reason), reason)
	}
	for _, object := range informer.GetStore().List() {
		assert.Empty(t, object.(*corev1.Pod).Spec.Containers[0].Name, "only what is needed is kept")
	}
}
