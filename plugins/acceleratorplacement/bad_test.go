package acceleratorplacement

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fcache "k8s.io/client-go/tools/cache/testing"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// absurdQuantities are amounts that no node has and no pod should ask for.
var absurdQuantities = []string{"-1", "0", "1", "8", "9223372036854775807", "1e30", "-9e18", "1m", "0.5", "100Ei"}

func absurdNode(rng *rand.Rand, i int) *nodeInfo {
	n := node(fmt.Sprintf("n%d", i), "", 0, 0)
	amount := func() resource.Quantity { return resource.MustParse(absurdQuantities[rng.IntN(len(absurdQuantities))]) }
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, gpu, "amd.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-", "nvidia.com/gpu.shared"} {
		switch rng.IntN(3) {
		case 0:
			delete(n.node.Status.Allocatable, name)
		case 1:
			n.node.Status.Allocatable[name] = amount()
		}
		n.requested.scalars[name] = rng.Int64() - rng.Int64()
	}
	n.requested.milliCPU, n.requested.memory = rng.Int64()-rng.Int64(), rng.Int64()-rng.Int64()
	products := []string{"", h100, a100, "NVIDIA", "-MIG-", "%%%", "H100-A100", "AMD_Instinct_MI300X_OAM"}
	for _, label := range []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name", v1alpha1.LabelAcceleratorName} {
		if rng.IntN(2) == 0 {
			n.node.Labels[label] = products[rng.IntN(len(products))]
		}
	}
	n.node.Labels["nvidia.com/gpu.memory"] = absurdQuantities[rng.IntN(len(absurdQuantities))]
	if rng.IntN(4) == 0 {
		n.node.Labels = nil
	}
	if rng.IntN(4) == 0 {
		n.node.Status = corev1.NodeStatus{}
	}
	return n
}

func absurdPod(rng *rand.Rand, i int) *corev1.Pod {
	pod := gpuPod(fmt.Sprintf("p%d", i), 0, nil)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpu} {
		if rng.IntN(2) == 0 {
			pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(absurdQuantities[rng.IntN(len(absurdQuantities))])
		}
	}
	if rng.IntN(3) == 0 {
		pod.Spec.Containers = nil
	}
	if rng.IntN(3) == 0 {
		pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: []string{"", ",", "H100,A100", "\x00"}[rng.IntN(4)]}
	}
	return pod
}

// Whatever nodes, pods and variants say, every answer is one that the framework
// takes.
func TestAbsurdClustersDoNoHarm(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	absurd := variant("absurd", "H100", 1)
	absurd.Spec.MaxReplicas = new(int32(2147483647))
	absurd.Status.Placement = &v1alpha1.Placement{Shape: &v1alpha1.Shape{
		Accelerator: "H100", Devices: new(int32(2147483647)), Pods: new(int32(2147483647)),
		CPU: new(resource.MustParse("-9e18")), Memory: new(resource.MustParse("100Ei")), DeviceMemoryGiB: -5,
	}}
	negative := wanting("negative", "A100", 1, -5, 1)
	w := newWorld(t, nil, absurd, negative, variant("empty", "", 0))
	ctx := context.Background()
	for round := range 400 {
		var nodes []*nodeInfo
		for i := range rng.IntN(6) {
			nodes = append(nodes, absurdNode(rng, i))
			w.see(t, nodes[i].node)
		}
		infos := infosOf(nodes...)
		w.handle.nodes = infos
		pod, state := absurdPod(rng, round), newState()
		_, status := w.PreFilter(ctx, state, pod, infos)
		require.NotEqual(t, fwk.Error, status.Code(), status.Message())
		scores := make(fwk.NodeScoreList, len(infos))
		for i, n := range infos {
			require.NotEqual(t, fwk.Error, w.Filter(ctx, state, pod, n).Code())
			w.PreScore(ctx, state, pod, infos)
			score, scored := w.Score(ctx, state, pod, n)
			require.True(t, scored.IsSuccess())
			scores[i].Score = score
		}
		require.True(t, w.NormalizeScore(ctx, state, pod, scores).IsSuccess())
		for i := range scores {
			require.True(t, scores[i].Score >= fwk.MinScore && scores[i].Score <= fwk.MaxScore)
		}
		_, status = w.PostFilter(ctx, state, pod, nil)
		require.True(t, status.IsRejected())
		for _, n := range nodes {
			w.hint(t, 0, pod, nil, n.node)
			w.hint(t, 1, pod, placedBy("x", "gone", n.node.Name, 1), nil)
		}
		w.takeStock(ctx)
	}
}

func TestWithoutNodesAPodSaysSo(t *testing.T) {
	w := newWorld(t, nil)
	pod, state := gpuPod("p", 1, nil), newState()
	_, status := w.PreFilter(context.Background(), state, pod, nil)
	require.True(t, status.IsSuccess())
	require.True(t, w.NormalizeScore(context.Background(), state, pod, nil).IsSuccess())
	_, status = w.PostFilter(context.Background(), state, pod, nil)
	assert.Equal(t, "wants 1xnvidia.com/gpu: there are no nodes", status.Message())
}

func TestATemplateWithoutRequestsIsLeftAlone(t *testing.T) {
	w := newWorld(t, nil)
	pod := gpuPod("p", 0, nil)
	pod.Spec.Containers[0].Resources.Requests = nil
	pod.Spec.SchedulingGates, pod.Spec.Containers = nil, append(pod.Spec.Containers, corev1.Container{})
	_, status := w.PreFilter(context.Background(), newState(), pod, nil)
	assert.True(t, status.IsSkip())
}

func TestDevicesByClaimsAreNotSteeredAway(t *testing.T) {
	w := newWorld(t, nil)
	pod, state := gpuPod("p", 0, nil), newState()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	_, status := w.PreFilter(context.Background(), state, pod, nil)
	assert.True(t, status.IsSkip())
	assert.True(t, w.PreScore(context.Background(), state, pod, nil).IsSkip())
}

func TestACRDThatDisappearsLeavesThePodsToThemselves(t *testing.T) {
	source := &failing{FakeControllerSource: fcache.NewFakeControllerSource()}
	source.FakeControllerSource.Add(variant("v", "A100", 4))
	rs := deployed("v")
	waiting := gpuPod("waiting", 1, rs)
	w := newWorldFrom(t, source.FakeControllerSource, source, []runtime.Object{rs, waiting})
	nodes := []fwk.NodeInfo{node("h100", h100, 8, 0), node("a100", a100, 8, 0)}
	feasible, _ := w.schedule(t, gpuPod("p", 1, rs), nodes...)
	require.Equal(t, []string{"a100"}, feasible)
	w.takeStock(context.Background())
	require.NotNil(t, w.prices.expected)

	source.err.Store(errNotInstalled)
	source.FakeControllerSource.ResetWatch()
	require.Eventually(t, func() bool {
		// A watch that the API server ends is begun again.
		source.FakeControllerSource.ResetWatch()
		return w.variants.source.none()
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return w.handle.wasActivated("llm/waiting") }, time.Minute, time.Millisecond)
	feasible, _ = w.schedule(t, gpuPod("p", 1, rs), nodes...)
	assert.Equal(t, []string{"h100", "a100"}, feasible, "what was read before counts no longer")
	w.takeStock(context.Background())
	assert.Nil(t, w.prices.expected)

	source.err.Store(nil)
	require.Eventually(t, func() bool {
		feasible, _ = w.schedule(t, gpuPod("p", 1, rs), nodes...)
		return len(feasible) == 1
	}, time.Minute, 10*time.Millisecond)
}

// A role that is replaced is gone for a moment.
func TestARefusalLeavesTheVariantsThatWereRead(t *testing.T) {
	source := &failing{FakeControllerSource: fcache.NewFakeControllerSource()}
	source.FakeControllerSource.Add(variant("v", "A100", 4))
	rs := deployed("v")
	w := newWorldFrom(t, source.FakeControllerSource, source, []runtime.Object{rs})
	nodes := []fwk.NodeInfo{node("h100", h100, 8, 0), node("a100", a100, 8, 0)}
	refused := func() bool {
		source.FakeControllerSource.ResetWatch()
		return w.variants.source.now() == kept
	}
	source.err.Store(errNotAllowed)
	require.Eventually(t, refused, time.Minute, 10*time.Millisecond)
	feasible, _ := w.schedule(t, gpuPod("p", 1, rs), nodes...)
	assert.Equal(t, []string{"a100"}, feasible, "what was read counts")
	assert.Len(t, w.variants.list(), 1)

	source.err.Store(nil)
	require.Eventually(t, func() bool { return w.variants.source.now() == served }, time.Minute, 10*time.Millisecond)
}

func TestARefusalAfterTheCRDIsGoneBringsNothingBack(t *testing.T) {
	var said []access
	s := newSource(fcache.NewFakeControllerSource(), time.Minute, func(_ context.Context, now access, _ error) { said = append(said, now) })
	s.read.Store(true)
	ctx := context.Background()
	for _, err := range []error{nil, errNotAllowed, errNotAllowed, nil, errNotInstalled, errNotAllowed} {
		s.answered(ctx, err)
	}
	assert.Equal(t, []access{kept, served, absent, denied}, said, "each change once")
	assert.True(t, s.none())
	assert.False(t, s.answered(ctx, apierrors.NewInternalError(errors.New("broken"))), "the informer deals with other errors")
	assert.True(t, s.none())
}

// Anybody who may make pods may write any owner into them.
func TestAnOwnerThatIsNotThereDoesNoHarm(t *testing.T) {
	w := newWorld(t, nil)
	for _, owner := range []metav1.Object{
		&appsv1.Deployment{ObjectMeta: meta("gone", nil)}, &appsv1.ReplicaSet{ObjectMeta: meta("gone", nil)},
		&appsv1.StatefulSet{ObjectMeta: meta("gone", nil)}, gpuPod("gone", 1, nil),
	} {
		pod := gpuPod("p", 1, owner)
		pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * ownerGrace))
		feasible, _ := w.schedule(t, pod, node("a", h100, 8, 0), node("b", h100, 8, 0))
		assert.Len(t, feasible, 2)
	}
}
