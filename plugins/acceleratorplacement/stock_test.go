package acceleratorplacement

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// gaugeOf is the value that the scheduler serves.
func gaugeOf(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	registerMetrics()
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if testutil.LabelsMatch(m, labels) {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no %s with %v", name, labels)
	return 0
}

func TestTheMetricsSayWhatIsLeft(t *testing.T) {
	rs := templated("v", "1", func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: resource.MustParse("2")}
	})
	rs.UID = "now"
	before := deployed("v")
	larger, tooLarge := gpuPod("larger", 4, before), gpuPod("too-large", 16, before)
	held := placedBy("variant-scheduler", "held", "half", 5)
	v := wanting("v", "H100", 2, 3, 3)
	w := newWorld(t, []runtime.Object{rs, before, node("whole", h100, 8, 0).node, node("half", h100, 8, 0).node, node("other", a100, 8, 0).node, held, larger, tooLarge}, v)
	w.ruled(t)
	cordoned := node("cordoned", h100, 8, 0)
	cordoned.node.Spec.Unschedulable = true
	w.see(t, cordoned.node)
	w.handle.nodes = infosOf(node("half", h100, 8, 5))
	w.schedule(t, gpuPod("first", 1, rs))
	w.handle.nodes = infosOf(node("half", h100, 8, 5))
	w.turnDown(t, larger)
	w.turnDown(t, tooLarge)
	w.takeStock(context.Background())

	expected := `
# HELP acceleratorplacement_foreign_pods [ALPHA] Pods of another scheduler on nodes whose taint gives them to this one. Pods without devices are left out when they belong to a DaemonSet, are static, or tolerate every taint.
# TYPE acceleratorplacement_foreign_pods gauge
acceleratorplacement_foreign_pods{profile="variant-scheduler"} 0
# HELP acceleratorplacement_fragmented_devices [ALPHA] Free devices that no mix of the variants' shapes can use where they are.
# TYPE acceleratorplacement_fragmented_devices gauge
acceleratorplacement_fragmented_devices{accelerator="A100",profile="variant-scheduler"} 8
acceleratorplacement_fragmented_devices{accelerator="H100",profile="variant-scheduler"} 1
# HELP acceleratorplacement_free_devices [ALPHA] Devices that no pod holds, on nodes that take pods.
# TYPE acceleratorplacement_free_devices gauge
acceleratorplacement_free_devices{accelerator="A100",profile="variant-scheduler"} 8
acceleratorplacement_free_devices{accelerator="H100",profile="variant-scheduler"} 11
# HELP acceleratorplacement_free_slots [ALPHA] How many more pods of a variant's shape fit now, if nothing else is placed: by the same count as wva_variant_free_slots, which also leaves room for replicas that were asked for and are not placed yet. Of several variants of one shape, that of which the most fit. Pods of a variant without a ReplicaSet or StatefulSet that the scheduler sees may use every node. Where the scheduler may not read runtime classes, priority classes or resource quotas, at most that many fit.
# TYPE acceleratorplacement_free_slots gauge
acceleratorplacement_free_slots{cpu="0",device_memory_gib="",form="",memory="0",profile="variant-scheduler",shape="2xH100"} 5
# HELP acceleratorplacement_unplaceable_pods [ALPHA] Pods with devices that found no node, by what the best nodes lacked.
# TYPE acceleratorplacement_unplaceable_pods gauge
acceleratorplacement_unplaceable_pods{profile="variant-scheduler",reason="too few devices"} 1
acceleratorplacement_unplaceable_pods{profile="variant-scheduler",reason="too few free devices"} 1
`
	registerMetrics()
	require.NoError(t, testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(expected),
		"acceleratorplacement_foreign_pods", "acceleratorplacement_fragmented_devices", "acceleratorplacement_free_devices",
		"acceleratorplacement_free_slots", "acceleratorplacement_unplaceable_pods"))

	w.lose(t, larger)
	w.takeStock(context.Background())
	assert.Len(t, w.waiting.list(), 1, "a pod that is gone waits no longer")
}

// A type that nobody knows is called by its text, which can be that of a narrower
// known one.
func TestShapesThatAreWrittenAlikeHaveSeriesOfTheirOwn(t *testing.T) {
	registerMetrics()
	const profile = "alike"
	t.Cleanup(func() { cluster.found.Delete(profile) })
	cluster.report(profile, &stock{slots: map[capacity.Shape]int{
		{Accelerator: "A100-80GB", Devices: 1}:           1,
		{Accelerator: "A100", MemoryGiB: 80, Devices: 1}: 2,
	}})
	labels := map[string]string{"profile": profile, "shape": "1xA100-80GB", "device_memory_gib": ""}
	assert.Equal(t, 1.0, gaugeOf(t, "acceleratorplacement_free_slots", labels))
	labels["device_memory_gib"] = "80"
	assert.Equal(t, 2.0, gaugeOf(t, "acceleratorplacement_free_slots", labels))
}

func TestAProcessThatOnlyStandsByReportsNoCluster(t *testing.T) {
	w := newWorld(t, nil)
	w.profile = "standby"
	t.Cleanup(func() { cluster.found.Delete(w.profile) })
	w.takeStock(context.Background())
	_, reported := cluster.found.Load(w.profile)
	assert.False(t, reported)
	w.begin()
	w.takeStock(context.Background())
	_, reported = cluster.found.Load(w.profile)
	assert.True(t, reported)
}

func TestATableIsBuiltAnewOnlyForAnotherOutlook(t *testing.T) {
	v := wanting("v", "H100", 2, 3, 3)
	w := newWorld(t, []runtime.Object{node("n", h100, 8, 0).node}, v)
	w.takeStock(context.Background())
	assert.Equal(t, int64(3000), w.prices.expected[0].Weight)

	more := wanting("v", "H100", 2, 4, 4)
	indexer := w.variants.informer.GetIndexer()
	require.NoError(t, indexer.Update(more))
	for len(w.restock) > 0 {
		<-w.restock
	}
	w.variants.event(v, more)
	assert.Len(t, w.restock, 1, "it is asked for at once")
	w.takeStock(context.Background())
	assert.Equal(t, int64(4000), w.prices.expected[0].Weight)
	<-w.restock
	w.variants.event(more, more.DeepCopy())
	assert.Empty(t, w.restock, "nothing has changed")
}

func TestTheStockOfABareClusterIsTaken(t *testing.T) {
	w := newWorld(t, nil)
	w.takeStock(context.Background())
	assert.Nil(t, w.prices.expected)
	w = newWorld(t, nil, variant("v", "H100", 1))
	w.takeStock(context.Background())
	assert.Len(t, w.prices.expected, 1)
}
