package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// h100 is a ready node of eight H100 as GPU discovery labels it.
func h100(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
			"nvidia.com/gpu.memory":  "81559",
		}},
		Status: corev1.NodeStatus{
			Allocatable: list("cpu", "192", "memory", "2000Gi", "pods", "110", "nvidia.com/gpu", "8", "hugepages-2Mi", "0"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func container(pairs ...string) corev1.Container {
	return corev1.Container{Name: "server", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
}

func boundPod(node string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: node, Containers: containers},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func template(containers ...corev1.Container) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
}

func TestReadCountsThePodsOfAllSchedulers(t *testing.T) {
	done, terminating, pending := boundPod("b", container("nvidia.com/gpu", "1")), boundPod("b", container("nvidia.com/gpu", "2")), boundPod("", container("nvidia.com/gpu", "4"))
	done.Status.Phase = corev1.PodSucceeded
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	sidecar := boundPod("b", container("cpu", "1", "memory", "1Gi"))
	sidecar.Spec.InitContainers = []corev1.Container{
		{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("cpu", "500m")}},
		{Name: "fetch", Resources: corev1.ResourceRequirements{Requests: list("memory", "4Gi")}},
	}
	sidecar.Spec.Overhead = list("cpu", "250m")
	elsewhere := boundPod("gone", container("cpu", "1"))

	inv := Read([]*corev1.Node{h100("b"), h100("a")}, []*corev1.Pod{done, terminating, pending, sidecar, elsewhere})

	require.Len(t, inv.Cluster.Nodes, 2)
	assert.Equal(t, "a", inv.Cluster.Nodes[0].Name, "sorted by name")
	assert.Equal(t, inv.Cluster.Nodes[0].Allocatable, inv.Cluster.Nodes[0].Free)
	b := inv.Cluster.Nodes[1]
	assert.Equal(t, capacity.Accelerator("H100"), b.Accelerator)
	assert.Equal(t, placement.Resources{Devices: 8, MilliCPU: 192_000, MemoryBytes: 2000 << 30, Pods: 110}, b.Allocatable)
	assert.Equal(t, placement.Resources{Devices: 6, MilliCPU: 192_000 - 1750, MemoryBytes: 1996 << 30, Pods: 108}, b.Free)
}

func TestReadCountsEachPoolForItself(t *testing.T) {
	mixed, amd := h100("mixed"), h100("two-makers")
	mixed.Status.Allocatable["nvidia.com/mig-1g.10gb"] = resource.MustParse("7")
	mixed.Status.Allocatable["nvidia.com/mig-3g.40gb"] = resource.MustParse("2")
	amd.Status.Allocatable["amd.com/gpu"] = resource.MustParse("4")
	amd.Labels["amd.com/gpu.product-name"] = "AMD_Instinct_MI210"
	sidecar := boundPod("mixed", container("nvidia.com/mig-1g.10gb", "1"), container("nvidia.com/mig-1g.10gb", "2"))
	sidecar.Spec.InitContainers = []corev1.Container{container("nvidia.com/mig-1g.10gb", "4")}
	pods := []*corev1.Pod{
		boundPod("mixed", container("nvidia.com/gpu", "2")),
		boundPod("mixed", container("nvidia.com/mig-3g.40gb", "1", "cpu", "4"), container("nvidia.com/mig-1g.10gb", "1")),
		sidecar,
		boundPod("two-makers", container("amd.com/gpu", "1"), container("nvidia.com/gpu", "1")),
	}
	inv := Read([]*corev1.Node{mixed, amd}, pods)

	n := inv.Cluster.Nodes[0]
	assert.Equal(t, 6, n.Free.Devices)
	assert.Equal(t, int64(188_000), n.Free.MilliCPU)
	assert.Equal(t, 107, n.Free.Pods)
	assert.Equal(t, []placement.Pool{
		{Device: capacity.Device{Accelerator: "H100-MIG-1g.10gb", Form: "HBM3"}, Allocatable: 7, Free: 2},
		{Device: capacity.Device{Accelerator: "H100-MIG-3g.40gb", Form: "HBM3"}, Allocatable: 2, Free: 1},
	}, n.Beside)
	assert.Equal(t, n, inv.Carried[0].View(Used{MilliCPU: 4000, Pods: 3, Devices: map[corev1.ResourceName]int64{
		"nvidia.com/gpu": 2, "nvidia.com/mig-3g.40gb": 1, "nvidia.com/mig-1g.10gb": 5,
	}}, nil), "whoever adds up the pods sees the same node")
	assert.Equal(t, 7, inv.Cluster.Nodes[1].Free.Devices)
	assert.Equal(t, []placement.Pool{{Device: capacity.Device{Accelerator: "MI210"}, Allocatable: 4, Free: 3}}, inv.Cluster.Nodes[1].Beside)

	for asked, want := range map[string]struct {
		resource, accelerator string
		slots                 int
	}{
		"whole devices":            {"nvidia.com/gpu", "H100", 13},
		"slices":                   {"nvidia.com/mig-1g.10gb", "H100", 2},
		"slices by their name":     {"nvidia.com/mig-3g.40gb", "H100-MIG-3g.40gb", 1},
		"slices under no resource": {"nvidia.com/gpu", "H100-MIG-3g.40gb", 0},
		"the other maker":          {"amd.com/gpu", "MI210", 3},
		"the wrong maker":          {"amd.com/gpu", "H100", 0},
	} {
		t.Run(asked, func(t *testing.T) {
			r, err := inv.plain(template(container(want.resource, "1")), Normalize(want.accelerator))
			require.NoError(t, err)
			slots, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, want.slots, slots)
		})
	}
}

func TestNominatedPodsHoldTheirNode(t *testing.T) {
	nominated := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := boundPod("", container("nvidia.com/gpu", "2"))
		pod.Status.Phase, pod.Status.NominatedNodeName = corev1.PodPending, "a"
		change(pod)
		return pod
	}
	cases := []struct {
		name string
		pod  *corev1.Pod
		want int
	}{
		{"nominated", nominated(func(*corev1.Pod) {}), 6},
		{"of whatever priority", nominated(func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(-10)) }), 6},
		{"bound elsewhere", nominated(func(p *corev1.Pod) { p.Spec.NodeName = "b" }), 8},
		{"bound where it was nominated counts once", nominated(func(p *corev1.Pod) { p.Spec.NodeName = "a" }), 6},
		{"deleted before it was bound", nominated(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), 8},
		{"for a node that is gone", nominated(func(p *corev1.Pod) { p.Status.NominatedNodeName = "gone" }), 8},
		{"failed", nominated(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), 8},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inv := Read([]*corev1.Node{h100("a"), h100("b")}, []*corev1.Pod{c.pod})
			assert.Equal(t, c.want, inv.Cluster.Nodes[0].Free.Devices)
		})
	}
}

func TestReadCountsNothingTwice(t *testing.T) {
	node, stale := h100("a"), h100("a")
	node.ResourceVersion, stale.ResourceVersion = "1", "2"
	pod := boundPod("a", container("nvidia.com/gpu", "2"))
	pod.UID = "one"
	inv := Read([]*corev1.Node{node, stale, node}, []*corev1.Pod{pod, pod.DeepCopy(), pod})
	require.Len(t, inv.Cluster.Nodes, 1)
	assert.Equal(t, 6, inv.Cluster.Nodes[0].Free.Devices)
}

func TestAResizeUnderWayHoldsTheLarger(t *testing.T) {
	cpu := func(amount string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: list("cpu", amount, "nvidia.com/gpu", "1")}
	}
	cases := []struct {
		name             string
		asks             string
		has, allocated   string
		infeasible       bool
		want             int64
		otherNameInState bool
	}{
		{name: "as asked", asks: "4", has: "4", allocated: "4", want: 4_000},
		{name: "grows", asks: "8", has: "4", allocated: "4", want: 8_000},
		{name: "shrinks", asks: "2", has: "4", allocated: "4", want: 4_000},
		{name: "promised more than it has", asks: "2", has: "2", allocated: "6", want: 6_000},
		{name: "cannot grow", asks: "64", has: "4", allocated: "4", infeasible: true, want: 4_000},
		{name: "the state of no container", asks: "2", has: "4", allocated: "4", otherNameInState: true, want: 2_000},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := boundPod("a", corev1.Container{Name: "log", Resources: corev1.ResourceRequirements{}}, corev1.Container{Name: "server", Resources: *cpu(c.asks)})
			state := corev1.ContainerStatus{Name: "server", Resources: cpu(c.has), AllocatedResources: list("cpu", c.allocated)}
			if c.otherNameInState {
				state.Name = "gone"
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{state}
			if c.infeasible {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
			}
			n := Read([]*corev1.Node{h100("a")}, []*corev1.Pod{pod}).Cluster.Nodes[0]
			assert.Equal(t, 192_000-c.want, n.Free.MilliCPU)
			assert.Equal(t, 7, n.Free.Devices)
		})
	}
}

func TestReadSaysThatClaimsAreNotCounted(t *testing.T) {
	pod := boundPod("a", container("cpu", "1"))
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
	cordoned := h100("a")
	cordoned.Spec.Unschedulable = true
	inv := Read([]*corev1.Node{cordoned, h100("b")}, []*corev1.Pod{pod})
	assert.Equal(t, "cordoned; 1 of its pods use resource claims, whose devices are not counted", inv.Reason(0))
	assert.Empty(t, inv.Reason(1))
}

func TestReadSaysWhyANodeIsOut(t *testing.T) {
	cases := []struct {
		name   string
		change func(*corev1.Node)
		want   string
	}{
		{"ready", func(*corev1.Node) {}, ""},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, "cordoned"},
		{"not ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, "not ready"},
		{"silent", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, "not ready"},
		{"cordoned and silent", func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Status.Conditions[0].Status = true, corev1.ConditionUnknown
		}, "not ready"},
		{"deleted", func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }, "being deleted"},
		{"taken by Karpenter", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, "being removed by Karpenter"},
		{"taken by an older Karpenter", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disruption", Value: "disrupting"}}
		}, "being removed by Karpenter"},
		{"taken back by the cloud", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "aws-node-termination-handler/spot-itn"}}
		}, "being removed by AWS"},
		{"taken by the cluster autoscaler", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}} }, "being removed by the cluster autoscaler"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			node := h100("a")
			c.change(node)
			inv := Read([]*corev1.Node{node}, nil)
			assert.Equal(t, c.want, inv.Cluster.Nodes[0].Out)
			assert.Equal(t, c.want, inv.Reason(0))
		})
	}
}

func TestUnlistedProductsStayUsableAndAreCounted(t *testing.T) {
	node := h100("a")
	node.Labels = map[string]string{AcceleratorLabel: "Frobnicator 9"}
	inv := Read([]*corev1.Node{node}, nil)
	assert.Equal(t, map[string]int{"FROBNICATOR-9": 1}, inv.Unlisted)
	r, err := inv.plain(template(container("nvidia.com/gpu", "8")), Normalize("frobnicator-9"))
	require.NoError(t, err)
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 1, slots)
}

func TestAbsurdNodesHoldNothing(t *testing.T) {
	absurd := h100("absurd")
	absurd.Status.Allocatable = list("nvidia.com/gpu", "-3", "cpu", "9E", "memory", "-1", "pods", "110")
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	inv := Read([]*corev1.Node{absurd, bare}, []*corev1.Pod{boundPod("bare", container("nvidia.com/gpu", "1"))})
	r, err := inv.plain(template(container("memory", "1Gi")), Normalize("H100"))
	require.NoError(t, err)
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Zero(t, slots)
	_, err = inv.plain(template(container("nvidia.com/gpu", "1")), Normalize("H100"))
	require.ErrorContains(t, err, "no node offers nvidia.com/gpu of H100", "which is not zero")
	assert.Contains(t, inv.Reason(0), "allocatable cpu is more than any node has and was bounded; allocatable memory is negative and counts as none; allocatable nvidia.com/gpu is negative and counts as none")
}

func TestAbsurdPodsStayWithinBounds(t *testing.T) {
	huge := boundPod("a", container("nvidia.com/gpu", "9223372036854775807", "cpu", "9E", "memory", "9E"), container("nvidia.com/gpu", "9223372036854775807", "memory", "9E"))
	negative := boundPod("b", container("nvidia.com/gpu", "-8", "cpu", "-4", "memory", "-1Gi"), container("nvidia.com/gpu", "1"))
	nodes := []*corev1.Node{h100("a"), h100("b")}
	inv := Read(nodes, []*corev1.Pod{huge, negative, huge, huge})
	a, b := inv.Cluster.Nodes[0], inv.Cluster.Nodes[1]
	for _, free := range []int64{int64(a.Free.Devices), a.Free.MilliCPU, a.Free.MemoryBytes} {
		assert.Less(t, free, int64(-1)<<50, "and did not turn round")
	}
	assert.Equal(t, placement.Resources{Devices: 8, MilliCPU: 192_000, MemoryBytes: 2000 << 30, Pods: 109}, b.Free, "nobody gives more than there is")

	for _, tmpl := range []*corev1.PodTemplateSpec{template(huge.Spec.Containers...), template(container("cpu", "9E"))} {
		r, err := Read(nodes, nil).plain(tmpl, Normalize("H100"))
		require.NoError(t, err)
		slots, err := Read(nodes, nil).Cluster.Slots(r)
		require.NoError(t, err)
		assert.Zero(t, slots)
	}
}

func BenchmarkRead(b *testing.B) {
	nodes, pods := largeCluster()
	b.ReportAllocs()
	for b.Loop() {
		Read(nodes, pods)
	}
}

// BenchmarkRequest is a round of 5,000 variants, with as many templates, over 5,000
// nodes.
func BenchmarkRequest(b *testing.B) {
	nodes, pods := largeCluster()
	templates := make([]*corev1.PodTemplateSpec, 5_000)
	for i := range templates {
		tmpl := template(container("nvidia.com/gpu", "8", "cpu", fmt.Sprintf("%dm", 1000+i)))
		tmpl.Labels = map[string]string{"app": fmt.Sprintf("server-%d", i)}
		tmpl.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
		templates[i] = tmpl
	}
	cases := []struct {
		name     string
		selector func(i int) map[string]string
	}{
		{"plain", func(int) map[string]string { return nil }},
		{"with a node selector", func(int) map[string]string {
			return map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
		}},
		{"each with a node selector of its own", func(i int) map[string]string { return map[string]string{"variant": fmt.Sprint(i)} }},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			for i := range templates {
				templates[i].Spec.NodeSelector = c.selector(i)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				inv := Read(nodes, pods)
				b.StartTimer()
				for _, tmpl := range templates {
					if _, err := inv.plain(tmpl, Normalize("H100")); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// largeCluster is 5,000 nodes, 700 of them with devices and tainted, and 50,000 pods,
// a tenth of which keep others away.
func largeCluster() ([]*corev1.Node, []*corev1.Pod) {
	nodes := make([]*corev1.Node, 5_000)
	for i := range nodes {
		nodes[i] = h100(fmt.Sprintf("node-%05d", i*7919%5_000))
		if i%7 == 0 {
			nodes[i].Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
			continue
		}
		delete(nodes[i].Status.Allocatable, "nvidia.com/gpu")
		nodes[i].Labels = map[string]string{"kubernetes.io/arch": "amd64"}
	}
	pods := make([]*corev1.Pod, 50_000)
	for i := range pods {
		pods[i] = boundPod(nodes[i%len(nodes)].Name, container("cpu", "500m", "memory", "1Gi"))
		pods[i].UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
		if i%10 == 0 {
			owner := fmt.Sprintf("set-%d", i/100)
			pods[i].OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: ptr.To(true)}}
			pods[i].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": owner}}, TopologyKey: "kubernetes.io/hostname",
				}},
			}}
		}
		// A node of Kubernetes 1.35 reports what each container really has.
		pods[i].Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "server", Resources: &pods[i].Spec.Containers[0].Resources, AllocatedResources: pods[i].Spec.Containers[0].Resources.Requests,
		}}
	}
	return nodes, pods
}

// What nodes carry may be kept from one inventory to the next: pods take nothing off it.
func TestReadTakesWhatIsKnownOfNodes(t *testing.T) {
	a, b := h100("a"), h100("b")
	b.Status.Allocatable["rdma/hca"] = resource.MustParse("8")
	b.Status.Allocatable["amd.com/gpu"] = resource.MustParse("4")
	known := map[*corev1.Node]*Carried{a: new(Names).Carried(a), b: new(Names).Carried(b)}
	o := Objects{
		Nodes: []*corev1.Node{a, b},
		Pods:  []*corev1.Pod{boundPod("b", container("nvidia.com/gpu", "1", "rdma/hca", "3", "amd.com/gpu", "2"))},
		Known: func(node *corev1.Node) *Carried { return known[node] },
	}
	first, second := new(Names).Read(o), new(Names).Read(o)
	assert.Same(t, known[b], first.Carried[1])
	assert.Equal(t, Read(o.Nodes, o.Pods).Cluster, first.Cluster)
	assert.Equal(t, first.Cluster, second.Cluster)
}

func TestSoftTaintsAskPodsToGoElsewhere(t *testing.T) {
	failing := corev1.Taint{Key: "failing", Value: "memory", Effect: corev1.TaintEffectPreferNoSchedule}
	barred := corev1.Taint{Key: "barred", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		want        bool
	}{
		"none":                 {nil, nil, false},
		"one":                  {[]corev1.Taint{failing}, nil, true},
		"one that bars":        {[]corev1.Taint{barred}, nil, false},
		"tolerated":            {[]corev1.Taint{failing}, []corev1.Toleration{{Key: "failing", Value: "memory"}}, false},
		"tolerated where hard": {[]corev1.Taint{failing}, []corev1.Toleration{{Key: "failing", Value: "memory", Effect: corev1.TaintEffectNoSchedule}}, true},
		"one of two tolerated": {[]corev1.Taint{failing, {Key: "x", Effect: failing.Effect}}, []corev1.Toleration{{Key: "failing", Operator: corev1.TolerationOpExists}}, true},
		"all tolerated":        {[]corev1.Taint{barred, failing}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, false},
	} {
		node := h100("n")
		node.Spec.Taints = c.taints
		carried := new(Names).Carried(node)
		assert.Equal(t, c.want, carried.Discourages(c.tolerations), name)
		assert.Empty(t, carried.Out, name)
	}
}
