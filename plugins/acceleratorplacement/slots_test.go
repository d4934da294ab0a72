package acceleratorplacement

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// templated is a replica set of the deployment of that name, whose pods take one
// device.
func templated(name, revision string, change func(*corev1.PodSpec)) *appsv1.ReplicaSet {
	rs := deployed(name)
	rs.Name += revision
	rs.Annotations = map[string]string{revisionAnnotation: revision}
	rs.Spec.Template.Spec = gpuPod("p", 1, nil).Spec
	change(&rs.Spec.Template.Spec)
	return rs
}

func toleratesTeam(spec *corev1.PodSpec) {
	spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
}

func selectsPool(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{"pool": "inference"} }

func unchanged(*corev1.PodSpec) {}

func TestFreeSlotsAreOnNodesThatAdmitThePods(t *testing.T) {
	closed, pooled, open := node("closed", h100, 8, 0), node("pooled", h100, 4, 0), node("open", h100, 2, 0)
	closed.node.Spec.Taints = []corev1.Taint{{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
	pooled.node.Labels["pool"] = "inference"
	inSet := &appsv1.StatefulSet{ObjectMeta: meta("a", nil), Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: gpuPod("p", 1, nil).Spec}}}
	a, b := variant("a", "H100", 1), variant("b", "H100", 1)
	ofSet := variant("a", "H100", 1)
	ofSet.Spec.ScaleTargetRef.APIVersion, ofSet.Spec.ScaleTargetRef.Kind = "apps/v1", "StatefulSet"
	ofServer := variant("a", "H100", 1)
	ofServer.Spec.ScaleTargetRef.APIVersion, ofServer.Spec.ScaleTargetRef.Kind = "example.com/v1alpha2", "Server"
	claiming := func(spec *corev1.PodSpec) { spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }
	amd := func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
	}
	live := func(owner metav1.Object, change func(*corev1.PodSpec)) *corev1.Pod {
		pod := gpuPod("live", 1, nil)
		pod.OwnerReferences = []metav1.OwnerReference{{UID: owner.GetUID(), Controller: ptr.To(true)}}
		change(&pod.Spec)
		return pod
	}
	old, now := templated("a", "1", unchanged), templated("a", "2", unchanged)
	old.UID, now.UID = "old", "now"
	for name, c := range map[string]struct {
		variants []*v1alpha1.VariantAutoscaling
		owners   []runtime.Object
		want     []int
		pods     []*corev1.Pod
	}{
		"admission lets them tolerate it":     {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{old, now}, []int{14}, []*corev1.Pod{live(now, toleratesTeam)}},
		"it did with an older template":       {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{old, now}, []int{6}, []*corev1.Pod{live(old, toleratesTeam)}},
		"taints refuse":                       {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{templated("a", "1", unchanged)}, []int{6}, nil},
		"of a stateful set":                   {[]*v1alpha1.VariantAutoscaling{ofSet}, []runtime.Object{inSet}, []int{6}, nil},
		"taints are tolerated":                {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{templated("a", "1", toleratesTeam)}, []int{14}, nil},
		"node selectors refuse":               {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{templated("a", "1", selectsPool)}, []int{4}, nil},
		"the last revision counts":            {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{templated("a", "9", toleratesTeam), templated("a", "10", selectsPool)}, []int{4}, nil},
		"another's template is of no account": {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{templated("b", "1", selectsPool)}, []int{14}, nil},
		"of a kind above a deployment":        {[]*v1alpha1.VariantAutoscaling{ofServer}, []runtime.Object{serverDeployment("a"), templated("a", "1", selectsPool)}, []int{4}, nil},
		"one of two may go there": {[]*v1alpha1.VariantAutoscaling{a, b},
			[]runtime.Object{templated("a", "1", selectsPool), templated("b", "1", func(s *corev1.PodSpec) { selectsPool(s); toleratesTeam(s) })}, []int{4}, nil},
		"each of two may go somewhere": {[]*v1alpha1.VariantAutoscaling{a, b}, []runtime.Object{templated("a", "1", selectsPool), templated("b", "1", unchanged)}, []int{6}, nil},
		"two of one kind":              {[]*v1alpha1.VariantAutoscaling{a, b}, []runtime.Object{templated("a", "1", unchanged), templated("b", "1", unchanged)}, []int{6}, nil},
		"nothing is known of one":      {[]*v1alpha1.VariantAutoscaling{a, b}, []runtime.Object{templated("b", "1", selectsPool)}, []int{4, 14}, nil},
		"not to be counted":            {[]*v1alpha1.VariantAutoscaling{a}, []runtime.Object{templated("a", "1", claiming)}, nil, nil},
		"one is not to be counted":     {[]*v1alpha1.VariantAutoscaling{a, b}, []runtime.Object{templated("a", "1", amd), templated("b", "1", selectsPool)}, []int{4}, nil},
	} {
		w := newWorld(t, c.owners, c.variants...)
		inv := w.names.Read(inventory.Objects{Nodes: []*corev1.Node{closed.node, pooled.node, open.node}})
		_, shapes := outlookOf(w.names, c.variants, nil)
		require.Len(t, shapes, 1, name)
		assert.Equal(t, c.want, slices.Sorted(maps.Values(w.slots(inv, c.pods, c.variants, shapes))), name)
	}
}

func TestSlotsOfSlicesAndNarrowerTypesKeepTheirNames(t *testing.T) {
	closed := withSlices("closed")
	closed.node.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	open := withSlices("open")
	inv := inventory.Read([]*corev1.Node{closed.node, open.node}, nil)
	for accelerator, c := range map[string]struct {
		resource corev1.ResourceName
		want     int
	}{
		"A100-80GB":        {gpu, 4},
		"A100-SXM4-80GB":   {gpu, 4},
		"A100-MIG-1g.10gb": {"nvidia.com/mig-1g.10gb", 7},
	} {
		rs := templated("v", "1", func(spec *corev1.PodSpec) {
			delete(spec.Containers[0].Resources.Requests, gpu)
			spec.Containers[0].Resources.Requests[c.resource] = resource.MustParse("1")
		})
		v := variant("v", accelerator, 1)
		w := newWorld(t, []runtime.Object{rs}, v)
		_, shapes := outlookOf(w.names, []*v1alpha1.VariantAutoscaling{v}, nil)
		assert.Equal(t, []int{c.want}, slices.Sorted(maps.Values(w.slots(inv, nil, []*v1alpha1.VariantAutoscaling{v}, shapes))), accelerator)
	}
}

// What counts beside devices, CPU and memory counts in the scheduler as it does in the
// autoscaler.
func TestFreeSlotsAreThoseThatTheAutoscalerCounts(t *testing.T) {
	linked := node("linked", h100, 8, 0)
	linked.node.Status.Allocatable["rdma/hca"] = resource.MustParse("2")
	held := node("held", h100, 4, 0)
	pause := gpuPod("pause", 4, nil)
	pause.Spec.NodeName, pause.Spec.Priority = "held", ptr.To[int32](-10)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: "gpus"}}
	quota.Spec.Hard = corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("5")}
	quota.Status.Hard = quota.Spec.Hard
	pooled := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "pooled"}, Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "none"}}}
	low := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -10}
	classed := func(name string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.PriorityClassName = name }
	}
	for name, c := range map[string]struct {
		rules  []runtime.Object
		change func(*corev1.PodSpec)
		want   []int
	}{
		"pods of lower priority yield": {nil, unchanged, []int{8 + 4}},
		"and not to one as low":        {[]runtime.Object{low}, classed("low"), []int{8}},
		"further resources": {nil, func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Requests["rdma/hca"] = resource.MustParse("1")
		}, []int{2}},
		"a quota":              {[]runtime.Object{quota}, unchanged, []int{5}},
		"a runtime class":      {[]runtime.Object{pooled}, func(spec *corev1.PodSpec) { spec.RuntimeClassName = ptr.To("pooled") }, []int{0}},
		"a class that is none": {nil, classed("gone"), nil},
	} {
		v := variant("v", "H100", 1)
		rs := templated("v", "1", c.change)
		w := newWorld(t, []runtime.Object{rs, linked.node, held.node, pause}, v)
		w.ruled(t, c.rules...)
		w.profile = "rules"
		w.begin()
		w.takeStock(t.Context())
		found, _ := cluster.found.LoadAndDelete(w.profile)
		assert.Equal(t, c.want, slices.Sorted(maps.Values(found.(*stock).slots)), name)
	}
}

// What may not be read bounds the count, which is no less than what fits then.
func TestFreeSlotsWithoutTheRules(t *testing.T) {
	forbidden := fake.NewClientset()
	forbidden.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	})
	w := newWorld(t, nil)
	w.rules = newRules(forbidden)
	w.rules.start(t.Context())
	assert.Equal(t, inventory.Objects{Unread: inventory.Unread{RuntimeClasses: true, PriorityClasses: true, Budgets: true, Quotas: true}}, w.rules.objects())
}

func TestTheNewestReplicaSetIsThatOfTheLastRevision(t *testing.T) {
	at := func(name, revision string, second int64) metav1.Object {
		rs := templated(name, revision, unchanged)
		rs.CreationTimestamp = metav1.Unix(second, 0)
		return rs
	}
	rollout := func(revision string, second int64) metav1.Object {
		rs := at("v", "", second)
		rs.SetAnnotations(map[string]string{rolloutRevision: revision})
		return rs
	}
	scaled := func(o metav1.Object, replicas int32) metav1.Object {
		o.(*appsv1.ReplicaSet).Spec.Replicas = &replicas
		return o
	}
	for name, c := range map[string]struct{ a, b metav1.Object }{
		"a rollout that is rolled back":  {rollout("3", 1), rollout("2", 2)},
		"what is scaled before age":      {scaled(at("v", "", 1), 2), scaled(at("v", "", 2), 0)},
		"one by default":                 {at("v", "", 1), scaled(at("v", "", 2), 0)},
		"a number before what is scaled": {scaled(at("v", "2", 1), 0), scaled(at("v", "1", 2), 1)},
		"age where both are scaled":      {scaled(at("v", "", 2), 1), scaled(at("v", "", 1), 5)},
		"numbers, not texts":             {at("v", "10", 1), at("v", "9", 2)},
		"by age":                         {at("v", "x", 2), at("v", "y", 1)},
		"by name":                        {at("w", "1", 1), at("v", "1", 1)},
	} {
		assert.True(t, newer(c.a, c.b), name)
		assert.False(t, newer(c.b, c.a), name)
	}
}
