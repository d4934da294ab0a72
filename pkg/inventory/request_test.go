package inventory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

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

func TestRequestReadsTheTemplate(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a"), h100("b")}, nil)
	limits := template(corev1.Container{Name: "server", Resources: corev1.ResourceRequirements{
		Limits: list("nvidia.com/gpu", "4", "memory", "64Gi"), Requests: list("cpu", "16", "memory", "32Gi"),
	}})

	r, err := inv.plain(limits, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 1, MilliCPU: 16_000, MemoryBytes: 32 << 30}, r.Shape)
	assert.Nil(t, r.Refused)
	assert.Empty(t, r.Bound)
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 4, slots)
	assert.Empty(t, limits.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"], "the template is not changed")
}

func TestTemplateTakesWhatTheWholePodAsksFor(t *testing.T) {
	cases := []struct {
		name            string
		requests        corev1.ResourceList
		limits          corev1.ResourceList
		containers      []corev1.Container
		milliCPU, bytes int64
	}{
		{"limits alone", nil, list("cpu", "8", "memory", "16Gi"), []corev1.Container{container()}, 8000, 16 << 30},
		{"limits, and containers that ask", nil, list("cpu", "8", "memory", "16Gi"), []corev1.Container{container("cpu", "1"), container("cpu", "2")}, 3000, 16 << 30},
		{"requests and limits", list("cpu", "4"), list("cpu", "8", "memory", "16Gi"), []corev1.Container{container("cpu", "1")}, 4000, 16 << 30},
		{"limits of one resource, and containers that ask for another", nil, list("cpu", "8"), []corev1.Container{container("memory", "1Gi")}, 8000, 1 << 30},
		{"requests alone", list("cpu", "4"), nil, []corev1.Container{container("cpu", "1", "memory", "1Gi")}, 4000, 1 << 30},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tmpl := template(c.containers...)
			tmpl.Spec.Resources = &corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}
			before := tmpl.DeepCopy()
			takes, err := TemplateTakes(tmpl)
			require.NoError(t, err)
			assert.Equal(t, Takes{MilliCPU: c.milliCPU, MemoryBytes: c.bytes}, takes)
			assert.Equal(t, before, tmpl, "the template is not changed")
		})
	}
}

func TestReadingAPodDoesNotAddItsOverheadToIt(t *testing.T) {
	tmpl := template(container())
	tmpl.Spec.Resources, tmpl.Spec.Overhead = &corev1.ResourceRequirements{Limits: list("memory", "2.5Gi")}, list("memory", "512Mi")
	pod := boundPod("a", container())
	pod.Spec.Resources, pod.Spec.Overhead = &corev1.ResourceRequirements{Requests: list("memory", "2.5Gi")}, list("memory", "512Mi")
	for range 3 {
		takes, err := TemplateTakes(tmpl)
		require.NoError(t, err)
		assert.EqualValues(t, 3<<30, takes.MemoryBytes)
		takes, err = PodTakes(pod)
		require.NoError(t, err)
		assert.EqualValues(t, 3<<30, takes.MemoryBytes)
	}
}

func TestRequestKnowsWhichNodesRefuse(t *testing.T) {
	tainted, spread, narrow, other := h100("tainted"), h100("labelled"), h100("narrow"), h100("zone")
	tainted.Spec.Taints = []corev1.Taint{
		{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "accelerator-scheduler", Value: "owned", Effect: corev1.TaintEffectNoSchedule},
	}
	spread.Labels["pool"] = "inference"
	narrow.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}
	inv := Read([]*corev1.Node{tainted, spread, narrow, other}, nil)
	refusedBy := func(change func(*corev1.PodSpec), accelerator string, candidates int) map[string]string {
		tmpl := template(container("nvidia.com/gpu", "8"))
		change(&tmpl.Spec)
		r, err := inv.plain(tmpl, Normalize(accelerator))
		require.NoError(t, err)
		got := map[string]string{}
		for i, why := range r.Refused {
			if why != "" {
				got[inv.Nodes[i].Name] = why
			}
		}
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, candidates-len(got), slots)
		return got
	}

	assert.Equal(t, map[string]string{"tainted": "taint accelerator-scheduler"}, refusedBy(func(*corev1.PodSpec) {}, "H100", 4))
	tolerate := func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "accelerator-scheduler", Operator: corev1.TolerationOpExists}}
	}
	assert.Empty(t, refusedBy(tolerate, "H100", 4))
	assert.Empty(t, refusedBy(tolerate, "H100-80GB", 3), "the model knows that H100-NVL of unknown memory is another type")
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "inference"} }, "H100", 4), 3)
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) {
		tolerate(s)
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}
	}, "H100", 4), 1)
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) { s.NodeName = "zone" }, "H100", 4), 3)
}

func TestRequestAsksForNarrowerForms(t *testing.T) {
	small, large, unknown := h100("small"), h100("large"), h100("unknown")
	small.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB"}
	large.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
	unknown.Labels = map[string]string{"karpenter.azure.com/sku-gpu-name": "A100"}
	inv := Read([]*corev1.Node{small, large, unknown}, nil)
	cases := []struct {
		wanted, shape string
		slots         int
	}{
		{"A100", "8xA100", 3},
		{"A100-80GB", "8xA100-80GB", 1},
		{"NVIDIA-A100-PCIE-40GB", "8xA100-40GB-PCIE", 1},
		{"A100-SXM4-40GB", "8xA100-40GB-SXM4", 0},
	}
	for _, c := range cases {
		t.Run(c.wanted, func(t *testing.T) {
			r, err := inv.plain(template(container("nvidia.com/gpu", "8")), Normalize(c.wanted))
			require.NoError(t, err)
			assert.Equal(t, c.shape, r.Shape.String())
			assert.Nil(t, r.Refused, "the model tells them apart by itself")
			slots, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, c.slots, slots)
		})
	}
}

func TestRequestNamesWhatItDoesNotModel(t *testing.T) {
	anti := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
	together := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
	linux, windows := h100("linux"), h100("windows")
	linux.Labels[corev1.LabelOSStable], windows.Labels[corev1.LabelOSStable] = "linux", "windows"
	cases := []struct {
		want   string
		change func(*corev1.PodSpec)
	}{
		{"", func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{}}}}
			s.NodeName, s.Tolerations, s.NodeSelector = "linux", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, map[string]string{"pool": "a"}
		}},
		{"pod anti-affinity", func(s *corev1.PodSpec) { s.Affinity = anti }},
		{"pod affinity", func(s *corev1.PodSpec) { s.Affinity = together }},
		{"topology spread", func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
		}},
		{"volumes", func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		}},
		{"host ports", func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }},
		{"host ports", func(s *corev1.PodSpec) {
			s.HostNetwork, s.InitContainers = true, []corev1.Container{{Name: "proxy", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}
		}},
		{"", func(s *corev1.PodSpec) { s.HostNetwork = true }},
		{"", func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}} }},
		{"", func(s *corev1.PodSpec) { s.RuntimeClassName, s.Overhead = ptr.To("kata"), list("cpu", "1") }},
		{"scheduling gates", func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }},
		{"Kueue", func(s *corev1.PodSpec) {
			s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		}},
		{"pod group", func(s *corev1.PodSpec) {
			s.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
		}},
		{"operating system", func(s *corev1.PodSpec) { s.OS = &corev1.PodOS{Name: corev1.Linux} }},
		{"ephemeral-storage, hugepages-2Mi", func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, container("rdma/hca", "1", "hugepages-2Mi", "4Mi", "ephemeral-storage", "1Gi"))
		}},
		{"pod anti-affinity, volumes", func(s *corev1.PodSpec) {
			s.Affinity, s.Volumes = anti, []corev1.Volume{{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}}}
			s.Containers = append(s.Containers, container("rdma/hca", "1"))
		}},
	}
	for _, c := range cases {
		t.Run(c.want, func(t *testing.T) {
			tmpl := template(container("nvidia.com/gpu", "1"))
			c.change(&tmpl.Spec)
			r, err := Read([]*corev1.Node{linux, windows}, nil).plain(tmpl, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.want, r.Bound)
		})
	}
	same := template(container("nvidia.com/gpu", "1"))
	same.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
	r, err := Read([]*corev1.Node{linux}, nil).plain(same, Normalize("H100"))
	require.NoError(t, err)
	assert.Empty(t, r.Bound, "all nodes run it")
}

// An extended resource is a number per node, whatever it is: that of a maker that
// nobody knows, or one beside the devices.
func TestRequestCountsExtendedResources(t *testing.T) {
	offering := func(name string, amounts ...string) *corev1.Node {
		n := h100(name)
		maps.Copy(n.Status.Allocatable, list(amounts...))
		return n
	}
	nodes := []*corev1.Node{offering("a", "rdma/hca", "2"), offering("b", "rdma/hca", "8", "furiosa.ai/rngd", "4"), h100("c")}
	pods := []*corev1.Pod{
		boundPod("b", container("rdma/hca", "3", "furiosa.ai/rngd", "1")), boundPod("b", container("rdma/hca", "1")),
		boundPod("c", container("rdma/hca", "1")),
	}
	for i := range pods {
		pods[i].UID = types.UID(fmt.Sprint(i))
	}
	inv := Read(nodes, pods)
	for _, c := range []struct {
		asks  []string
		slots int
		wants string
	}{
		{[]string{"nvidia.com/gpu", "1", "rdma/hca", "1"}, 2 + 4, "1xH100 and 1 of rdma/hca"},
		{[]string{"nvidia.com/gpu", "1", "rdma/hca", "3"}, 1, "1xH100 and 3 of rdma/hca"},
		{[]string{"furiosa.ai/rngd", "1"}, 3, "1 of furiosa.ai/rngd"},
		{[]string{"furiosa.ai/rngd", "2", "rdma/hca", "1"}, 1, "2 of furiosa.ai/rngd and 1 of rdma/hca"},
		{[]string{"nobody.example.com/has-it", "1"}, 0, "1 of nobody.example.com/has-it"},
		{[]string{"rdma/hca", "0"}, 3 * 110, "no devices"},
	} {
		r, err := inv.plain(template(container(c.asks...)), Normalize("H100"))
		require.NoError(t, err)
		assert.Empty(t, r.Bound)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		if c.wants == "no devices" {
			// Pod slots and what pods hold of them.
			c.slots -= len(pods)
		}
		assert.Equal(t, c.slots, slots, "%v", c.asks)
		assert.Equal(t, c.wants, placement.Wants(r.Shape, r.Other))
	}
	same := func() *placement.Request {
		r, err := inv.plain(template(container("nvidia.com/gpu", "1", "rdma/hca", "1")), Normalize("H100"))
		require.NoError(t, err)
		return r
	}
	known := map[placement.Identity]bool{same().Identity(): true}
	assert.True(t, known[same().Identity()], "equal requests share what is the same")
}

// What others make of a pod is on its template: Kueue holds it back and chooses its
// nodes, and a LeaderWorkerSet keeps the others off its group's topology.
func TestRequestNamesWhoElseDecides(t *testing.T) {
	for want, change := range map[string]func(*corev1.PodTemplateSpec){
		"Kueue": func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "serving"} },
		"exclusive topology": func(p *corev1.PodTemplateSpec) {
			p.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
		},
		"": func(p *corev1.PodTemplateSpec) {
			p.Labels, p.Annotations = map[string]string{"app": "server"}, map[string]string{"leaderworkerset.sigs.k8s.io/size": "1"}
		},
	} {
		t.Run(want, func(t *testing.T) {
			tmpl := template(container("nvidia.com/gpu", "1"))
			change(tmpl)
			r, err := Read([]*corev1.Node{h100("a")}, nil).plain(tmpl, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, want, r.Bound)
		})
	}
}

func TestRequestSeesTheAntiAffinityOfOthers(t *testing.T) {
	apart := func(node, namespace string, term corev1.PodAffinityTerm) *corev1.Pod {
		pod := boundPod(node, container("cpu", "1"))
		pod.Namespace = namespace
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		return pod
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "server"}}
	cases := []struct {
		name      string
		pod       *corev1.Pod
		namespace string
		want      string
	}{
		{"in the same namespace", apart("a", "n", corev1.PodAffinityTerm{LabelSelector: app}), "n", "anti-affinity of other pods"},
		{"in another namespace", apart("a", "m", corev1.PodAffinityTerm{LabelSelector: app}), "n", ""},
		{"in another namespace that means ours", apart("a", "m", corev1.PodAffinityTerm{LabelSelector: app, Namespaces: []string{"n"}}), "n", "anti-affinity of other pods"},
		{"in another namespace that may mean ours", apart("a", "m", corev1.PodAffinityTerm{LabelSelector: app, NamespaceSelector: &metav1.LabelSelector{}}), "n", "anti-affinity of other pods"},
		{"and our namespace is not known", apart("a", "m", corev1.PodAffinityTerm{LabelSelector: app}), "", "anti-affinity of other pods"},
		{"of other labels", apart("a", "n", corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}}), "n", ""},
		{"by expression", apart("a", "n", corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}}), "n", "anti-affinity of other pods"},
		{"of everyone", apart("a", "n", corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}}), "n", "anti-affinity of other pods"},
		{"of nobody", apart("a", "n", corev1.PodAffinityTerm{}), "n", ""},
		{"on no node", apart("", "n", corev1.PodAffinityTerm{LabelSelector: app}), "n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inv := Read([]*corev1.Node{h100("a")}, []*corev1.Pod{c.pod, c.pod})
			tmpl := template(container("nvidia.com/gpu", "1"))
			tmpl.Namespace, tmpl.Labels = c.namespace, map[string]string{"app": "server", "model": "m"}
			for range 2 {
				r, err := inv.plain(tmpl, Normalize("H100"))
				require.NoError(t, err)
				assert.Equal(t, c.want, r.Bound)
			}
		})
	}
}

func TestRequestKnowsThatCoresAreDevices(t *testing.T) {
	node := h100("a")
	node.Labels = map[string]string{"karpenter.k8s.aws/instance-accelerator-name": "trainium2"}
	node.Status.Allocatable = list("cpu", "192", "pods", "110", "aws.amazon.com/neuron", "16", "aws.amazon.com/neuroncore", "128")
	whole, core := boundPod("a", container("aws.amazon.com/neuron", "1")), boundPod("a", container("aws.amazon.com/neuroncore", "2"))
	cases := []struct {
		name   string
		pods   []*corev1.Pod
		asks   corev1.ResourceName
		bound  string
		amount int
	}{
		{"nobody else", nil, "aws.amazon.com/neuron", "", 16},
		{"others hold devices too", []*corev1.Pod{whole}, "aws.amazon.com/neuron", "", 15},
		{"others hold cores", []*corev1.Pod{core}, "aws.amazon.com/neuron", "devices held under another resource", 16},
		{"others hold devices", []*corev1.Pod{whole}, "aws.amazon.com/neuroncore", "devices held under another resource", 128},
		{"others hold both", []*corev1.Pod{whole, core}, "aws.amazon.com/neuroncore", "devices held under another resource", 126},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inv := Read([]*corev1.Node{node}, c.pods)
			r, err := inv.plain(template(container(string(c.asks), "1")), Normalize("Trainium2"))
			require.NoError(t, err)
			assert.Equal(t, c.bound, r.Bound)
			n := &inv.Cluster.Nodes[0]
			pool, ok := n.Pool(r.Shape)
			require.True(t, ok)
			assert.Equal(t, c.amount, pool.Free)
		})
	}
}

func TestDevicesUnderEachResourceAreCountedThere(t *testing.T) {
	both, first, second := h100("both"), h100("first"), h100("second")
	for _, node := range []*corev1.Node{both, first, second} {
		node.Labels = map[string]string{"gpu.intel.com/product": "Max_1550"}
	}
	both.Status.Allocatable = list("cpu", "192", "pods", "110", "gpu.intel.com/xe", "4", "gpu.intel.com/i915", "2")
	first.Status.Allocatable = list("cpu", "192", "pods", "110", "gpu.intel.com/xe", "4")
	second.Status.Allocatable = list("cpu", "192", "pods", "110", "gpu.intel.com/i915", "3")
	inv := Read([]*corev1.Node{both, first, second}, []*corev1.Pod{
		boundPod("both", container("gpu.intel.com/i915", "1")), boundPod("first", container("gpu.intel.com/xe", "3")),
	})
	for offered, want := range map[string]int{"gpu.intel.com/xe": 5, "gpu.intel.com/i915": 4} {
		r, err := inv.plain(template(container(offered, "1")), Normalize("MAX1550"))
		require.NoError(t, err)
		assert.Nil(t, r.Refused)
		assert.Empty(t, r.Bound)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots, offered)
	}
}

func TestRequestRefusesDevicesUnderAnotherResource(t *testing.T) {
	node := h100("a")
	node.Labels = map[string]string{AcceleratorLabel: "our-card"}
	inv := Read([]*corev1.Node{node}, nil)
	r, err := inv.plain(template(container("amd.com/gpu", "1")), Normalize("our-card"))
	require.NoError(t, err)
	assert.Equal(t, []string{"offers them as nvidia.com/gpu"}, r.Refused)
	r, err = inv.plain(template(container("nvidia.com/gpu", "1")), Normalize("our-card"))
	require.NoError(t, err)
	assert.Nil(t, r.Refused)
}

func TestRequestsThatAskAlikeShareTheirAnswers(t *testing.T) {
	tainted := h100("tainted")
	tainted.Spec.Taints = []corev1.Taint{{Key: "owned", Effect: corev1.TaintEffectNoSchedule}}
	zone := h100("zone")
	zone.Labels["zone"] = "b"
	inv := Read([]*corev1.Node{tainted, h100("b"), zone}, nil)
	ask := func(change func(*corev1.PodSpec)) map[string]string {
		tmpl := template(container("nvidia.com/gpu", "1"))
		change(&tmpl.Spec)
		r, err := inv.plain(tmpl, Normalize("H100"))
		require.NoError(t, err)
		got := map[string]string{}
		for i, why := range r.Refused {
			if why != "" {
				got[inv.Nodes[i].Name] = why
			}
		}
		return got
	}
	in := func(zone string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}},
		}}}
	}
	both := map[string]string{"tainted": "taint owned", "b": "node affinity or selector"}
	for range 2 {
		assert.Equal(t, map[string]string{"tainted": "taint owned"}, ask(func(*corev1.PodSpec) {}))
		assert.Empty(t, ask(func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "owned", Operator: corev1.TolerationOpExists}}
		}))
		assert.Equal(t, map[string]string{"tainted": "taint owned"}, ask(func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "owned", Operator: corev1.TolerationOpEqual, Value: "other"}}
		}))
		assert.Equal(t, both, ask(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "b"} }))
		assert.Equal(t, both, ask(func(s *corev1.PodSpec) { s.Affinity = in("b") }))
		assert.Len(t, ask(func(s *corev1.PodSpec) { s.Affinity = in("c") }), 3)
		assert.Len(t, ask(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "c"} }), 3)
		assert.Len(t, ask(func(s *corev1.PodSpec) { s.NodeName = "b" }), 2)
	}
}

// Of pods that differ in one field that matters to a node each gets its own answer, whoever
// was asked about before.
func TestRequestsThatDifferDoNotShareTheirAnswers(t *testing.T) {
	taints := map[string]corev1.Taint{
		"a": {Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule},
		"b": {Key: "k", Value: "w", Effect: corev1.TaintEffectNoSchedule},
		"c": {Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute},
		"d": {Key: "l", Value: "v", Effect: corev1.TaintEffectNoSchedule},
	}
	var nodes []*corev1.Node
	for name, taint := range taints {
		n := h100(name)
		n.Labels["zone"], n.Spec.Taints = name, []corev1.Taint{taint}
		nodes = append(nodes, n)
	}
	inv := Read(nodes, nil)
	tolerates := func(key, value string, operator corev1.TolerationOperator, effect corev1.TaintEffect) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: key, Value: value, Operator: operator, Effect: effect}}
		}
	}
	everything := tolerates("", "", corev1.TolerationOpExists, "")
	for range 2 {
		for _, c := range []struct {
			change func(*corev1.PodSpec)
			admits string
		}{
			{func(*corev1.PodSpec) {}, ""},
			{everything, "abcd"},
			{tolerates("k", "v", corev1.TolerationOpEqual, corev1.TaintEffectNoSchedule), "a"},
			{tolerates("k", "w", corev1.TolerationOpEqual, corev1.TaintEffectNoSchedule), "b"},
			{tolerates("k", "v", corev1.TolerationOpEqual, corev1.TaintEffectNoExecute), "c"},
			{tolerates("k", "v", corev1.TolerationOpEqual, ""), "ac"},
			{tolerates("k", "", corev1.TolerationOpExists, corev1.TaintEffectNoSchedule), "ab"},
			{tolerates("k", "", corev1.TolerationOpEqual, corev1.TaintEffectNoSchedule), ""},
			{tolerates("l", "v", corev1.TolerationOpEqual, corev1.TaintEffectNoSchedule), "d"},
			{func(s *corev1.PodSpec) { everything(s); s.NodeSelector = map[string]string{"zone": "b"} }, "b"},
			{func(s *corev1.PodSpec) { everything(s); s.NodeSelector = map[string]string{"zone": "c"} }, "c"},
			{func(s *corev1.PodSpec) { everything(s); s.NodeName = "d" }, "d"},
		} {
			tmpl := template(container("nvidia.com/gpu", "1"))
			c.change(&tmpl.Spec)
			r, err := inv.Request(tmpl, PodOf(tmpl), Normalize("H100"))
			require.NoError(t, err)
			admits := ""
			for i := range inv.Cluster.Nodes {
				if inv.Cluster.Verdict(r, i) == placement.Fits {
					admits += inv.Cluster.Nodes[i].Name
				}
			}
			assert.Equal(t, c.admits, admits, "%+v", tmpl.Spec)
		}
	}
}

func TestRequestRefusesWhatItCannotCount(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a")}, nil)
	claims := template(container())
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		wanted   string
		want     string
	}{
		{"no template", nil, "H100", "the shape of a replica is unknown"},
		{"claims", claims, "H100", "resource claims"},
		{"no accelerator", template(container("nvidia.com/gpu", "1")), "", "set spec.accelerator"},
		{"two kinds of devices", template(container("nvidia.com/gpu", "1"), container("amd.com/gpu", "1")), "H100", "both amd.com/gpu and nvidia.com/gpu"},
		{"a slice of another size, shared", template(container("nvidia.com/mig-1g.10gb.shared", "1")), "H100-MIG-3g.40gb", "is no nvidia.com/mig-1g.10gb.shared"},
		{"two sizes of slices", template(container("nvidia.com/mig-1g.10gb", "1", "nvidia.com/mig-3g.40gb", "1")), "H100", "both nvidia.com/mig-1g.10gb and nvidia.com/mig-3g.40gb"},
		{"another Ascend", template(container("huawei.com/Ascend910B2", "1")), "H100", "H100 is no huawei.com/Ascend910B2"},
		{"a slice of another size", template(container("nvidia.com/mig-1g.10gb", "1")), "H100-MIG-3g.40gb", "H100-MIG-3g.40gb is no nvidia.com/mig-1g.10gb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := inv.plain(c.template, Normalize(c.wanted))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestLabelsWithoutDevicesAreNoZero(t *testing.T) {
	bare := func(name string) *corev1.Node {
		n := h100(name)
		delete(n.Status.Allocatable, "nvidia.com/gpu")
		return n
	}
	none, cordoned, full, cut := bare("none"), bare("cordoned"), h100("full"), h100("cut")
	none.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0")
	cordoned.Spec.Unschedulable = true
	cut.Status.Allocatable = list("cpu", "192", "pods", "110", "nvidia.com/mig-1g.10gb", "7")
	cases := []struct {
		name     string
		nodes    []*corev1.Node
		resource string
		wanted   string
		slots    int
		wantErr  string
	}{
		{"only labels", []*corev1.Node{bare("a"), none}, "nvidia.com/gpu", "H100", 0,
			"no node offers nvidia.com/gpu of H100, and labels announce them (nodes: 2, such as a): the device plugin is not there yet, or devices served through resource claims"},
		{"only labels, of a narrower form", []*corev1.Node{bare("a")}, "nvidia.com/gpu", "H100-80GB", 0, "of H100-80GB"},
		{"only labels, and slices are asked for", []*corev1.Node{bare("a")}, "nvidia.com/mig-1g.10gb", "H100", 0, "no node offers nvidia.com/mig-1g.10gb of H100"},
		{"another node offers them", []*corev1.Node{bare("a"), h100("b")}, "nvidia.com/gpu", "H100", 8, ""},
		{"another node offers them, and is full", []*corev1.Node{bare("a"), full}, "nvidia.com/gpu", "H100", 0, ""},
		{"another node offers slices of them", []*corev1.Node{bare("a"), cut}, "nvidia.com/gpu", "H100", 0, "no node offers nvidia.com/gpu of H100"},
		{"labels of another type", []*corev1.Node{bare("a")}, "nvidia.com/gpu", "A100", 0, ""},
		{"a node that takes no pods", []*corev1.Node{cordoned}, "nvidia.com/gpu", "H100", 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var pods []*corev1.Pod
			if slices.Contains(c.nodes, full) {
				pods = append(pods, boundPod("full", container("nvidia.com/gpu", "8")))
			}
			inv := Read(c.nodes, pods)
			r, err := inv.plain(template(container(c.resource, "1")), Normalize(c.wanted))
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				require.ErrorIs(t, err, ErrClaims)
				return
			}
			require.NoError(t, err)
			got, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, c.slots, got)
		})
	}
	inv := Read([]*corev1.Node{bare("a"), h100("b")}, nil)
	assert.Contains(t, inv.Reason(0), "its device plugin is not there yet", "it stays out with a reason")
}

func TestASliceIsNoWholeDevice(t *testing.T) {
	sliced, shared := h100("sliced"), h100("shared")
	sliced.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"
	shared.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-SHARED"
	inv := Read([]*corev1.Node{sliced, shared}, nil)
	for accelerator, want := range map[string]int{"H100": 0, "H100-MIG-3g.40gb": 8, "H100-SHARED": 8} {
		r, err := inv.plain(template(container("nvidia.com/gpu", "1")), Normalize(accelerator))
		require.NoError(t, err)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots, accelerator)
	}
}
