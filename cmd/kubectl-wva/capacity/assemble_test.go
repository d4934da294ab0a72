package capacity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

const h100 = "NVIDIA-H100-80GB-HBM3"

func quantities(gpus int, cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	if gpus > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return list
}

func node(name string, gpus int, product string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	n.Status.Allocatable = quantities(gpus, "64", "1Ti")
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	if product != "" {
		n.Labels["nvidia.com/gpu.product"] = product
	}
	return n
}

func podSpec(gpus int) corev1.PodSpec {
	r := quantities(gpus, "1", "1Gi")
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Resources: corev1.ResourceRequirements{Requests: r, Limits: r}}}}
}

// pod is one of an app, on a node.
func pod(app, name, on string, gpus int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, Labels: map[string]string{"app": app}}, Spec: podSpec(gpus)}
	p.Spec.NodeName = on
	p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(app), Controller: new(true)}}
	return p
}

// deployed is a variant on H100s whose target is a Deployment of the same name.
func deployed(name string, gpus int) variant {
	return variant{
		object: &v1alpha1.VariantAutoscaling{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name},
			Spec: v1alpha1.VariantAutoscalingSpec{
				ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}, ModelID: "llama", Accelerator: "H100",
			},
		},
		target: target{
			kind: "Deployment", podsPerReplica: 1,
			template: &corev1.PodTemplateSpec{Spec: podSpec(gpus)},
			selector: labels.SelectorFromSet(labels.Set{"app": name}),
			revision: inventory.RevisionBy(types.UID(name)),
		},
	}
}

// holed has two nodes with 8 devices each. Every replica of the small variant lies
// where the large one would fit.
func holed() *facts {
	cordoned := node("h100-2", 8, h100)
	cordoned.Spec.Unschedulable = true
	return &facts{
		names: &inventory.Names{}, podsKnown: true,
		nodes: []*corev1.Node{node("h100-1", 8, h100), node("h100-0", 8, h100), cordoned, node("fresh", 2, ""), node("cpu", 0, "")},
		pods: []*corev1.Pod{
			pod("small", "small-a", "h100-0", 1), pod("small", "small-b", "h100-1", 1), pod("small", "small-c", "h100-1", 1),
			pod("large", "large-a", "", 8), pod("training", "training", "h100-1", 3), pod("web", "web", "cpu", 0),
		},
		variants: []variant{deployed("large", 8), deployed("small", 1)},
	}
}

func TestWhatHoldsTheDevicesAndWhatMoreFits(t *testing.T) {
	c := assemble(holed())
	require.Len(t, c.Variants, 2)
	large, small := c.Variants[0], c.Variants[1]
	assert.Equal(t, "8xH100", large.Shape.Text)
	assert.Equal(t, 0, *large.Slots)
	assert.Equal(t, 1, *large.Waiting)
	assert.Equal(t, 7, *large.LargestHole)
	assert.Contains(t, large.Explanation, "wants 8xH100: 2 H100 nodes have fewer than 8 free (largest hole 7)")
	assert.Equal(t, 10, *small.Slots)
	assert.Equal(t, 3, *small.Placed)
	assert.Empty(t, small.Explanation)
	assert.Equal(t, []report.AcceleratorCapacity{
		{Nodes: 1, Devices: 2, Free: new(2), LargestHole: new(2)},
		{Accelerator: "H100", Nodes: 3, NodesOut: 1, Devices: 24, Free: new(10), Unusable: new(0), LargestHole: new(7)},
	}, c.Accelerators)
	assert.Equal(t, []report.Relocation{{Variant: "demo/large", Shape: "8xH100", Node: "h100-0", Moves: []report.Move{
		{Pod: "demo/small-a", Variant: "demo/small", Shape: "1xH100", From: "h100-0", To: "h100-1"},
	}}}, c.Relocations)
	text := strings.Join(c.Table(report.Style{}, report.Detail{}), "\n")
	for _, line := range []string{
		"h100-0  H100-80GB-HBM3   7/8  [B.......]",
		"h100-1  H100-80GB-HBM3   3/8  [BB###...]",
		"h100-2  H100-80GB-HBM3   8/8  [xxxxxxxx]  out: cordoned",
	} {
		assert.Contains(t, text, line)
	}
}

func TestDevicesThatNoVariantCanUse(t *testing.T) {
	seen := holed()
	seen.variants = seen.variants[:1]
	c := assemble(seen)
	assert.Equal(t, new(10), c.Accelerators[1].Unusable, "7 and 3 are free, and 8 are wanted together")
}

// The slots are those that the autoscaler counts: without what others wait for.
func TestSlotsLeaveOutWhatIsSpokenFor(t *testing.T) {
	nominated := pod("small", "nominated", "", 1)
	nominated.Status.NominatedNodeName = "h100-1"
	leaving := pod("small", "leaving", "h100-1", 1)
	leaving.DeletionTimestamp = new(metav1.Now())
	update := inventory.Rollout{UnderWay: true}.Within(new(intstr.FromInt32(2)), 3)
	for name, c := range map[string]struct {
		change                 func(*facts)
		placed, waiting, slots int
	}{
		"nobody waits":                 {func(*facts) {}, 3, 0, 10},
		"a pod that waits":             {func(f *facts) { f.pods = append(f.pods, pod("small", "waits", "", 1)) }, 3, 1, 9},
		"a nominated pod, once":        {func(f *facts) { f.pods = append(f.pods, nominated) }, 3, 1, 9},
		"one that goes holds it still": {func(f *facts) { f.pods = append(f.pods, leaving) }, 3, 0, 9},
		"two that no pod shows yet":    {func(f *facts) { f.variants[1].target.replicas = 5 }, 3, 0, 8},
		"a rolling update":             {func(f *facts) { f.variants[1].target.rollout = update }, 3, 0, 8},
		"of another variant": {func(f *facts) {
			f.variants = append(f.variants, deployed("other", 2))
			f.variants[2].target.replicas = 1
		}, 3, 0, 8},
		"two objects on one target, once": {func(f *facts) {
			twin := deployed("small", 1)
			twin.object.Name = "twin"
			twin.target.replicas, f.variants[1].target.replicas = 4, 4
			f.variants = append(f.variants, twin)
		}, 3, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			seen := holed()
			c.change(seen)
			for i := range seen.variants {
				v := &seen.variants[i]
				v.target.replicas = max(v.target.replicas, map[string]int{"small": 3, "large": 1}[v.object.Spec.ScaleTargetRef.Name])
			}
			small := assemble(seen).Variants[1]
			assert.Equal(t, []int{c.placed, c.waiting, c.slots}, []int{*small.Placed, *small.Waiting, *small.Slots})
		})
	}
}

func TestPodsAreThoseOfTheTargetsOwnReplicaSets(t *testing.T) {
	seen := holed()
	owned := func(p *corev1.Pod, set string) *corev1.Pod {
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(set), Controller: new(true)}}
		return p
	}
	seen.variants = seen.variants[1:]
	seen.variants[0].target.owners = []types.UID{"old", "new"}
	seen.pods = []*corev1.Pod{
		owned(pod("small", "a", "h100-0", 1), "old"), owned(pod("small", "b", "h100-0", 1), "new"),
		owned(pod("small", "stranger", "h100-0", 1), "another"), pod("small", "bare", "h100-0", 1),
	}
	c := assemble(seen)
	assert.Equal(t, 2, *c.Variants[0].Placed)
}

func TestRequestsKnowTheirNamespace(t *testing.T) {
	seen := holed()
	guard := pod("guard", "guard", "h100-0", 0)
	guard.Labels = nil
	guard.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "small"}}, TopologyKey: corev1.LabelHostname,
		}},
	}}
	seen.pods = append(seen.pods, guard)
	seen.variants[1].target.template.Labels = map[string]string{"app": "small"}
	assert.Equal(t, "anti-affinity of other pods", assemble(seen).Variants[1].SlotsBound, "a term without a namespace is for the pod's own")
	guard.Namespace = "elsewhere"
	assert.Empty(t, assemble(seen).Variants[1].SlotsBound)
}

func TestWhatIsNotKnownIsNotZero(t *testing.T) {
	seen := holed()
	seen.pods, seen.podsKnown = nil, false
	c := assemble(seen)
	for _, v := range c.Variants {
		assert.Nil(t, v.Slots)
		assert.Nil(t, v.Placed)
		assert.NotNil(t, v.Shape)
		assert.Equal(t, "what is free is not known", v.Explanation)
	}
	for _, a := range c.Accelerators {
		assert.Nil(t, a.Free)
		assert.Nil(t, a.Unusable)
	}
	assert.Contains(t, strings.Join(c.Table(report.Style{}, report.Detail{}), "\n"), "-/8  [????????]")
}

func TestTargetsThatTellNothing(t *testing.T) {
	missing, blind, told := deployed("small", 1), deployed("small", 1), deployed("small", 1)
	missing.target = target{kind: "Deployment", problem: "Deployment small does not exist in namespace demo"}
	blind.target = target{kind: "Server", podsPerReplica: 1}
	told.target = blind.target
	told.object.Spec.AcceleratorCount = new(int32(4))
	spans := deployed("small", 1)
	spans.target.podsPerReplica = 2
	for name, c := range map[string]struct {
		v     variant
		slots *int
		bound string
		says  string
	}{
		"no target":                       {missing, nil, "", "does not exist"},
		"a kind without a known template": {blind, nil, "", "set spec.accelerator and spec.acceleratorCount"},
		"the object says what is needed":  {told, new(1), "the pod template of a Server", ""},
		"a replica spans nodes":           {spans, nil, "", "several pods"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := holed()
			seen.variants = []variant{c.v}
			got := assemble(seen).Variants[0]
			assert.Equal(t, c.slots, got.Slots)
			assert.Equal(t, c.bound, got.SlotsBound)
			assert.Contains(t, got.Explanation, c.says)
			assert.Equal(t, c.says == "", got.Explanation == "")
		})
	}
}

// Five thousand nodes, a tenth of them with devices and full of holes, and thirty
// variants, half of them without room: the longest that a person may wait.
func BenchmarkFiveThousandNodes(b *testing.B) {
	seen := &facts{names: &inventory.Names{}, podsKnown: true}
	for i := range 5000 {
		name := fmt.Sprintf("node-%d", i)
		if i%10 != 0 {
			seen.nodes = append(seen.nodes, node(name, 0, ""))
			continue
		}
		seen.nodes = append(seen.nodes, node(name, 8, h100))
		for j := range 1 + i/10%7 {
			seen.pods = append(seen.pods, pod(fmt.Sprintf("v%d", (i/10+j)%15), fmt.Sprintf("p-%d-%d", i, j), name, 1))
		}
	}
	for i := range 30 {
		seen.variants = append(seen.variants, deployed(fmt.Sprintf("v%d", i), 1+i/15*7))
	}
	for b.Loop() {
		c := assemble(seen)
		require.NotEmpty(b, c.Table(report.Style{}, report.Detail{}))
	}
}

// Without a replica to look at, a template counts with what the webhook fills in where the
// namespace has opted in.
func TestATemplateThatTheWebhookCompletes(t *testing.T) {
	for name, c := range map[string]struct {
		placed map[string]bool
		want   int
	}{"it opted in": {map[string]bool{"demo": true}, 1}, "it has not": {nil, 0}} {
		t.Run(name, func(t *testing.T) {
			owned := node("h100-0", 8, h100)
			owned.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintScheduler, Value: "variant-scheduler", Effect: corev1.TaintEffectNoSchedule}}
			shown := assemble(&facts{
				names: &inventory.Names{}, podsKnown: true, placed: c.placed,
				nodes: []*corev1.Node{owned}, variants: []variant{deployed("large", 8)},
			}).Variants[0]
			require.NotNil(t, shown.Slots, shown.Explanation)
			assert.Equal(t, c.want, *shown.Slots)
		})
	}
}
