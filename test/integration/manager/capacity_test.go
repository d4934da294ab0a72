package manager_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// ownProduct is the product of the node that a test adds.
const ownProduct = "ACME-Card-7"

// addNode adds a node with the test's own product until the test ends.
func addNode(t *testing.T, devices int) {
	t.Helper()
	shape := localcluster.EightH100
	shape.Product, shape.GPUs = ownProduct, devices
	node := shape.Node("own", "a")
	made(t, node)
	conditiontest.Eventually(t, patience, "a ready node", func() (string, bool) {
		for _, c := range read(t, node).Status.Conditions {
			if c.Type == corev1.NodeReady {
				return string(c.Status), c.Status == corev1.ConditionTrue
			}
		}
		return "no condition", false
	})
}

// onOwnNode sends a Deployment's pods to that node.
func onOwnNode(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": ownProduct}
	return d
}

// Without the permission to read nodes nobody knows what fits, and the object or the
// mode says what happens then.
func TestUnknownCapacity(t *testing.T) {
	const missing = `the permission to list nodes in API group "" is missing`
	lesser(t, "blind", map[string]string{"nodes": "list"})
	for _, limited := range []bool{true, false} {
		instance := fmt.Sprintf("blind-limited-%t", limited)
		t.Run(instance, func(t *testing.T) {
			startAs(t, instance, "blind", fmt.Sprintf("--wva-limited-mode=%t", limited))
			cases := []struct {
				answer v1alpha1.UnknownCapacity
				want   int32
			}{
				{"", map[bool]int32{true: 1, false: 2}[limited]},
				{v1alpha1.UnknownCapacityAllow, 2},
				{v1alpha1.UnknownCapacityHold, 1},
			}
			servers := serveModels(t)
			variants := make([]*v1alpha1.VariantAutoscaling, len(cases))
			for i, c := range cases {
				namespace := space(t)
				servers.ask(namespace, 0.9*serves)
				variants[i] = variant(namespace, "llama-h100", "server", instance)
				variants[i].Spec.OnUnknownCapacity = c.answer
				create(t, deployment(namespace, "server", 1), variants[i])
			}
			for i, c := range cases {
				v := variants[i]
				known := shows(t, patience, v, v1alpha1.ConditionCapacityKnown, "CapacityUnknown")
				assert.Equal(t, metav1.ConditionFalse, known.Status)
				assert.Contains(t, known.Message, missing)
				servers.settle(t, v.Namespace, 1)
				if c.want > 1 {
					hasReplicas(t, patience, deployment(v.Namespace, "server", 1), v, c.want)
				}
			}
			roundsLater(t, instance, 5)
			for i, c := range cases {
				d := read(t, deployment(variants[i].Namespace, "server", 1))
				assert.Equal(t, c.want, *d.Spec.Replicas, "onUnknownCapacity %q\n%s", c.answer, describe(read(t, variants[i])))
				assert.Nil(t, variants[i].Status.Placement.Slots, "unknown is not none")
			}
			for series := range seriesOf(t, instance, variants[0].Namespace) {
				assert.NotContains(t, series, "wva_variant_free_slots")
			}
		})
	}
}

// A manager that has lost the permission to count does not go on with what it counted
// last, and one that gets it later says what to do.
func TestThePermissionToCountMayComeAndGo(t *testing.T) {
	lesser(t, "fading", nil)
	lesser(t, "late", map[string]string{"nodes": "list"})
	servers := serveModels(t)
	variants := map[string]*v1alpha1.VariantAutoscaling{}
	for instance, reason := range map[string]string{"fading": v1alpha1.ReasonCapacityExact, "late": "CapacityUnknown"} {
		startAs(t, instance, instance)
		namespace := space(t)
		servers.ask(namespace, 0.5*serves)
		variants[instance] = variant(namespace, "llama-h100", "server", instance)
		create(t, deployment(namespace, "server", 1), variants[instance])
		shows(t, patience, variants[instance], v1alpha1.ConditionCapacityKnown, reason)
	}
	swap := func(instance, from, to string) {
		t.Helper()
		role := read(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: instance + "-observe"}})
		for i := range role.Rules {
			if rule := &role.Rules[i]; slices.Contains(rule.Resources, "nodes") {
				rule.Verbs = append(slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == from }), to)
			}
		}
		require.NoError(t, api.Update(t.Context(), role))
	}
	swap("fading", "list", "get")
	swap("late", "get", "list")
	fading := shows(t, 2*patience, variants["fading"], v1alpha1.ConditionCapacityKnown, "CapacityUnknown")
	assert.Contains(t, fading.Message, `the permission to list nodes in API group "" is missing: grant it as manifests/rbac/observe.yaml does`)
	assert.Nil(t, variants["fading"].Status.Placement.Slots, "what was counted last is not known to hold")
	conditiontest.Eventually(t, 2*patience, "what is to be done", func() (string, bool) {
		known := shows(t, patience, variants["late"], v1alpha1.ConditionCapacityKnown, "CapacityUnknown")
		return known.Message, contains(known.Message, "is granted now: restart the manager")
	})
}

func TestThePlacementIsThatOfTheGenerationThatItNames(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	v := variant(namespace, "llama-h100", "server", "")
	create(t, deployment(namespace, "server", 1), v)
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	p := v.Status.Placement
	require.NotNil(t, p)
	assert.Equal(t, v.Generation, p.ObservedGeneration)
	assert.Equal(t, []any{"H100", int32(80), "HBM3", int32(1)}, []any{p.Shape.Accelerator, p.Shape.DeviceMemoryGiB, p.Shape.Form, *p.Shape.Devices})
	assert.Equal(t, int32(0), *p.Unplaced)

	setSpec(t, v, `{"accelerator":"A100","acceleratorCount":4}`)
	known := shows(t, atOnce, v, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonAcceleratorNotSelected)
	p = v.Status.Placement
	assert.Equal(t, v.Generation, p.ObservedGeneration)
	assert.Equal(t, "A100", p.Shape.Accelerator)
	assert.Equal(t, int32(0), *p.Slots, "the cluster has none")
	assert.True(t, contains(known.Message,
		"the pod template names H100-80GB-HBM3 nodes and the variant is for A100",
		"spec.acceleratorCount is 4 and the pod template asks for 1, which counts",
		"1xA100: 0 more fit"), known.Message)
	conditiontest.Eventually(t, patience, "a warning event", func() (string, bool) {
		reasons := told(t, v)
		return fmt.Sprint(reasons), count(reasons, v1alpha1.ReasonAcceleratorNotSelected) == 1
	})
}

func TestHalfOfTheNodesIsHalfOfTheSlots(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	v := variant(namespace, "llama-h100", "server", "")
	create(t, deployment(namespace, "server", 1), v)
	// The pods of earlier tests may take a moment to go, and this manager counts in
	// full rounds only every ten minutes.
	gauge := func(want float64) {
		t.Helper()
		conditiontest.Eventually(t, patience, fmt.Sprint(want, " slots"), func() (string, bool) {
			for series, value := range seriesOf(t, "", namespace) {
				if strings.HasPrefix(series, "wva_variant_free_slots") {
					return fmt.Sprint(value), value == want
				}
			}
			return "no series", false
		})
	}
	gauge(31)
	for i := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("h100-", i)}}
		cordon(t, node, true)
		t.Cleanup(func() { cordon(t, node, false) })
	}
	// A round that a node calls for keeps five seconds apart from the last one, and comes
	// before the next fast one, ten seconds after it.
	conditiontest.Eventually(t, 9*time.Second, "half of the slots", func() (string, bool) {
		slots := *read(t, v).Status.Placement.Slots
		return fmt.Sprint(slots), slots == 15 || slots == 16
	})
	gauge(float64(*v.Status.Placement.Slots))
}

func cordon(t *testing.T, node *corev1.Node, out bool) {
	t.Helper()
	// Also at the end of the test, whose own context has ended by then.
	require.NoError(t, api.Get(context.Background(), client.ObjectKeyFromObject(node), node))
	node.Spec.Unschedulable = out
	require.NoError(t, api.Update(context.Background(), node))
}

func TestNamesOfOnesOwnAreFollowed(t *testing.T) {
	addNode(t, 8)
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	v := variant(namespace, "llama-l40s", "server", brisk)
	v.Spec.Accelerator = "L40S"
	create(t, onOwnNode(deployment(namespace, "server", 1)), v)
	const series = `wva_unlisted_accelerator_nodes{controller_instance="brisk",product="ACME-CARD-7"}`
	conditiontest.Eventually(t, patience, "the product that no rule knows", func() (string, bool) {
		found := scrapeManager(t, brisk)
		return fmt.Sprint(found[series]), found[series] == 1
	})
	slots := func(want int32) {
		t.Helper()
		conditiontest.Eventually(t, patience, fmt.Sprint(want, " slots"), func() (string, bool) {
			p := read(t, v).Status.Placement
			return describe(v), p != nil && p.Slots != nil && *p.Slots == want
		})
	}
	slots(0)

	names := configMap(t, "workload-variant-autoscaler-accelerator-names", map[string]string{ownProduct: "L40S"})
	slots(7)
	conditiontest.Eventually(t, patience, "the end of the series", func() (string, bool) {
		_, there := scrapeManager(t, brisk)[series]
		return "", !there
	})

	names.Data[ownProduct] = "not a name"
	require.NoError(t, api.Update(t.Context(), names))
	conditiontest.Eventually(t, patience, "an event that refuses it", func() (string, bool) {
		reasons := told(t, names)
		return fmt.Sprint(reasons), count(reasons, "InvalidConfiguration") > 0
	})
	roundsLater(t, brisk, 3)
	slots(7)
}

// A quota of the namespace limits what is asked for as the nodes do, and is the reason.
func TestAQuotaIsALimit(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpus"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("2")}},
	}
	create(t, quota)
	conditiontest.Eventually(t, patience, "the quota's controller", func() (string, bool) {
		q := read(t, quota)
		return fmt.Sprint(q.Status.Hard), len(q.Status.Hard) == 1
	})
	servers.ask(namespace, 4.5*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "a", "server", brisk)
	create(t, d, v)
	hasReplicas(t, patience, d, v, 2)
	limits := shows(t, patience, v, v1alpha1.ConditionScalingLimited, "NoSlots")
	assert.Contains(t, limits.Message, "quota gpus of namespace "+namespace+": 0 of requests.nvidia.com/gpu left")
	known := shows(t, patience, v, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityExact)
	assert.Contains(t, known.Message, ": 0 more fit (largest hole 8)")
	roundsLater(t, brisk, 5)
	assert.EqualValues(t, 2, *read(t, d).Spec.Replicas, describe(read(t, v)))

	quota = read(t, quota)
	quota.Spec.Hard["requests.nvidia.com/gpu"] = resource.MustParse("3")
	require.NoError(t, api.Update(t.Context(), quota))
	hasReplicas(t, patience, d, v, 3)
}

// What the API server adds to the pods counts: the toleration of the devices' taint, the
// namespace's default request, the overhead of the runtime class, the priority of theirs.
// A node has CPU for three such pods, and four devices, of which pods that only keep
// room hold two.
func TestPodsCountAsTheyAreAdmitted(t *testing.T) {
	shape := localcluster.EightH100
	shape.Product, shape.GPUs, shape.CPU = ownProduct, 4, "10"
	node := shape.Node("own", "a")
	node.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	made(t, node)
	made(t, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox"}, Handler: "sandbox",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	})
	made(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "keeps-room"}, Value: -10})
	made(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "serves"}, Value: 1000})

	servers := serveModels(t)
	namespace, others := space(t), space(t)
	create(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("2")}},
	}}})
	pause := onOwnNode(deployment(others, "pause", 2))
	pause.Spec.Template.Spec.Tolerations, pause.Spec.Template.Spec.PriorityClassName = nil, "keeps-room"
	create(t, pause)
	conditiontest.Eventually(t, patience, "two pods that keep room", func() (string, bool) {
		ready := read(t, pause).Status.ReadyReplicas
		return fmt.Sprint(ready), ready == 2
	})

	d, v := onOwnNode(deployment(namespace, "server", 0)), variant(namespace, "a", "server", brisk)
	spec := &d.Spec.Template.Spec
	spec.Tolerations, spec.RuntimeClassName, spec.PriorityClassName = nil, ptr.To("sandbox"), "serves"
	create(t, d, v)
	servers.ask(namespace, 0.5*serves)
	hasReplicas(t, patience, d, v, 1)
	conditiontest.Eventually(t, patience, "two more", func() (string, bool) {
		p := read(t, v).Status.Placement
		return describe(v), p != nil && p.Slots != nil && *p.Slots == 2
	})
	shows(t, patience, v, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityExact)

	servers.ask(namespace, 9*serves)
	hasReplicas(t, patience, d, v, 3)
	conditiontest.Eventually(t, patience, "three ready replicas", func() (string, bool) {
		return describe(v), read(t, d).Status.ReadyReplicas == 3
	})
	limits := shows(t, patience, v, v1alpha1.ConditionScalingLimited, "NoSlots")
	assert.Contains(t, limits.Message, "CPU")
	roundsLater(t, brisk, 3)
	assert.EqualValues(t, 3, *read(t, d).Spec.Replicas, describe(read(t, v)))
}

// A replica that was asked for holds its room before there is a pod of it.
func TestTwoRoundsDoNotGiveTheSameRoomAway(t *testing.T) {
	addNode(t, 3)
	servers := serveModels(t)
	first, second := space(t), space(t)
	servers.ask(first, 0.1*serves)
	servers.ask(second, 0.1*serves)
	d, v := onOwnNode(deployment(first, "server", 1)), variant(first, "a", "server", brisk)
	late, w := onOwnNode(deployment(second, "server", 1)), variant(second, "b", "server", brisk)
	create(t, d, v, late, w)
	for _, one := range []*appsv1.Deployment{d, late} {
		conditiontest.Eventually(t, patience, "a ready replica", func() (string, bool) {
			ready := read(t, one).Status.ReadyReplicas
			return fmt.Sprint(ready), ready == 1
		})
	}
	// No further pod may be made, which nobody can count with.
	create(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: first, Name: "none"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}},
	}}})
	servers.ask(first, 0.9*serves)
	hasReplicas(t, patience, d, v, 2)

	// Another model, which has as much of what it needs, wants a replica, and the room for it is
	// the one that is spoken for.
	servers.ask(second, 0.9*serves)
	shows(t, patience, w, v1alpha1.ConditionScalingLimited, "NoSlots")
	roundsLater(t, brisk, 5)
	assert.EqualValues(t, 1, *read(t, late).Spec.Replicas, describe(read(t, w)))
	assert.EqualValues(t, 0, *w.Status.Placement.Slots)

	// When it is not wanted any more it is the other's.
	setSpec(t, v, `{"maxReplicas":1}`)
	hasReplicas(t, patience, d, v, 1)
	hasReplicas(t, patience, late, w, 2)
}
