package acceleratorplacement

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/component-base/metrics/testutil"

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

func TestForeignPodsOnOwnedNodesAreToldOnce(t *testing.T) {
	foreign := placedBy("default-scheduler", "foreign", "ours", 1)
	w := newWorld(t, []runtime.Object{
		owned(node("ours", h100, 8, 0), "variant-scheduler").node, owned(node("theirs", h100, 8, 0), "another").node, node("nobodys", h100, 8, 0).node,
		foreign, placedBy("variant-scheduler", "own", "ours", 1), placedBy("default-scheduler", "web", "ours", 0),
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
		"two schedulers race for its devices. Set schedulerName: variant-scheduler, or remove the toleration of the taint", events[0])
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
	require.Eventually(t, func() bool { return counted("OutOfnvidia.com") == 1 }, time.Minute, time.Millisecond)
	assert.Empty(t, w.told(), "it may only stand by")
	w.schedule(t, gpuPod("web", 0, nil))
	events := w.told()
	require.Len(t, events, 1, "nobody else told it")
	assert.Contains(t, events[0], "refused it (OutOfnvidia.com/mig-1g.10gb)")

	for _, pod := range []*corev1.Pod{
		failedFor(outOfGPUs, ours, "late", "nobodys", 1),
		failedFor("UnexpectedAdmissionError", "default-scheduler", "foreign", "ours", 1),
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
		return len(events) >= 3
	}, time.Minute, time.Millisecond)
	require.Len(t, events, 3)
	for _, e := range events {
		assert.True(t, strings.HasPrefix(e, "Warning RefusedForDevices the kubelet of node "), e)
	}
	assert.Contains(t, events[0], "node nobodys refused it (OutOfnvidia.com/gpu)")
	assert.Contains(t, events[0], "wva.llmd.ai/scheduler=variant-scheduler:NoSchedule")
	for reason, want := range map[string]float64{"OutOfnvidia.com": 3, "UnexpectedAdmissionError": 1, "OutOfcpu": 0} {
		assert.Equal(t, want, counted(reason), reason)
	}
	for _, object := range informer.GetStore().List() {
		assert.Empty(t, object.(*corev1.Pod).Spec.Containers[0].Name, "only what is needed is kept")
	}
}
