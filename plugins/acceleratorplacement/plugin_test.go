package acceleratorplacement

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	fcache "k8s.io/client-go/tools/cache/testing"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

const (
	h100 = "NVIDIA-H100-80GB-HBM3"
	a100 = "NVIDIA-A100-SXM4-80GB"
)

func TestPodsGoToTheirVariantsAccelerator(t *testing.T) {
	rs := deployed("llama-h100")
	w := newWorld(t, []runtime.Object{rs}, variant("llama-h100", "H100", 4), variant("llama-a100", "A100", 4))
	cordoned := node("cordoned", h100, 8, 0)
	cordoned.node.Spec.Unschedulable = true
	feasible, best := w.schedule(t, gpuPod("p", 4, rs),
		node("a100", a100, 8, 0), node("cpu", "", 0, 0), node("unlabelled", "", 8, 0), cordoned,
		node("full", h100, 8, 5), node("free", h100, 8, 0), node("half", h100, 8, 4), node("small", h100, 2, 0))
	assert.Equal(t, []string{"free", "half"}, feasible)
	assert.Equal(t, "half", best, "the whole node is kept for larger replicas")
}

func TestPreFilterNarrowsByTypeAndNeverByWhatIsFree(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "h100", 4))
	nodes := []fwk.NodeInfo{node("a100", a100, 8, 0), node("full", h100, 8, 8), node("free", h100, 8, 0), node("slice", h100+"-MIG-3g.40gb", 8, 0)}
	narrowed, status := w.PreFilter(context.Background(), newState(), gpuPod("p", 4, rs), nodes)
	require.True(t, status.IsSuccess())
	assert.ElementsMatch(t, []string{"full", "free"}, narrowed.NodeNames.UnsortedList())
}

// The framework changes the nodes of a snapshot in place while none comes or goes.
func TestANodeThatChangesInItsPlaceIsSeen(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 4))
	cpu, other := node("cpu", "", 0, 0), node("other", a100, 8, 0)
	nodes := infosOf(cpu, other)
	found := func() []string {
		narrowed, status := w.PreFilter(context.Background(), newState(), gpuPod("p", 4, rs), nodes)
		require.True(t, status.IsSuccess())
		return narrowed.NodeNames.UnsortedList()
	}
	assert.Empty(t, found())
	*cpu = *node("cpu", h100, 8, 0)
	assert.Equal(t, []string{"cpu"}, found())
	*other, *cpu = *node("other", h100, 8, 0), *node("cpu", "", 0, 0)
	assert.Equal(t, []string{"other"}, found())
	known := w.catalog.slots[1].Load()
	nodes = append(infosOf(node("new", a100, 8, 0)), nodes...)
	assert.Equal(t, []string{"other"}, found())
	assert.Same(t, known, w.catalog.slots[2].Load(), "what is known of the others stays")
	w.names.SetOverrides(inventory.Overrides{"NVIDIA-H100-80GB-HBM3": inventory.Normalize("L4")})
	assert.Empty(t, found(), "the names changed")
	last := w.catalog.last
	assert.Same(t, last, w.catalog.snapshotOf(w.names, nodes), "nothing changed")
}

func TestVerdictsTellWhatPreemptionCouldChange(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 4))
	pod, state := gpuPod("p", 4, rs), newState()
	_, status := w.PreFilter(context.Background(), state, pod, nil)
	require.True(t, status.IsSuccess())
	for name, c := range map[string]struct {
		info *nodeInfo
		code fwk.Code
		why  string
	}{
		"free":    {node("n", h100, 8, 4), fwk.Success, ""},
		"taken":   {node("n", h100, 8, 5), fwk.Unschedulable, "too few free devices"},
		"small":   {node("n", h100, 2, 0), fwk.UnschedulableAndUnresolvable, "too few devices"},
		"other":   {node("n", a100, 8, 0), fwk.UnschedulableAndUnresolvable, "wrong accelerator"},
		"unknown": {node("n", "", 8, 0), fwk.UnschedulableAndUnresolvable, "accelerator unknown"},
	} {
		got := w.Filter(context.Background(), state, pod, c.info)
		assert.Equal(t, c.code, got.Code(), name)
		assert.Equal(t, c.why, got.Message(), name)
		// A preemption in the background asks while another pod is current.
		w.current.Store(&cycle{pod: gpuPod("other", 1, nil), asks: &preFilterState{resource: gpu}})
		assert.Equal(t, c.code, w.Filter(context.Background(), state, pod, c.info).Code(), name)
	}
}

func TestPodsOfNoVariantArePackedOnAnyType(t *testing.T) {
	w := newWorld(t, nil)
	feasible, best := w.schedule(t, gpuPod("stray", 1, nil),
		node("whole", h100, 8, 0), node("pair", a100, 8, 6), node("single", a100, 8, 7), node("unlabelled", "", 8, 4), node("cpu", "", 0, 0))
	assert.Equal(t, []string{"whole", "pair", "single", "unlabelled"}, feasible)
	assert.Equal(t, "single", best)
}

// The two or three replicas of a small variant go to different nodes although that is no
// tight fit, the third to where fewer are; those of a larger one are packed.
func TestTheFirstReplicasAreSpread(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 1))
	holding := func(name string, taken, mates int) *nodeInfo {
		n := node(name, h100, 8, taken)
		for range mates {
			n.pods = append(n.pods, podInfos(gpuPod("mate", 1, rs))...)
		}
		return n
	}
	for name, c := range map[string]struct {
		replicas int32
		off      bool
		mates    int
		best     string
	}{
		"the only one":              {1, false, 1, "tight"},
		"the second":                {2, false, 1, "loose"},
		"the second, not to spread": {2, true, 1, "tight"},
		"the third":                 {3, false, 2, "loose"},
		"of four":                   {4, false, 1, "tight"},
	} {
		t.Run(name, func(t *testing.T) {
			rs.Spec.Replicas = &c.replicas
			w.args.SpreadFirstReplicas = !c.off
			_, best := w.schedule(t, gpuPod("p", 1, rs), holding("tight", 7, c.mates), holding("loose", 5, 0))
			assert.Equal(t, c.best, best)
		})
	}
	rs.Spec.Replicas = new(int32(3))
	w.args.SpreadFirstReplicas = true
	_, best := w.schedule(t, gpuPod("p", 1, rs), holding("two", 7, 2), holding("one", 5, 1))
	assert.Equal(t, "one", best)

	// The owner is gone, and another one has its name.
	pod, nodes := gpuPod("p", 1, rs), []fwk.NodeInfo{holding("tight", 7, 1), holding("loose", 5, 0)}
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * ownerGrace))
	_, best = w.schedule(t, pod, nodes...)
	assert.Equal(t, "loose", best)
	rs.UID = "another"
	_, best = w.schedule(t, pod, nodes...)
	assert.Equal(t, "tight", best)
}

// A taint that says to prefer other nodes counts before the packing, as it does in the
// stock profile, and after the order of accelerators that the pod asks for.
func TestNodesThatAskPodsToGoElsewhereComeLast(t *testing.T) {
	w := newWorld(t, nil)
	failing := corev1.Taint{Key: "failing", Effect: corev1.TaintEffectPreferNoSchedule}
	tight, loose, other := node("tight", h100, 8, 7), node("loose", h100, 8, 0), node("other", a100, 8, 7)
	tight.node.Spec.Taints, other.node.Spec.Taints = []corev1.Taint{failing}, []corev1.Taint{failing}
	for name, c := range map[string]struct {
		tolerations []corev1.Toleration
		accepts     string
		nodes       []fwk.NodeInfo
		best        string
	}{
		"it goes elsewhere":             {nil, "", infosOf(tight, loose), "loose"},
		"there is no other node":        {nil, "", infosOf(tight), "tight"},
		"it tolerates the taint":        {[]corev1.Toleration{{Key: "failing", Operator: corev1.TolerationOpExists}}, "", infosOf(tight, loose), "tight"},
		"it tolerates it where it bars": {[]corev1.Toleration{{Key: "failing", Effect: corev1.TaintEffectNoSchedule}}, "", infosOf(tight, loose), "loose"},
		"its first type is only there":  {nil, "A100,H100", infosOf(tight, loose, other), "other"},
		"its last type is only there":   {nil, "H100,L40S,L4,T4,A10,V100,H200,A100", infosOf(other, loose), "loose"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := gpuPod("p", 1, nil)
			pod.Spec.Tolerations = c.tolerations
			if c.accepts != "" {
				pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: c.accepts}
			}
			_, best := w.schedule(t, pod, c.nodes...)
			assert.Equal(t, c.best, best)
		})
	}
}

// Whoever checks a node cordons it first. A replica of a variant has nothing to check.
func TestPodsThatTolerateACordonByItsNameMayCheckANode(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 1))
	cordoned := node("cordoned", h100, 8, 0)
	cordoned.node.Spec.Unschedulable = true
	byName := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		toleration corev1.Toleration
		owner      metav1.Object
		ready      corev1.ConditionStatus
		want       []string
	}{
		"by its name":              {byName, nil, corev1.ConditionTrue, []string{"cordoned"}},
		"with everything else":     {corev1.Toleration{Operator: corev1.TolerationOpExists}, nil, corev1.ConditionTrue, nil},
		"a replica":                {byName, rs, corev1.ConditionTrue, nil},
		"a node that is not ready": {byName, nil, corev1.ConditionFalse, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cordoned.node = cordoned.node.DeepCopy()
			cordoned.node.Status.Conditions[0].Status = c.ready
			pod := gpuPod("p", 1, c.owner)
			pod.Spec.Tolerations = []corev1.Toleration{c.toleration}
			feasible, _ := w.schedule(t, pod, cordoned)
			assert.Equal(t, c.want, feasible)
			w.turnDown(t, pod)
			hint := fwk.QueueSkip
			if c.want != nil {
				hint = fwk.Queue
			}
			assert.Equal(t, hint, w.hint(t, 0, pod, nil, cordoned.node))
		})
	}
	full := node("cordoned", h100, 8, 8)
	full.node.Spec.Unschedulable = true
	w.handle.nodes = infosOf(full)
	pod, state := gpuPod("p", 1, nil), newState()
	pod.Spec.Tolerations = []corev1.Toleration{byName}
	_, status := w.PreFilter(t.Context(), state, pod, w.handle.nodes)
	require.True(t, status.IsSuccess())
	_, status = w.PostFilter(t.Context(), state, pod, nil)
	assert.Equal(t, "wants 1xnvidia.com/gpu: 1 nvidia.com/gpu node has fewer than 1 free (largest hole 0)", status.Message())
}

// Workers of one group are one replica: without any of them it serves nothing, and apart
// they are slower. The set of the leaders has the replicas.
func TestTheWorkersOfAGroupAreNotSpread(t *testing.T) {
	group := &appsv1.StatefulSet{ObjectMeta: meta("lws", nil)}
	group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet", Name: "lws", UID: "above", Controller: new(true)}}
	leader := gpuPod("lws-0", 1, group)
	workers := &appsv1.StatefulSet{ObjectMeta: meta("lws-0", leader)}
	group.Spec.Replicas, workers.Spec.Replicas = new(int32(2)), new(int32(3))
	w := newWorld(t, []runtime.Object{group, leader, workers})
	for owner, want := range map[*appsv1.StatefulSet]string{group: "loose", workers: "tight"} {
		tight, loose := node("tight", h100, 8, 7), node("loose", h100, 8, 5)
		tight.pods = podInfos(gpuPod("mate", 1, owner))
		_, best := w.schedule(t, gpuPod("p", 1, owner), tight, loose)
		assert.Equal(t, want, best, owner.Name)
	}
}

func TestPodsWithoutDevicesAreKeptOffAcceleratorNodes(t *testing.T) {
	w := newWorld(t, nil)
	nodes := []fwk.NodeInfo{node("gpu", h100, 8, 0), node("cpu", "", 0, 0)}
	feasible, best := w.schedule(t, gpuPod("web", 0, nil), nodes...)
	assert.Equal(t, []string{"gpu", "cpu"}, feasible, "they may still go there")
	assert.Equal(t, "cpu", best)
	assert.True(t, w.PreScore(context.Background(), newState(), gpuPod("web", 0, nil), nil).IsSuccess())

	w.args.KeepOthersOffAcceleratorNodes = false
	assert.True(t, w.PreScore(context.Background(), newState(), gpuPod("web", 0, nil), nil).IsSkip())
}

func TestVariantsAreFoundThroughEveryChainOfOwners(t *testing.T) {
	leaderWorkerSet := &metav1.PartialObjectMetadata{ObjectMeta: meta("lws", nil)}
	leaders := &appsv1.StatefulSet{ObjectMeta: meta("lws", leaderWorkerSet)}
	leader := &corev1.Pod{ObjectMeta: meta("lws-0", leaders)}
	workers := &appsv1.StatefulSet{ObjectMeta: meta("lws-0", leader)}
	rs, alone := deployed("deployment"), &appsv1.ReplicaSet{ObjectMeta: meta("alone", nil)}
	ofKind := func(v *v1alpha1.VariantAutoscaling, apiVersion, kind string) *v1alpha1.VariantAutoscaling {
		v.Spec.ScaleTargetRef.APIVersion, v.Spec.ScaleTargetRef.Kind = apiVersion, kind
		return v
	}
	server := serverDeployment("server")
	servers := &appsv1.ReplicaSet{ObjectMeta: meta("server-1", server)}
	w := newWorld(t, []runtime.Object{leaders, leader, workers, rs, alone, server, servers},
		variant("deployment", "H100", 1),
		ofKind(variant("alone", "A100", 1), "apps/v1", "ReplicaSet"),
		ofKind(variant("lws", "L40S", 1), "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
		ofKind(variant("server", "H200", 1), "example.com/v1alpha2", "Server"))

	for name, c := range map[string]struct {
		owner metav1.Object
		want  string
	}{
		"deployment": {rs, "H100"}, "replica set": {alone, "A100"}, "leader": {leaders, "L40S"}, "worker": {workers, "L40S"},
		"a kind above a deployment": {servers, "H200"},
	} {
		want, status := w.preFilterStateOf(context.Background(), gpuPod("p", 1, c.owner))
		require.True(t, status.IsSuccess(), name)
		require.Len(t, want.devices, 1, name)
		assert.Equal(t, c.want, want.devices[0].String(), name)
	}
}

func TestAPodWaitsForAnOwnerThatIsNotSeenYet(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, nil, variant("v", "H100", 1))
	_, status := w.PreFilter(context.Background(), newState(), gpuPod("p", 1, rs), nil)
	assert.Equal(t, fwk.Error, status.Code(), "an error is tried again by itself")

	old := gpuPod("p", 1, rs)
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	_, status = w.PreFilter(context.Background(), newState(), old, nil)
	assert.True(t, status.IsSuccess(), "but not for ever")

	w.see(t, rs)
	_, status = w.PreFilter(context.Background(), newState(), gpuPod("p", 1, rs), nil)
	assert.True(t, status.IsSuccess())

	// One of the same name that was deleted and made again is not the pod's owner.
	again := deployed("v")
	again.UID = "another"
	w.see(t, again)
	_, status = w.PreFilter(context.Background(), newState(), gpuPod("p", 1, rs), nil)
	assert.Equal(t, fwk.Error, status.Code())
}

// failing is a source of variants that answers with an error for a while.
type failing struct {
	*fcache.FakeControllerSource
	err atomic.Pointer[apierrors.StatusError]
}

func (f *failing) List(options metav1.ListOptions) (runtime.Object, error) {
	if err := f.err.Load(); err != nil {
		return nil, err
	}
	return f.FakeControllerSource.List(options)
}

func (f *failing) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if err := f.err.Load(); err != nil {
		return nil, err
	}
	return f.FakeControllerSource.Watch(options)
}

var (
	variantObjects  = schema.GroupResource{Group: v1alpha1.GroupName, Resource: v1alpha1.Resource}
	errNotInstalled = apierrors.NewGenericServerResponse(http.StatusNotFound, "list", variantObjects, "", "the server could not find the requested resource", 0, true)
	errNotAllowed   = apierrors.NewForbidden(variantObjects, "", errors.New("no rule"))
)

func TestAMissingCRDDoesNoHarmAndMayComeLate(t *testing.T) {
	cases := []struct {
		name string
		err  *apierrors.StatusError
	}{
		{"not installed", errNotInstalled},
		{"not allowed", errNotAllowed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			source := &failing{FakeControllerSource: fcache.NewFakeControllerSource()}
			source.err.Store(c.err)
			rs := deployed("v")
			w := newWorldFrom(t, source.FakeControllerSource, source, []runtime.Object{rs})

			feasible, _ := w.schedule(t, gpuPod("early", 1, rs), node("h100", h100, 8, 0), node("a100", a100, 8, 0))
			assert.Len(t, feasible, 2, "packed without variants")

			source.FakeControllerSource.Add(variant("v", "A100", 1))
			source.err.Store(nil)
			require.Eventually(t, func() bool {
				// The object is found a moment before all are known to be read.
				return w.variants.synced() && w.variants.of([]target{{"llm", schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v"}}) != nil
			},
				time.Minute, 10*time.Millisecond)
			feasible, _ = w.schedule(t, gpuPod("late", 1, rs), node("h100", h100, 8, 0), node("a100", a100, 8, 0))
			assert.Equal(t, []string{"a100"}, feasible)
		})
	}
}

func TestPodsWithDevicesWaitForTheVariantsOfASlowAPIServer(t *testing.T) {
	source := &failing{FakeControllerSource: fcache.NewFakeControllerSource()}
	source.err.Store(apierrors.NewServiceUnavailable("starting"))
	informer, err := newVariants(source, time.Minute, func(*v1alpha1.VariantAutoscaling) {}, func() {})
	require.NoError(t, err)
	w := newWorld(t, nil)
	w.variants = informer
	informer.start(t.Context(), time.Millisecond, time.Hour)
	_, status := w.PreFilter(context.Background(), newState(), gpuPod("p", 1, nil), nil)
	assert.Equal(t, fwk.Error, status.Code())
	_, status = w.PreFilter(context.Background(), newState(), gpuPod("web", 0, nil), nil)
	assert.True(t, status.IsSkip(), "the others do not")
}

func TestAnAPIServerThatCannotListVariantsDoesNotStopPodsForEver(t *testing.T) {
	registerMetrics()
	source := &failing{FakeControllerSource: fcache.NewFakeControllerSource()}
	source.FakeControllerSource.Add(variant("v", "A100", 1))
	source.err.Store(apierrors.NewInternalError(errors.New("broken")))
	rs := deployed("v")
	waiting := gpuPod("waiting", 1, rs)
	w := newWorld(t, []runtime.Object{rs, waiting})
	w.scheduling.Store(true)
	var err error
	w.variants, err = newVariants(source, time.Minute, w.variantChanged, w.soon)
	require.NoError(t, err)
	cluster.watch(w.profile, w.variants.current)
	w.variants.start(t.Context(), time.Millisecond, 50*time.Millisecond)
	require.Eventually(t, func() bool { return w.handle.wasActivated("llm/waiting") }, time.Minute, time.Millisecond)
	nodes := []fwk.NodeInfo{node("h100", h100, 8, 0), node("a100", a100, 8, 0)}
	feasible, _ := w.schedule(t, gpuPod("p", 1, rs), nodes...)
	assert.Len(t, feasible, 2, "packed without variants")
	assert.Equal(t, 0.0, gaugeOf(t, "acceleratorplacement_variants_known", nil))

	w.handle.forget()
	source.err.Store(nil)
	require.Eventually(t, func() bool { return w.handle.wasActivated("llm/waiting") && !w.variants.overdue.Load() }, time.Minute, time.Millisecond)
	feasible, _ = w.schedule(t, gpuPod("p", 1, rs), nodes...)
	assert.Equal(t, []string{"a100"}, feasible)
	assert.Equal(t, 1.0, gaugeOf(t, "acceleratorplacement_variants_known", nil))
}

func TestAChangedSpecWakesTheVariantsPodsAndAStatusDoesNot(t *testing.T) {
	rs := deployed("v")
	waiting, bound, stranger := gpuPod("waiting", 1, rs), gpuPod("bound", 1, rs), gpuPod("stranger", 1, deployed("other"))
	bound.Spec.NodeName = "n"
	v := variant("v", "H100", 1)
	w := newWorld(t, []runtime.Object{rs, deployed("other"), waiting, bound, stranger}, v.DeepCopy())
	w.schedule(t, waiting)

	status := v.DeepCopy()
	status.Status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{Accelerator: "H100"}
	// The first status that names an accelerator: the spec already does.
	status.Status.CurrentAlloc = &v1alpha1.CurrentAlloc{Accelerator: "H100"}
	w.source.Modify(status)
	require.Eventually(t, func() bool { return w.variants.list()[0].Status.CurrentAlloc != nil }, time.Minute, time.Millisecond)
	// Events come in their order: a change of another variant comes after this one.
	w.source.Add(variant("other", "H100", 1))
	require.Eventually(t, func() bool { return w.handle.wasActivated("llm/stranger") }, time.Minute, time.Millisecond)
	assert.False(t, w.handle.wasActivated("llm/waiting"))
	w.handle.forget()

	spec := v.DeepCopy()
	spec.Spec.Accelerator = "A100"
	w.source.Modify(spec)
	require.Eventually(t, func() bool { return w.handle.wasActivated("llm/waiting") }, time.Minute, time.Millisecond)
	assert.False(t, w.handle.wasActivated("llm/bound"))
	assert.False(t, w.handle.wasActivated("llm/stranger"))
}

func TestPostFilterExplainsWithNumbers(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 4))
	nodes := append(names("a", 12, func(int) *nodeInfo { return node("", a100, 8, 0) }),
		names("h", 3, func(i int) *nodeInfo { return node("", h100, 8, 8-i) })...)
	nodes = append(nodes, node("x", "", 8, 0))
	pod, state := gpuPod("p", 4, rs), newState()
	w.handle.nodes = nodes
	_, status := w.PreFilter(context.Background(), state, pod, nodes)
	require.True(t, status.IsSuccess())
	result, status := w.PostFilter(context.Background(), state, pod, nil)
	assert.Nil(t, result)
	assert.Equal(t, fwk.Unschedulable, status.Code())
	assert.Equal(t, "wants 4xH100: 3 H100 nodes have fewer than 4 free (largest hole 2), 12 nodes are of another type, 1 has no product label", status.Message())
}

func TestPostFilterKnowsWhatOtherPluginsRefuse(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 1))
	tainted := node("tainted", h100, 8, 0)
	tainted.node.Spec.Taints = []corev1.Taint{{Key: "accelerator-scheduler", Effect: corev1.TaintEffectNoSchedule}}
	nodes := []fwk.NodeInfo{tainted, node("starved", h100, 8, 0)}
	nodes[1].(*nodeInfo).requested.milliCPU = 192_000
	pod, state := gpuPod("p", 1, rs), newState()
	w.handle.nodes = nodes
	_, status := w.PreFilter(context.Background(), state, pod, nodes)
	require.True(t, status.IsSuccess())
	_, status = w.PostFilter(context.Background(), state, pod, nil)
	assert.Equal(t, "wants 1xH100: 1 H100 node has too little CPU, 1 H100 node refuses it by taint or affinity", status.Message())
}

func TestPodsOfOneOwnerShareASignature(t *testing.T) {
	w := newWorld(t, nil)
	sign := func(p *corev1.Pod) []fwk.SignFragment {
		fragments, status := w.SignPod(context.Background(), p)
		require.True(t, status.IsSuccess())
		return fragments
	}
	rs, other := deployed("v"), deployed("w")
	assert.Equal(t, sign(gpuPod("a", 1, rs)), sign(gpuPod("b", 1, rs)))
	assert.NotEqual(t, sign(gpuPod("a", 1, rs)), sign(gpuPod("b", 1, other)))
	assert.NotEqual(t, sign(gpuPod("a", 1, rs)), sign(gpuPod("b", 2, rs)))
	selecting := gpuPod("c", 1, rs)
	selecting.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": a100}
	assert.NotEqual(t, sign(gpuPod("a", 1, rs)), sign(selecting))
	tolerating := gpuPod("e", 1, rs)
	tolerating.Spec.Tolerations = []corev1.Toleration{{Key: "failing", Operator: corev1.TolerationOpExists}}
	assert.NotEqual(t, sign(gpuPod("a", 1, rs)), sign(tolerating))
	accepting := gpuPod("d", 1, rs)
	accepting.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: "A100,H100"}
	assert.NotEqual(t, sign(gpuPod("a", 1, rs)), sign(accepting))
	assert.Equal(t, sign(gpuPod("a", 0, rs)), sign(gpuPod("b", 0, other)), "without devices the owner is of no account")
}

func TestDevicesOfTwoKindsAreTurnedDownClearly(t *testing.T) {
	w := newWorld(t, nil)
	pod := gpuPod("p", 1, nil)
	pod.Spec.Containers[0].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
	_, status := w.PreFilter(context.Background(), newState(), pod, nil)
	assert.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	assert.Contains(t, status.Message(), "both amd.com/gpu and nvidia.com/gpu")
}

func TestRanksKeepTheOrderOfKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2_000 {
		scores := make(fwk.NodeScoreList, 1+rng.IntN(60))
		keys := make([]int64, len(scores))
		best := int64(math.MinInt64)
		for i := range scores {
			keys[i] = -rng.Int64N(40)
			scores[i].Score = keys[i]
			best = max(best, keys[i])
		}
		rank(scores)
		for i := range scores {
			if (keys[i] == best) != (scores[i].Score == fwk.MaxScore) {
				t.Fatalf("%v became %v: the best has all points, and nothing else", keys, scores)
			}
			for j := range i {
				if cmp.Compare(scores[i].Score, scores[j].Score)*cmp.Compare(keys[i], keys[j]) < 0 || keys[i] == keys[j] && scores[i].Score != scores[j].Score {
					t.Fatalf("%v became %v: %d and %d are not in order", keys, scores, i, j)
				}
			}
		}
	}
}

func TestExplainingAllocatesNothingForANode(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 4))
	pod, state := gpuPod("p", 4, rs), newState()
	allocated := func(nodes int) float64 {
		w.handle.nodes = names("n", nodes, func(i int) *nodeInfo { return node("", []string{h100, ""}[i%2], 8*(1-i%2), 7) })
		_, status := w.PreFilter(context.Background(), state, pod, w.handle.nodes)
		require.True(t, status.IsSuccess())
		return testing.AllocsPerRun(100, func() { w.PostFilter(context.Background(), state, pod, nil) })
	}
	assert.InDelta(t, allocated(10), allocated(2_000), 5, "longer numbers aside")
}

func TestFilterAndScoreAllocateNothing(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 1))
	pod, state, info := gpuPod("p", 1, rs), newState(), node("n", h100, 8, 3)
	_, status := w.PreFilter(context.Background(), state, pod, []fwk.NodeInfo{info})
	require.True(t, status.IsSuccess())
	scores := make(fwk.NodeScoreList, 100)
	ctx := context.Background()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		w.Filter(ctx, state, pod, info)
		scores[0].Score, _ = w.Score(ctx, state, pod, info)
		w.NormalizeScore(ctx, state, pod, scores)
	}))
}
