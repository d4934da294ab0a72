package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

func TestSurgeOfALeaderWorkerSet(t *testing.T) {
	cases := []struct {
		name   string
		size   int64
		surge  any
		status map[string]any
		want   int
		// rolling is whether pods are replaced.
		rolling bool
	}{
		{"replicas of one pod", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 2, true},
		{"a share, rounded up", 1, "30%", map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 2, true},
		{"none unless it is said", 1, nil, map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 0, true},
		{"no update is under way", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(4), "observedGeneration": int64(3)}, 0, false},
		{"one that begins is not observed yet", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(4), "observedGeneration": int64(2)}, 2, true},
		{"a version that does not say what it observed", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(4)}, 0, false},
		{"groups cannot be counted anyway", 2, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := map[string]any{"replicas": int64(4), "leaderWorkerTemplate": map[string]any{"size": c.size, "workerTemplate": map[string]any{}}}
			if c.surge != nil {
				spec["rolloutStrategy"] = map[string]any{"rollingUpdateConfiguration": map[string]any{"maxSurge": c.surge}}
			}
			set := empty(kindLeaderWorkerSet)
			set.Object["spec"], set.Object["status"] = spec, c.status
			set.SetNamespace("n")
			set.SetName("s")
			set.SetGeneration(3)
			api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(set).Build()
			var found target
			require.NoError(t, (&targetFinder{reader: api}).leaderWorkerSet(t.Context(), client.ObjectKeyFromObject(set), &found))
			assert.True(t, found.told.Numbered)
			assert.Equal(t, c.want, found.rollout.More(4, 4))
			assert.Equal(t, c.rolling, found.told.Rolling)
		})
	}
}

func TestWhatALeaderWorkerSetSaysOfItself(t *testing.T) {
	set := empty(kindLeaderWorkerSet)
	set.Object["spec"] = map[string]any{"replicas": int64(2), "leaderWorkerTemplate": map[string]any{"size": int64(1), "workerTemplate": map[string]any{}}}
	set.SetNamespace("n")
	set.SetName("s")
	set.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	set.SetOwnerReferences(made("s", "example.com/v1", "Server", "server").OwnerReferences)
	set.SetDeletionTimestamp(ptr.To(metav1.NewTime(noon)))
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(set).Build()
	var found target
	require.NoError(t, (&targetFinder{reader: api}).leaderWorkerSet(t.Context(), client.ObjectKeyFromObject(set), &found))
	assert.True(t, found.ends)
	assert.Equal(t, targetKeyOf("example.com/v1", "Server", "server"), found.above, "who sets the replicas of its maker sets its own")
}

// The pods of groups of one pod show what the next one will be, by the revision on the
// StatefulSet of the leaders.
func TestTheRevisionOfALeaderWorkerSet(t *testing.T) {
	const hash = "leaderworkerset.sigs.k8s.io/template-revision-hash"
	set := empty(kindLeaderWorkerSet)
	set.Object["spec"] = map[string]any{"replicas": int64(2), "leaderWorkerTemplate": map[string]any{"size": int64(1), "workerTemplate": map[string]any{}}}
	set.SetNamespace("n")
	set.SetName("s")
	leaders := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "leaders", Labels: map[string]string{hash: "new"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "s-0", Labels: map[string]string{hash: "new"}, OwnerReferences: []metav1.OwnerReference{{UID: "leaders", Controller: ptr.To(true)}},
	}}
	for want, objects := range map[*corev1.Pod][]client.Object{pod: {set, leaders}, nil: {set}} {
		api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
		var found target
		require.NoError(t, (&targetFinder{reader: api}).leaderWorkerSet(t.Context(), client.ObjectKeyFromObject(set), &found))
		assert.Equal(t, want, found.revision.Newest([]*corev1.Pod{pod}))
	}
}

func TestWhoseChoiceItIs(t *testing.T) {
	cases := []struct {
		name   string
		change func(v *variant, p *decision.VariantPolicy, a *Access)
		want   bool
	}{
		{"ours", func(*variant, *decision.VariantPolicy, *Access) {}, true},
		{"of a kind that heeds no cost", func(v *variant, _ *decision.VariantPolicy, _ *Access) { v.target.costed = false }, false},
		{"the user's, who left it to Kubernetes", func(v *variant, _ *decision.VariantPolicy, _ *Access) {
			v.object.Spec.Victims = v1alpha1.VictimsKubernetes
		}, false},
		{"of whoever acts on the metric", func(_ *variant, p *decision.VariantPolicy, _ *Access) { p.Actuation = decision.ActuationMetric }, false},
		{"of a rolling update", func(v *variant, _ *decision.VariantPolicy, _ *Access) {
			v.target.rollout.UnderWay = true
		}, false},
		{"not ours without the permission", func(_ *variant, _ *decision.VariantPolicy, a *Access) { a.Victims = false }, false},
		{"of another autoscaler", func(v *variant, _ *decision.VariantPolicy, _ *Access) { v.target.state = decision.TargetConflict }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := &variant{object: &v1alpha1.VariantAutoscaling{}, target: target{costed: true}}
			policy, access := decision.DefaultVariantPolicy(), Access{Victims: true}
			c.change(v, &policy, &access)
			assert.Equal(t, c.want, v.leftToUs(policy, access))
		})
	}
}

func TestWhetherAnUpdateIsUnderWay(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) client.Object {
		d := &appsv1.Deployment{
			Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](4)},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 4},
		}
		d.Generation = 2
		change(d)
		return d
	}
	set := func(change func(*appsv1.StatefulSet)) client.Object {
		s := &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To[int32](4), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"},
		}
		s.Generation = 2
		change(s)
		return s
	}
	cases := []struct {
		name   string
		object client.Object
		want   bool
	}{
		{"none", deployment(func(*appsv1.Deployment) {}), false},
		{"old pods are there", deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 5; d.Status.UpdatedReplicas = 1 }), true},
		{"the newest spec is not observed", deployment(func(d *appsv1.Deployment) { d.Generation = 3 }), true},
		{"only a scale-up", deployment(func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 2, 2 }), false},
		{"paused half way", deployment(func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 1 }), false},
		{"given up half way", deployment(func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas = 1
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
		}), false},
		{"a StatefulSet", set(func(*appsv1.StatefulSet) {}), true},
		{"of which all pods are new", set(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 4 }), false},
		{"whose update is over", set(func(s *appsv1.StatefulSet) { s.Status.CurrentRevision, s.Status.UpdatedReplicas = "b", 0 }), false},
		{"whose newest spec is not observed", set(func(s *appsv1.StatefulSet) { s.Generation, s.Status.UpdateRevision = 3, "a" }), true},
		{"up to its partition", set(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](3)}
		}), false},
		{"below its partition", set(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
		}), true},
		{"that waits for somebody to delete its pods", set(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}), false},
		{"a set of groups", groups(2, nil), true},
		{"a set of groups up to its partition", groups(2, int64(3)), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.object.SetNamespace("n")
			c.object.SetName("s")
			api := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(c.object).
				WithIndex(&appsv1.ReplicaSet{}, indexOwner, func(client.Object) []string { return nil }).Build()
			f, key, found := &targetFinder{reader: api}, client.ObjectKeyFromObject(c.object), target{}
			switch c.object.(type) {
			case *appsv1.Deployment:
				require.NoError(t, f.deployment(t.Context(), key, &found))
			case *appsv1.StatefulSet:
				require.NoError(t, f.statefulSet(t.Context(), key, &found))
			default:
				require.NoError(t, f.leaderWorkerSet(t.Context(), key, &found))
			}
			assert.Equal(t, c.want, found.told.Rolling)
		})
	}
}

// A Deployment that is paused scales the ReplicaSets that it has, and makes none.
func TestAPausedDeploymentMakesNoPods(t *testing.T) {
	for made, want := range map[bool]bool{true: false, false: true} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "d"}, Spec: appsv1.DeploymentSpec{Paused: true}}
		objects := []client.Object{d}
		if made {
			objects = append(objects, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "r", UID: "r", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			}})
		}
		builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(objects...)
		require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
		var found target
		require.NoError(t, (&targetFinder{reader: builder.Build()}).deployment(t.Context(), client.ObjectKeyFromObject(d), &found))
		assert.Equal(t, want, found.told.Paused, made)
	}
}

// groups is a LeaderWorkerSet of four groups of so many pods, of which one is updated.
func groups(size int64, partition any) client.Object {
	set := empty(kindLeaderWorkerSet)
	set.Object["spec"] = map[string]any{
		"replicas": int64(4), "leaderWorkerTemplate": map[string]any{"size": size, "workerTemplate": map[string]any{}},
		"rolloutStrategy": map[string]any{"rollingUpdateConfiguration": map[string]any{"partition": partition}},
	}
	set.Object["status"] = map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}
	return set
}

// A StatefulSet makes its pods one after the other unless it says otherwise, and the claims
// that it makes for them are volumes of theirs.
func TestWhatAStatefulSetMakesOfItsPods(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](4), PodManagementPolicy: appsv1.OrderedReadyPodManagement, MinReadySeconds: 30,
		Ordinals:             &appsv1.StatefulSetOrdinals{Start: 5},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}},
	}}
	for policy, want := range map[appsv1.PodManagementPolicyType]bool{appsv1.OrderedReadyPodManagement: true, appsv1.ParallelPodManagement: false} {
		s.Spec.PodManagementPolicy = policy
		api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(s.DeepCopy()).Build()
		v := &variant{object: &v1alpha1.VariantAutoscaling{}}
		require.NoError(t, (&targetFinder{reader: api}).statefulSet(t.Context(), client.ObjectKeyFromObject(s), &v.target))
		require.Len(t, v.target.template.Spec.Volumes, 1)
		assert.True(t, inventory.BindsToNode(v.target.template.Spec.Volumes[0]))
		o := &observer{names: &inventory.Names{}, startups: &round.Startups{}}
		fact := o.factsOf(v, &decision.Policy{}, stock{names: o.names, inventory: o.names.Read(inventory.Objects{})}, readings{})
		assert.Equal(t, want, fact.Ordered, policy)
		assert.True(t, fact.Numbered, policy)
		assert.Equal(t, 5, fact.First, policy)
		assert.Equal(t, want, fact.Settling == 30*time.Second, policy)
	}
}
