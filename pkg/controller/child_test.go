package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// The pods of a kind that is not known here are those of the one workload that it owns.
func TestTheChildOfATarget(t *testing.T) {
	meta := func(name, owner string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Server", Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}}
		}
		return m
	}
	template := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	}
	deployment := func(name, owner string) client.Object {
		return &appsv1.Deployment{ObjectMeta: meta(name, owner), Spec: appsv1.DeploymentSpec{Template: template("of a deployment")}}
	}
	set := func(name, owner string) client.Object {
		return &appsv1.StatefulSet{ObjectMeta: meta(name, owner), Spec: appsv1.StatefulSetSpec{Template: template("of a set")}}
	}
	ofDeployment := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d-1", UID: "d-1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d", Controller: ptr.To(true)}}}}
	byOwner := func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	for name, c := range map[string]struct {
		objects []client.Object
		child   string
		image   string
		owners  []types.UID
		ordered bool
	}{
		"a deployment":             {[]client.Object{deployment("d", "server"), ofDeployment}, targetKeyOf("apps/v1", "Deployment", "d"), "of a deployment", []types.UID{"d-1"}, false},
		"a stateful set":           {[]client.Object{set("s", "server")}, targetKeyOf("apps/v1", "StatefulSet", "s"), "of a set", []types.UID{"s"}, true},
		"none":                     {nil, "", "", nil, false},
		"one of somebody else":     {[]client.Object{deployment("d", "other"), set("s", "")}, "", "", nil, false},
		"two":                      {[]client.Object{deployment("d", "server"), set("s", "server")}, "", "", nil, false},
		"one, and another's other": {[]client.Object{deployment("d", "other"), set("s", "server")}, targetKeyOf("apps/v1", "StatefulSet", "s"), "of a set", []types.UID{"s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(c.objects...)
			for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}} {
				builder = builder.WithIndex(kind, indexOwner, byOwner)
			}
			v := &variant{target: target{scale: &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: "server"}}, selector: labels.Everything(), selectorProblem: "no selector"}}
			v.key.Namespace = "n"
			require.NoError(t, (&targetFinder{reader: builder.Build()}).findChild(t.Context(), v))
			assert.Equal(t, c.child, v.target.child)
			if c.child == "" {
				assert.NotNil(t, v.target.selector, "the selector counts")
				assert.Nil(t, v.target.template)
				return
			}
			assert.Equal(t, c.image, v.target.template.Spec.Containers[0].Image)
			assert.Equal(t, c.owners, v.target.owners)
			assert.Equal(t, c.ordered, v.target.told.Ordered)
			assert.Equal(t, c.ordered, v.target.told.Numbered)
			assert.Nil(t, v.target.selector)
			assert.Empty(t, v.target.selectorProblem)
		})
	}
}

// serverScaler reads the scale of any target as that of the server.
type serverScaler struct{ Scaler }

func (serverScaler) Read(context.Context, string, autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "server", UID: "server"}}, nil
}

// Two objects, of which one is on an operator's object and the other on the Deployment that
// it made, scale the same replicas. Each sees the other, and the older one has the pods.
func TestATargetBelowTheTargetOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		older, younger *v1alpha1.VariantAutoscaling
	}{
		"the one above is older": {on("above", "example.com/v1", "Server", "server", 2), on("below", "apps/v1", "Deployment", "d", 1)},
		"the one below is older": {on("below", "apps/v1", "Deployment", "d", 2), on("above", "example.com/v1", "Server", "server", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: made("pod", "apps/v1", "ReplicaSet", "set")}
			builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(c.older, c.younger,
				&appsv1.Deployment{ObjectMeta: made("d", "example.com/v1", "Server", "server")},
				&appsv1.ReplicaSet{ObjectMeta: made("set", "apps/v1", "Deployment", "d")},
			)
			require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
			var variants []*variant
			for _, object := range []*v1alpha1.VariantAutoscaling{c.older, c.younger} {
				variants = append(variants, &variant{object: object, key: decision.Key{Namespace: "n", Name: object.Name}})
			}
			finder := &targetFinder{reader: builder.Build(), scaler: serverScaler{}, overlay: newOverlay()}
			require.NoError(t, finder.find(t.Context(), variants))
			givePods([]*corev1.Pod{pod}, variants)
			for i, v := range variants {
				assert.Equal(t, []decision.TargetState{decision.TargetConflict, decision.TargetShared}[i], v.target.state, v.key.Name)
				assert.Contains(t, sentence.Of(v.target.fact.Detail), "VariantAutoscaling "+variants[1-i].key.Name+" also scales")
				assert.Len(t, v.pods, 1-i, v.key.Name)
			}
		})
	}
}

// An object that is being deleted is not handled any more, however long a finalizer holds it.
func TestAnObjectThatIsBeingDeletedHoldsNoTarget(t *testing.T) {
	old, next := on("old", "apps/v1", "Deployment", "d", 2), on("next", "apps/v1", "Deployment", "d", 1)
	old.DeletionTimestamp, old.Finalizers = ptr.To(metav1.NewTime(noon)), []string{"example.com/waits"}
	builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(old, next, &appsv1.Deployment{ObjectMeta: made("d", "", "", "")})
	require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
	v := &variant{object: next, key: decision.Key{Namespace: "n", Name: "next"}}
	require.NoError(t, (&targetFinder{reader: builder.Build(), overlay: newOverlay()}).find(t.Context(), []*variant{v}))
	assert.Equal(t, decision.TargetFound, v.target.state, sentence.Of(v.target.fact.Detail))
}

// A kind that the manager does not watch, because it was installed later or may not be listed, is
// read by its scale alone. A group of pods is no single pod for that.
func TestGroupsOfAKindThatIsNotWatched(t *testing.T) {
	leaders := func(size string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: made("server", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "server")}
		if size != "" {
			s.Spec.Template.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/size": size}
		}
		return s
	}
	for name, c := range map[string]struct {
		objects []client.Object
		pods    int
		problem bool
	}{
		"groups of four":     {[]client.Object{leaders("4")}, 4, false},
		"groups of one":      {[]client.Object{leaders("1")}, 1, false},
		"nobody says of how": {[]client.Object{leaders("")}, 0, true},
		"no leaders yet":     {nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(c.objects...)
			require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
			v := &variant{object: on("v", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "server", 1), key: decision.Key{Namespace: "n", Name: "v"}}
			v.object.Spec.Accelerator, v.object.Spec.AcceleratorCount = "H100", ptr.To[int32](8)
			finder := &targetFinder{reader: builder.Build(), scaler: serverScaler{}, overlay: newOverlay()}
			require.NoError(t, finder.find(t.Context(), []*variant{v}))
			names := &inventory.Names{}
			request, err := v.request(stock{names: names, inventory: names.Read(inventory.Objects{})}, inventory.Name{Short: "H100"})
			if c.problem {
				require.ErrorContains(t, err, "how many pods a group of LeaderWorkerSet server has is not known")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.pods, request.Shape.Pods)
		})
	}
}

// The StatefulSet of a LeaderWorkerSet's leaders is its own to scale: who scales that scales the
// same groups.
func TestTheLeadersOfATarget(t *testing.T) {
	older, younger := on("leaders", "apps/v1", "StatefulSet", "server", 2), on("groups", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "server", 1)
	groups := groups(2, nil)
	groups.SetNamespace("n")
	groups.SetName("server")
	groups.SetUID("server")
	builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(older, younger, groups,
		&appsv1.StatefulSet{ObjectMeta: made("server", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "server")})
	access := Access{LeaderWorkerSets: true}
	require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, access))
	var variants []*variant
	for _, object := range []*v1alpha1.VariantAutoscaling{older, younger} {
		variants = append(variants, &variant{object: object, key: decision.Key{Namespace: "n", Name: object.Name}})
	}
	require.NoError(t, (&targetFinder{reader: builder.Build(), access: access, overlay: newOverlay()}).find(t.Context(), variants))
	for i, v := range variants {
		assert.Equal(t, []decision.TargetState{decision.TargetConflict, decision.TargetShared}[i], v.target.state, v.key.Name)
		assert.Contains(t, sentence.Of(v.target.fact.Detail), "VariantAutoscaling "+variants[1-i].key.Name+" also scales")
	}
}
