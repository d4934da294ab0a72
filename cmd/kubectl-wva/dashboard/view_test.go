package dashboard

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	// preview writes the pages of the tests, to be looked at in a browser.
	preview = flag.String("preview", "", "directory to write the tests' pages to")
)

func devices(n string) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
}

func nodeOf(name, product string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": product}},
		Status: corev1.NodeStatus{
			Capacity: devices("8"), Allocatable: devices("8"),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// around has a price and a promise.
func around(t *testing.T) *surroundings {
	t.Helper()
	costs, _, err := config.ParseUnitCosts(map[string]string{"H100": `{"cost": "3"}`})
	require.NoError(t, err)
	classes, _, err := config.ParseServiceClasses("c", map[string]string{"gold.yaml": "name: gold\npriority: 1\ndata:\n- model: meta/llama\n  slo-ttft: 500\n  slo-tpot: 50\n"})
	require.NoError(t, err)
	return &surroundings{costs: costs, classes: classes, names: &inventory.Names{}}
}

// small is a cluster of two variants of one model.
func small(t *testing.T) *view {
	t.Helper()
	h := newHistory(noon)
	a, b := variantOf("a", 1), variantOf("b", 0)
	a.Status.ServiceClass, b.Status.ServiceClass = "Gold", "Gold"
	b.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "MetricsMissing", Message: "no samples <&>"}
	nodes := []*corev1.Node{nodeOf("n1", "NVIDIA-H100-80GB-HBM3"), nodeOf("n2", "NVIDIA-H100-80GB-HBM3")}
	nodes[1].Spec.Unschedulable = true
	other := podOf("else", "o", "n1", 0, true)
	other.OwnerReferences = nil
	both := func(at int, pods ...*corev1.Pod) {
		variants := []*v1alpha1.VariantAutoscaling{b, a}
		h.look(listing{at: after(at), podsKnown: true, variants: variants, nodes: nodes, pods: append(pods, other)}, newOwners(variants, nil))
	}
	both(20, podOf("a", "x", "n1", -500, true))
	a = decidedTo(a.DeepCopy(), 1, 2, after(24))
	both(25, podOf("a", "x", "n1", -500, true))
	both(33, podOf("a", "x", "n1", -500, true), podOf("a", "y", "n2", 26, false))
	l := newLoads(noon, 15*time.Second)
	l.complete = 2
	l.points[modelKey{"chat", "meta/llama"}] = []report.LoadPoint{{}, {Rate: new(6.25), TTFT: new(612.0), ITL: new(31.25), WithinTTFT: new(0.875), WithinITL: new(1.0)}}
	l.kvUse = map[types.NamespacedName]float64{{Namespace: "chat", Name: "a-5f7c-x"}: 0.82}
	l.queued = map[types.NamespacedName]float64{{Namespace: "chat", Name: "a-5f7c-x"}: 3}
	l.waiting = map[modelKey]float64{{"", "meta/llama"}: 4}
	return &view{where: "example.com:6443, namespace chat", every: every, history: h, around: around(t), loads: l, notes: []string{"events may not be read"}}
}

func TestTheStateOfASmallCluster(t *testing.T) {
	text, err := json.Marshal(report.DashboardFeed(small(t).dashboard()))
	require.NoError(t, err)
	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, text, "", " "))
	got.WriteByte('\n')
	path := filepath.Join("testdata", "state.json")
	if *update {
		require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String(), "run with -update when the change is meant")
	keep(t, "small", report.DashboardFeed(small(t).dashboard()))
}

func TestTheSameStateIsTheSameBytes(t *testing.T) {
	v := many(t, 40)
	first, err := json.Marshal(report.DashboardFeed(v.dashboard()))
	require.NoError(t, err)
	for range 3 {
		again, err := json.Marshal(report.DashboardFeed(v.dashboard()))
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
	}
}

func TestWhatIsUnknownIsNotZero(t *testing.T) {
	v := small(t)
	v.loads, v.around = nil, &surroundings{names: &inventory.Names{}}
	for i, object := range v.history.last.variants {
		object = object.DeepCopy()
		object.Status.ServiceClass, object.Status.Placement.Slots = "", nil
		object.Spec.VariantCost = ""
		v.history.last.variants[i] = object
	}
	d := v.dashboard()
	require.Len(t, d.Models, 1)
	assert.Nil(t, d.Models[0].Waiting)
	assert.Zero(t, d.Models[0].SLO.TTFT)
	for _, p := range d.Models[0].Points {
		assert.Nil(t, p.Rate)
	}
	for _, one := range d.Variants {
		assert.Nil(t, one.KVUse)
		assert.Nil(t, one.Fit)
	}
}

// many is a cluster of n variants, half as many models, and a node for each variant.
func many(t *testing.T, n int) *view {
	t.Helper()
	h := newHistory(noon)
	var variants []*v1alpha1.VariantAutoscaling
	var pods []*corev1.Pod
	var nodes []*corev1.Node
	l := newLoads(noon, 15*time.Second)
	l.complete, l.kvUse, l.queued = 120, map[types.NamespacedName]float64{}, map[types.NamespacedName]float64{}
	products := []string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"}
	for i := range n {
		v := variantOf(fmt.Sprintf("model-%03d-%s", i/2, []string{"h100", "l40s"}[i%2]), int32(i%5))
		v.Spec.ModelID = fmt.Sprintf("meta/model-%03d", i/2)
		v.Spec.VariantCost = fmt.Sprintf("%d.5", 2+i%7)
		if i%2 == 1 {
			v.Status.CurrentAlloc.Accelerator = "L40S"
		}
		if i%17 == 0 {
			v.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "MetricsMissing", Message: "no samples of its pods for 3 minutes"}
		}
		variants = append(variants, v)
		nodes = append(nodes, nodeOf(fmt.Sprintf("node-%03d", i), products[i%2]))
		for p := range i % 5 {
			pod := podOf(v.Name, fmt.Sprint(p), fmt.Sprintf("node-%03d", (i+2*p)%n), 60*p-300, p != 3)
			pods = append(pods, pod)
			l.kvUse[types.NamespacedName{Namespace: "chat", Name: pod.Name}] = float64(i%10) / 10
			l.queued[types.NamespacedName{Namespace: "chat", Name: pod.Name}] = float64(i % 3)
		}
		key := modelKey{"chat", v.Spec.ModelID}
		for p := len(l.points[key]); p < l.complete; p++ {
			l.points[key] = append(l.points[key], report.LoadPoint{Rate: new(float64(i) / 10 * float64(20+p%13)), TTFT: new(float64(80 + i%50*p%700)), ITL: new(20 + float64(p%9)), WithinTTFT: new(1 - float64(p%13)/200)})
		}
	}
	h.look(listing{at: after(1750), podsKnown: true, variants: variants, pods: pods, nodes: nodes}, newOwners(variants, nil))
	for i, v := range variants {
		if wanted := *v.Status.CurrentAlloc.NumReplicas; i%9 == 0 {
			variants[i] = decidedTo(v.DeepCopy(), wanted, wanted+1, after(1799))
		}
	}
	h.look(listing{at: after(1800), podsKnown: true, variants: variants, pods: pods, nodes: nodes}, newOwners(variants, nil))
	return &view{where: "example.com:6443, all namespaces", all: true, every: every, history: h, around: around(t), loads: l}
}

// A page of 500 variants is made in a moment, and is not too large to be sent every other
// second to a browser on the same machine.
func TestFiveHundredVariantsAreNotTooMany(t *testing.T) {
	v := many(t, 500)
	state, err := json.Marshal(report.DashboardFeed(v.dashboard()))
	require.NoError(t, err)
	assert.Less(t, len(state), 2<<20)
	d := v.dashboard()
	assert.Len(t, d.Variants, 500)
	assert.Len(t, d.Models, 250)
	assert.Len(t, d.Nodes, 500)
	keep(t, "many", report.DashboardFeed(d))
}

func BenchmarkDashboardOf500Variants(b *testing.B) {
	v := many(&testing.T{}, 500)
	for b.Loop() {
		if _, err := json.Marshal(report.DashboardFeed(v.dashboard())); err != nil {
			b.Fatal(err)
		}
	}
}

// keep writes a page and its state where a person asked for them.
func keep(t *testing.T, name string, feed report.Feed) {
	t.Helper()
	if *preview == "" {
		return
	}
	folder := filepath.Join(*preview, name)
	require.NoError(t, os.MkdirAll(folder, 0o755))
	var page bytes.Buffer
	require.NoError(t, feed.WriteHTML(&page))
	state, err := json.Marshal(feed)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "index.html"), page.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "state.json"), state, 0o644))
}
