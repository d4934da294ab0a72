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
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// accepting is a pod that says which accelerators it accepts.
func accepting(devices int, text string) *corev1.Pod {
	pod := gpuPod("p", devices, nil)
	pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: text}
	return pod
}

func TestAPodIsPlacedInItsOwnOrderOfAccelerators(t *testing.T) {
	w := newWorld(t, nil)
	whole100, pair80, pair40 := node("h100", h100, 8, 0), node("a100-80", a100, 8, 6), node("a100-40", "NVIDIA-A100-SXM4-40GB", 8, 6)
	l4 := node("l4", "NVIDIA-L4", 8, 6)
	for text, want := range map[string]struct {
		feasible []string
		best     string
	}{
		"H100,A100":           {[]string{"h100", "a100-80", "a100-40"}, "h100"},
		"a100 , h100":         {[]string{"h100", "a100-80", "a100-40"}, "a100-80"},
		"A100-40GB, H100":     {[]string{"h100", "a100-40"}, "a100-40"},
		"A100-40GB,A100":      {[]string{"a100-80", "a100-40"}, "a100-40"},
		"L40S,A100-SXM4-80GB": {[]string{"a100-80"}, "a100-80"},
	} {
		feasible, best := w.schedule(t, accepting(1, text), whole100, pair80, pair40, l4)
		assert.Equal(t, want.feasible, feasible, text)
		assert.Equal(t, want.best, best, text)
	}
}

func TestAMalformedOrderIsOneClearMessage(t *testing.T) {
	w := newWorld(t, nil)
	for text, want := range map[string]string{
		"":                      "an entry is empty",
		"H100,":                 "an entry is empty",
		"H100;A100":             `"H100;A100" is no name of an accelerator`,
		"A100,A100-80GB":        "A100-80GB can never count after A100",
		"H100,h100":             "H100 can never count after H100",
		"a,b,c,d,e,f,g,h,i":     "it lists 9 accelerators, and 8 are the most",
		strings.Repeat("é", 90): "is no name of an accelerator",
	} {
		pod := accepting(1, text)
		state := newState()
		_, status := w.PreFilter(context.Background(), state, pod, nil)
		assert.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code(), text)
		assert.Contains(t, status.Message(), v1alpha1.AnnotationAccelerators, text)
		assert.Contains(t, status.Message(), want, text)
		assert.Contains(t, status.Message(), "such as H100,A100-80GB", text)
		assert.Less(t, len(status.Message()), 512, text)
		_, status = w.PostFilter(context.Background(), state, pod, nil)
		assert.Empty(t, status.Message(), "once is enough")
	}
}

func TestACorrectedOrderIsTriedAgain(t *testing.T) {
	pod := accepting(1, "H100,")
	w := newWorld(t, []runtime.Object{pod})
	w.turnDown(t, pod)
	w.takeStock(context.Background())
	assert.False(t, w.handle.wasActivated("llm/p"))
	corrected := accepting(1, "H100")
	w.see(t, corrected)
	w.takeStock(context.Background())
	assert.True(t, w.handle.wasActivated("llm/p"))
}

func TestTheAnnotationCountsWhereNothingNamesTheVariantsAccelerator(t *testing.T) {
	rs := deployed("v")
	ambiguous := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: []string{h100, a100, "NVIDIA-L4"}},
			}}},
		}}}
	}
	for name, change := range map[string]func(*corev1.Pod){"nothing says it": func(*corev1.Pod) {}, "its template allows several": ambiguous} {
		w := newWorld(t, []runtime.Object{rs}, variant("v", "", 0))
		pod := accepting(1, "H100,A100")
		pod.OwnerReferences = gpuPod("p", 1, rs).OwnerReferences
		change(pod)
		feasible, best := w.schedule(t, pod, node("l4", "NVIDIA-L4", 1, 0), node("h100", h100, 8, 0), node("a100", a100, 8, 7), node("unlabelled", "", 1, 0))
		assert.Equal(t, []string{"h100", "a100"}, feasible, name)
		assert.Equal(t, "h100", best, name)

		pod.Annotations[v1alpha1.AnnotationAccelerators] = "H100,"
		_, status := w.PreFilter(context.Background(), newState(), pod, nil)
		assert.Contains(t, status.Message(), "an entry is empty", name)
	}
}

func TestWhatAPodSelectsComesBeforeAStatusThatSaysOtherwise(t *testing.T) {
	rs := deployed("v")
	stale := v1alpha1.Shape{Accelerator: "A100", DeviceMemoryGiB: 80, Devices: ptr.To(int32(1))}
	corrected := node("corrected", h100, 8, 0)
	corrected.node.Labels[v1alpha1.LabelAcceleratorName] = "A100-80GB"
	labelling := func(accelerator string) *v1alpha1.VariantAutoscaling {
		v := variant("v", "", 1)
		v.Labels = map[string]string{v1alpha1.LabelAcceleratorName: accelerator}
		return v
	}
	nodes := []*nodeInfo{node("h100", h100, 8, 0), node("a100", a100, 8, 0), node("small", "NVIDIA-A100-SXM4-40GB", 8, 0), node("l4", "NVIDIA-L4", 8, 0), corrected}
	for name, c := range map[string]struct {
		variant  *v1alpha1.VariantAutoscaling
		selected string
		feasible []string
		best     string
	}{
		"another type":                          {resolved(variant("v", "", 1), 7, stale), h100, []string{"h100", "corrected"}, "h100"},
		"another size":                          {resolved(variant("v", "", 1), 7, stale), "NVIDIA-A100-SXM4-40GB", []string{"small"}, "small"},
		"the same":                              {resolved(variant("v", "", 1), 7, stale), a100, []string{"a100"}, "a100"},
		"what the spec says is no status":       {variant("v", "A100", 1), h100, []string{"corrected"}, "corrected"},
		"also with a status that says the same": {resolved(variant("v", "A100", 1), 7, stale), h100, []string{"corrected"}, "corrected"},
		"nor is what the label says":            {labelling("A100"), h100, []string{"corrected"}, "corrected"},
		"a label that came after the status":    {resolved(labelling("H100"), 7, stale), h100, []string{"h100", "corrected"}, "h100"},
		"a product that no rule knows":          {variant("v", "A100", 1), "Our-Card", nil, ""},
		"a label that is no product's is quiet": {resolved(variant("v", "", 1), 7, stale), "", []string{"a100", "corrected"}, "a100"},
	} {
		w := newWorld(t, []runtime.Object{rs}, c.variant)
		pod := gpuPod("p", 1, rs)
		pod.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
		if c.selected != "" {
			pod.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": c.selected}
		}
		var admitting []fwk.NodeInfo
		for _, n := range nodes {
			n.node.Labels["kubernetes.io/os"] = "linux"
			if !refuses(pod, n.node, nodeaffinity.GetRequiredNodeAffinity(pod)) {
				admitting = append(admitting, n)
			}
		}
		feasible, best := w.schedule(t, pod, admitting...)
		assert.Equal(t, c.feasible, feasible, name)
		assert.Equal(t, c.best, best, name)
	}
}

func TestTheExplanationSaysWhereAPodContradictsItsVariant(t *testing.T) {
	rs := deployed("v")
	for name, c := range map[string]struct {
		accelerator, selected, annotation, said string
	}{
		"selector":               {"A100", h100, "H100", "; its node selector or affinity says H100-80GB-HBM3, and VariantAutoscaling v says A100: correct one of them"},
		"annotation":             {"A100", "", "H100,L4", "; its annotation wva.llmd.ai/accelerators says H100,L4, but what VariantAutoscaling v says counts: correct one of them"},
		"both say the same":      {"A100", a100, "H100,A100-80GB", ""},
		"the variant says none":  {"", "", "H100", ""},
		"a malformed annotation": {"A100", "", "H100,", ""},
	} {
		w := newWorld(t, []runtime.Object{rs}, variant("v", c.accelerator, 1))
		pod, state := accepting(1, c.annotation), newState()
		pod.OwnerReferences = gpuPod("p", 1, rs).OwnerReferences
		if c.selected != "" {
			pod.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": c.selected}
		}
		_, status := w.PreFilter(context.Background(), state, pod, nil)
		require.True(t, status.IsSuccess(), name)
		_, status = w.PostFilter(context.Background(), state, pod, nil)
		_, said, _ := strings.Cut(status.Message(), "; its ")
		_, want, _ := strings.Cut(c.said, "; its ")
		assert.Equal(t, want, said, name)
	}
}

func TestTheExplanationSaysThatAStatusIsStale(t *testing.T) {
	rs := deployed("v")
	for accelerator, want := range map[string]string{
		"":     "; its node selector or affinity says H100-80GB-HBM3, and the status of VariantAutoscaling v still says A100-80GB",
		"H100": "; its node selector or affinity says H100-80GB-HBM3, and the status of VariantAutoscaling v still says A100-80GB",
		"A100": "; its node selector or affinity says H100-80GB-HBM3, and VariantAutoscaling v says A100-80GB: correct one of them",
	} {
		w := newWorld(t, []runtime.Object{rs}, resolved(variant("v", accelerator, 1), 7, v1alpha1.Shape{Accelerator: "A100", DeviceMemoryGiB: 80, Devices: ptr.To(int32(1))}))
		pod := gpuPod("p", 1, rs)
		pod.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": h100}
		wanted, status := w.preFilterStateOf(context.Background(), pod)
		require.True(t, status.IsSuccess())
		assert.Equal(t, want, wanted.contradiction(w.names), accelerator)
	}
}

func TestAVariantsPodsGoWhereTheVariantSays(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 1))
	pod := gpuPod("p", 1, rs)
	pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: "A100"}
	feasible, _ := w.schedule(t, pod, node("h100", h100, 8, 0), node("a100", a100, 8, 0))
	assert.Equal(t, []string{"h100"}, feasible)
}

func TestTheExplanationNamesEveryTypeThatIsAccepted(t *testing.T) {
	w := newWorld(t, nil)
	pod, state := accepting(4, "H100,A100"), newState()
	nodes := []fwk.NodeInfo{node("h", h100, 8, 6), node("a", a100, 8, 7), node("l", "NVIDIA-L4", 8, 0)}
	w.handle.nodes = nodes
	_, status := w.PreFilter(context.Background(), state, pod, nodes)
	require.True(t, status.IsSuccess())
	_, status = w.PostFilter(context.Background(), state, pod, nil)
	assert.Equal(t, "wants 4xH100: 1 H100 node has fewer than 4 free (largest hole 2), 2 nodes are of another type; "+
		"wants 4xA100: 1 A100 node has fewer than 4 free (largest hole 1), 2 nodes are of another type", status.Message())
}

func TestTheExplanationCallsDevicesOfAnyTypeByTheirResource(t *testing.T) {
	w := newWorld(t, nil)
	pod, state := gpuPod("p", 4, nil), newState()
	nodes := []fwk.NodeInfo{node("h", h100, 8, 6), node("a", "", 8, 7), node("c", "", 0, 0)}
	w.handle.nodes = nodes
	_, status := w.PreFilter(context.Background(), state, pod, nodes)
	require.True(t, status.IsSuccess())
	_, status = w.PostFilter(context.Background(), state, pod, nil)
	assert.Equal(t, "wants 4xnvidia.com/gpu: 2 nvidia.com/gpu nodes have fewer than 4 free (largest hole 2), 1 node is of another type", status.Message())
}

// withSlices is a node that offers whole devices and slices of others side by side.
func withSlices(name string) *nodeInfo {
	n := node(name, a100, 4, 4)
	for _, slices := range []corev1.ResourceName{"nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"} {
		n.node.Status.Allocatable[slices] = resource.MustParse("7")
	}
	n.requested.scalars["nvidia.com/mig-1g.10gb"] = 6
	return n
}

func TestDevicesOfSeveralKindsOnOneNodeAreCountedApart(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "A100", 1))
	slicePod := func(count string, resourceName corev1.ResourceName) *corev1.Pod {
		pod := gpuPod("p", 0, rs)
		pod.Spec.Containers[0].Resources.Requests[resourceName] = resource.MustParse(count)
		return pod
	}
	for _, c := range []struct {
		pod  *corev1.Pod
		fits bool
	}{
		{gpuPod("p", 1, rs), false},
		{slicePod("1", "nvidia.com/mig-1g.10gb"), true},
		{slicePod("2", "nvidia.com/mig-1g.10gb"), false},
		{slicePod("7", "nvidia.com/mig-3g.40gb"), true},
		{slicePod("1", "nvidia.com/mig-2g.20gb"), false},
	} {
		feasible, _ := w.schedule(t, c.pod, withSlices("mixed"))
		assert.Equal(t, c.fits, len(feasible) == 1, "%v", c.pod.Spec.Containers[0].Resources.Requests)
	}
}

func TestANameThatContradictsTheResourceIsTurnedDownClearly(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "A100-MIG-1g.10gb", 1))
	pod := gpuPod("p", 0, rs)
	pod.Spec.Containers[0].Resources.Requests["nvidia.com/mig-3g.40gb"] = resource.MustParse("1")
	_, status := w.PreFilter(context.Background(), newState(), pod, nil)
	assert.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	assert.Contains(t, status.Message(), "VariantAutoscaling v: ")
	assert.Contains(t, status.Message(), "3g.40gb")
}
