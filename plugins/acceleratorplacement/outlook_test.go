package acceleratorplacement

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// wanting is a variant that wants so many replicas, and may want up to a bound (0 is
// none).
func wanting(name, accelerator string, count, desired, bound int32) *v1alpha1.VariantAutoscaling {
	v := variant(name, accelerator, count)
	v.Status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{NumReplicas: ptr.To(desired)}
	if bound > 0 {
		v.Spec.MaxReplicas = ptr.To(bound)
	}
	return v
}

// resolved says what the autoscaler found the shape to be, for the generation.
func resolved(v *v1alpha1.VariantAutoscaling, generation int64, shape v1alpha1.Shape) *v1alpha1.VariantAutoscaling {
	v.Generation = 7
	v.Status.Placement = &v1alpha1.Placement{ObservedGeneration: generation, Shape: &shape}
	return v
}

func counted(name string, placed, unplaced int) map[types.NamespacedName]replicas {
	return map[types.NamespacedName]replicas{{Namespace: "llm", Name: name}: {placed: placed, unplaced: unplaced}}
}

func TestTheOutlookIsWhatIsStillExpected(t *testing.T) {
	one := func(weight, waiting int64) placement.Outlook {
		return placement.Outlook{{Shape: capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 1}, Weight: weight, Waiting: waiting}}
	}
	spanning := resolved(wanting("v", "H100", 4, 3, 5), 7, v1alpha1.Shape{Accelerator: "H100", Devices: ptr.To(int32(4)), Pods: ptr.To(int32(2))})
	advised := wanting("v", "H100", 4, 9, 5)
	advised.Spec.Actuation = v1alpha1.ActuationOff
	advised.Status.CurrentAlloc = &v1alpha1.CurrentAlloc{NumReplicas: ptr.To(int32(3))}
	for name, c := range map[string]struct {
		variant *v1alpha1.VariantAutoscaling
		count   map[types.NamespacedName]replicas
		want    placement.Outlook
	}{
		"wanted and not placed yet":                {wanting("v", "H100", 4, 3, 3), counted("v", 1, 0), one(2000, 2)},
		"room up to the bound counts a tenth":      {wanting("v", "H100", 4, 3, 10), counted("v", 1, 2), one(2000+700, 2)},
		"without a bound it may double":            {wanting("v", "H100", 4, 3, 0), counted("v", 3, 0), one(300, 0)},
		"pods that exist are expected in any case": {wanting("v", "H100", 4, 0, 2), counted("v", 0, 2), one(2000, 2)},
		"all there, and no more allowed":           {wanting("v", "H100", 4, 3, 3), counted("v", 3, 0), placement.Outlook{}},
		"advice that nobody acts on":               {advised, counted("v", 2, 0), one(1000+200, 1)},
		"nothing is known of its replicas":         {variant("v", "H100", 4), nil, one(100, 0)},
		"nothing is known of its size":             {variant("v", "H100", 0), nil, nil},
		"a replica of two pods is two":             {spanning, counted("v", 2, 0), one(4000+2*2*100, 4)},
	} {
		got, shapes := outlookOf(&inventory.Names{}, []*v1alpha1.VariantAutoscaling{c.variant}, c.count)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.want != nil, len(shapes) == 1, "%s: its shape is known, whether it is expected or not", name)
	}
	got, shapes := outlookOf(&inventory.Names{}, nil, nil)
	assert.Nil(t, got, "without variants it is neutral")
	assert.Empty(t, shapes)
}

func TestTheOutlookDoesNotDependOnTheOrderOfTheVariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var variants []*v1alpha1.VariantAutoscaling
	for i := range 300 {
		variants = append(variants, resolved(wanting(string(rune('a'+i%26))+string(rune('a'+i/26)), "H100", 0, int32(i%4), 5), 7,
			v1alpha1.Shape{Accelerator: "H100", Devices: ptr.To(int32(1 + i%3)), CPU: resource.NewQuantity(int64(i), resource.DecimalSI)}))
	}
	want, _ := outlookOf(&inventory.Names{}, variants, nil)
	assert.Len(t, want, maxShapes)
	for range 5 {
		rng.Shuffle(len(variants), func(i, j int) { variants[i], variants[j] = variants[j], variants[i] })
		got, _ := outlookOf(&inventory.Names{}, variants, nil)
		assert.Equal(t, want, got)
	}
}

func TestTheShapeThatTheAutoscalerResolvedCountsWhileItIsTheObjects(t *testing.T) {
	rs := deployed("v")
	shape := v1alpha1.Shape{Accelerator: "A100", DeviceMemoryGiB: 80, Devices: ptr.To(int32(2)), CPU: ptr.To(resource.MustParse("16")), Memory: ptr.To(resource.MustParse("64Gi"))}
	current, old := resolved(variant("v", "A100", 1), 7, shape), resolved(variant("v", "A100", 1), 6, shape)
	for name, c := range map[string]struct {
		variant *v1alpha1.VariantAutoscaling
		device  string
		shape   capacity.Shape
	}{
		"current": {current, "A100-80GB", capacity.Shape{Accelerator: "A100", MemoryGiB: 80, Devices: 2, Pods: 1, MilliCPU: 16_000, MemoryBytes: 64 << 30}},
		"old":     {old, "A100", capacity.Shape{Accelerator: "A100", Devices: 1, Pods: 1}},
	} {
		w := newWorld(t, []runtime.Object{rs}, c.variant)
		want, status := w.preFilterStateOf(context.Background(), gpuPod("p", 2, rs))
		require.True(t, status.IsSuccess(), name)
		require.Len(t, want.devices, 1, name)
		assert.Equal(t, c.device, want.devices[0].String(), name)
		assert.Equal(t, 2, want.shape.Devices, "%s: the pod's own requests count", name)
		got, ok := shapeSaid(w.names, c.variant)
		assert.True(t, ok, name)
		assert.Equal(t, c.shape, got, name)
	}
}

func TestPodsAreCountedByTheirVariant(t *testing.T) {
	rs, stray := deployed("v"), deployed("nobody")
	bound, waiting, other := gpuPod("bound", 1, rs), gpuPod("waiting", 1, rs), gpuPod("other", 1, stray)
	bound.Spec.NodeName = "n"
	w := newWorld(t, []runtime.Object{rs, stray, bound, waiting, other}, variant("v", "H100", 1))
	pods, err := w.owners.pods.List(everything)
	require.NoError(t, err)
	assert.Equal(t, counted("v", 1, 1), w.count(pods))

	// A pod of another namespace may name the same owner.
	fake := gpuPod("fake", 1, rs)
	fake.Namespace = "theirs"
	assert.Equal(t, counted("v", 1, 1), w.count(append([]*corev1.Pod{fake}, pods...)))
	assert.Equal(t, 1, countOwned(podInfos(fake, bound), ownerOf(waiting)))
	fake.CreationTimestamp = metav1.NewTime(waiting.CreationTimestamp.Add(time.Hour))
	fake.Spec.NodeSelector = map[string]string{"theirs": "yes"}
	for of, made := range w.owners.made([]*v1alpha1.VariantAutoscaling{variant("v", "H100", 1)}, append([]*corev1.Pod{fake}, pods...)) {
		assert.NotSame(t, fake, made.like, of.name)
	}
}

func TestThePackingFollowsWhatIsExpected(t *testing.T) {
	rs := deployed("one")
	nodes := []*nodeInfo{node("three", h100, 8, 5), node("two", h100, 8, 6)}
	best := func(expected int32) string {
		w := newWorld(t, []runtime.Object{rs, nodes[0].node, nodes[1].node},
			wanting("one", "H100", 1, 1, 1), wanting("larger", "H100", expected, 1, 1))
		w.takeStock(context.Background())
		_, best := w.schedule(t, gpuPod("p", 1, rs), nodes[0], nodes[1])
		return best
	}
	assert.Equal(t, "two", best(3), "a replica of three is expected, none of two")
	assert.Equal(t, "three", best(2), "a pair is expected, and the third device is worth nothing to it")
}

// What room is worth follows the nodes as pods come and go, without a new outlook.
func TestThePackingFollowsTheNodes(t *testing.T) {
	rs := deployed("one")
	three, five := node("three", h100, 8, 5), node("five", h100, 8, 3)
	w := newWorld(t, []runtime.Object{rs, three.node, five.node}, wanting("one", "H100", 1, 1, 1), wanting("larger", "H100", 3, 1, 1))
	w.takeStock(context.Background())
	table := w.prices.table.Load()
	nodes := infosOf(three, five)
	_, status := w.PreFilter(context.Background(), newState(), gpuPod("p", 1, rs), nodes)
	require.True(t, status.IsSuccess())
	same := placement.NewTable(w.prices.expected, w.catalog.last.cluster())
	assert.Equal(t, same, w.prices.table.Load(), "what the nodes hold counts")

	*five = *node("five", h100, 8, 8)
	_, status = w.PreFilter(context.Background(), newState(), gpuPod("q", 1, rs), nodes)
	require.True(t, status.IsSuccess())
	assert.NotEqual(t, same, w.prices.table.Load(), "one of them is full now")
	assert.NotSame(t, table, w.prices.table.Load())
}

func TestFirstReplicasGoToDifferentNodes(t *testing.T) {
	rs := deployed("v")
	first := gpuPod("first", 2, rs)
	best := func(replicas int32, nodes ...*nodeInfo) string {
		rs.Spec.Replicas = ptr.To(replicas)
		w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 2))
		infos := infosOf(nodes...)
		_, best := w.schedule(t, gpuPod("p", 2, rs), infos...)
		return best
	}
	with, without := node("with", h100, 8, 4), node("without", h100, 8, 4)
	with.pods, without.pods = podInfos(first, gpuPod("x", 2, nil)), podInfos(gpuPod("y", 2, nil), gpuPod("z", 2, nil))
	assert.Equal(t, "without", best(2, with, without))
	assert.Equal(t, "without", best(2, without, with))
	assert.Equal(t, "with", best(20, with, without), "with many replicas they are alike, and the first is taken")
	whole := node("whole", h100, 8, 0)
	assert.Equal(t, "whole", best(2, with, whole), "nobody waits for a whole node")

	w := newWorld(t, []runtime.Object{rs, with.node, whole.node}, variant("v", "H100", 2), wanting("larger", "H100", 8, 1, 0))
	w.takeStock(context.Background())
	_, chosen := w.schedule(t, gpuPod("p", 2, rs), with, whole)
	assert.Equal(t, "with", chosen, "it is the last one, and a replica waits for it")

	// However much room others have that do not want it.
	w = newWorld(t, []runtime.Object{rs, with.node, whole.node}, variant("v", "H100", 2), wanting("larger", "H100", 8, 1, 0), wanting("growing", "H100", 1, 0, 1000))
	w.takeStock(context.Background())
	_, chosen = w.schedule(t, gpuPod("p", 2, rs), with, whole)
	assert.Equal(t, "with", chosen)
}
