package acceleratorplacement

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// bench is a cluster of 5,000 nodes of which one in seven has devices, with variants
// of that many shapes.
type bench struct {
	*world
	nodes []fwk.NodeInfo
	pod   *corev1.Pod
	state *memory
}

func newBench(b *testing.B, shapes int) *bench {
	b.Helper()
	source := fcache.NewFakeControllerSource()
	var objects []runtime.Object
	for i := range shapes {
		v := variant(fmt.Sprintf("v%d", i), []string{"H100", "A100", "L40S"}[i%3], 0)
		v.Spec.MaxReplicas = ptr.To(int32(1 + i%20))
		v.Status.Placement = &v1alpha1.Placement{Shape: &v1alpha1.Shape{
			Accelerator: v.Spec.Accelerator, Devices: ptr.To(int32(1) << (i % 4)),
			CPU: resource.NewMilliQuantity(int64(1000+100*i), resource.DecimalSI),
		}}
		source.Add(v)
		objects = append(objects, templated(v.Name, "", func(spec *corev1.PodSpec) {
			toleratesTeam(spec)
			spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *v.Status.Placement.Shape.CPU
		}))
	}
	rs := deployed("v0")
	bench := &bench{world: newWorldFrom(b, source, source, objects)}
	products := []string{h100, a100, "NVIDIA-L40S"}
	for i := range 5_000 {
		if i%7 == 0 {
			n := node(fmt.Sprintf("gpu%d", i), products[i%3], 8, i%8)
			n.node.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
			bench.nodes = append(bench.nodes, n)
		} else {
			bench.nodes = append(bench.nodes, node(fmt.Sprintf("cpu%d", i), "", 0, 0))
		}
		bench.see(b, bench.nodes[i].(*nodeInfo).node)
	}
	bench.handle.nodes = bench.nodes
	bench.takeStock(context.Background())
	bench.pod, bench.state = gpuPod("p", 1, rs), newState()
	_, status := bench.PreFilter(context.Background(), bench.state, bench.pod, bench.nodes)
	require.True(b, status.IsSuccess(), status.Message())
	return bench
}

var shapeCounts = []int{1, 8, 200}

func forShapes(b *testing.B, each func(b *testing.B, at *bench)) {
	for _, shapes := range shapeCounts {
		b.Run(fmt.Sprintf("shapes=%d", shapes), func(b *testing.B) {
			at := newBench(b, shapes)
			b.ReportAllocs()
			b.ResetTimer()
			each(b, at)
		})
	}
}

func BenchmarkPreFilter(b *testing.B) {
	ctx := context.Background()
	forShapes(b, func(b *testing.B, at *bench) {
		for b.Loop() {
			at.PreFilter(ctx, at.state, at.pod, at.nodes)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	ctx := context.Background()
	forShapes(b, func(b *testing.B, at *bench) {
		for b.Loop() {
			at.Filter(ctx, at.state, at.pod, at.nodes[0])
		}
	})
}

// A pod that finds no node is explained while the next one waits.
func BenchmarkPostFilter(b *testing.B) {
	ctx := context.Background()
	forShapes(b, func(b *testing.B, at *bench) {
		for b.Loop() {
			at.PostFilter(ctx, at.state, at.pod, nil)
		}
	})
}

func BenchmarkScore(b *testing.B) {
	ctx := context.Background()
	forShapes(b, func(b *testing.B, at *bench) {
		for b.Loop() {
			_, _ = at.Score(ctx, at.state, at.pod, at.nodes[0])
		}
	})
}

func BenchmarkRefresh(b *testing.B) {
	forShapes(b, func(b *testing.B, at *bench) {
		for b.Loop() {
			nodesNow := at.catalog.snapshotOf(at.names, at.nodes)
			at.prices.table.Load().Refresh(nodesNow.cluster())
		}
	})
}

func BenchmarkNewTable(b *testing.B) {
	forShapes(b, func(b *testing.B, at *bench) {
		nodesNow := at.catalog.snapshotOf(at.names, at.nodes)
		for b.Loop() {
			placement.NewTable(at.prices.expected, nodesNow.cluster())
		}
	})
}

func BenchmarkTakeStock(b *testing.B) {
	ctx := context.Background()
	forShapes(b, func(b *testing.B, at *bench) {
		for b.Loop() {
			at.takeStock(ctx)
		}
	})
}

// Keeping pods without devices off accelerator nodes costs something for each node,
// which is for profiles that ask for it.
func BenchmarkKeepingOthersOff(b *testing.B) {
	ctx := context.Background()
	at := newBench(b, 8)
	web := gpuPod("web", 0, nil)
	scores := make(fwk.NodeScoreList, len(at.nodes))
	b.ReportAllocs()
	for b.Loop() {
		at.PreFilter(ctx, at.state, web, at.nodes)
		at.PreScore(ctx, at.state, web, at.nodes)
		for i := range at.nodes {
			scores[i].Score, _ = at.Score(ctx, at.state, web, at.nodes[i])
		}
		at.NormalizeScore(ctx, at.state, web, scores)
	}
}

func BenchmarkMates(b *testing.B) {
	at := newBench(b, 8)
	rs := deployed("v0")
	rs.Spec.Replicas = ptr.To(int32(2))
	at.see(b, rs)
	b.ReportAllocs()
	for b.Loop() {
		at.matesOf(at.pod, gpu, at.nodes)
	}
}

func BenchmarkNormalize700Nodes(b *testing.B) {
	scores, keys := make(fwk.NodeScoreList, 700), make([]int64, 700)
	for i := range keys {
		keys[i] = -int64(i*7919%700) - 1
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range scores {
			scores[i].Score = keys[i]
		}
		rank(scores)
	}
}

func BenchmarkHints(b *testing.B) {
	at := newBench(b, 8)
	ctx := context.Background()
	_, status := at.PostFilter(ctx, at.state, at.pod, nil)
	require.True(b, status.IsRejected())
	events, err := at.EventsToRegister(ctx)
	require.NoError(b, err)
	gone := gpuPod("gone", 1, nil)
	gone.Spec.NodeName = "gpu0"
	before := node("gpu0", h100, 8, 0).node
	after := before.DeepCopy()
	logger := klog.Background()
	b.Run("node", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = events[0].QueueingHintFn(logger, at.pod, before, after)
		}
	})
	b.Run("pod", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = events[1].QueueingHintFn(logger, at.pod, gone, nil)
		}
	})
}
