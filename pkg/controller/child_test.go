package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// aboveAll is the scale of an object of a kind that is not known here.
type aboveAll struct{}

func (aboveAll) Read(context.Context, string, autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "above"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 2}, Status: autoscalingv1.ScaleStatus{Selector: "app=s"},
	}, nil
}

func (aboveAll) Write(context.Context, string, autoscalingv1.CrossVersionObjectReference, *autoscalingv1.Scale, int32) (*autoscalingv1.Scale, error) {
	return nil, nil
}

// ownedBy is metadata of an object that another controls.
func ownedBy(name string, uid, owner types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "n", Name: name, UID: uid, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}}
}

func foundAbove(t *testing.T, objects ...client.Object) target {
	t.Helper()
	v := &variant{
		key: decision.Key{Namespace: "n", Name: "v"},
		object: &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "v"}, Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "example.com/v1", Kind: "Server", Name: "s"},
		}},
	}
	builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(objects...)
	require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
	f := &targetFinder{reader: builder.Build(), scaler: aboveAll{}, overlay: newOverlay()}
	v.target.state = decision.TargetFound
	require.NoError(t, f.find(t.Context(), []*variant{v}))
	return v.target
}

// The pods of a target whose operator makes a Deployment are those of the Deployment.
func TestTheDeploymentBelowATarget(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "marker"}}
	deployment := &appsv1.Deployment{ObjectMeta: ownedBy("d", "below", "above"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Template: template}}
	set := &appsv1.ReplicaSet{ObjectMeta: ownedBy("r", "set", "below")}
	deployment.Annotations = map[string]string{"deployment.kubernetes.io/revision": "3"}
	set.Annotations = deployment.Annotations
	other := &appsv1.Deployment{ObjectMeta: ownedBy("other", "other", "somebody")}

	t.Run("one", func(t *testing.T) {
		found := foundAbove(t, deployment, set, other)
		require.NotNil(t, found.template)
		assert.Equal(t, "marker", found.template.Spec.NodeName)
		assert.Equal(t, []types.UID{"set"}, found.owners)
		assert.True(t, found.costed)
		pod := &corev1.Pod{ObjectMeta: ownedBy("p", "p", "set")}
		assert.Equal(t, pod, found.revision.Newest([]*corev1.Pod{pod}), "it shows what admission adds")
		assert.Nil(t, found.selector, "the owners say it better")
		assert.Equal(t, decision.TargetFound, found.state)
	})
	t.Run("none", func(t *testing.T) {
		found := foundAbove(t, other)
		assert.Nil(t, found.template)
		assert.Equal(t, "app=s", found.selector.String())
	})
	t.Run("several", func(t *testing.T) {
		second := &appsv1.Deployment{ObjectMeta: ownedBy("e", "second", "above")}
		assert.Equal(t, "app=s", foundAbove(t, deployment, second).selector.String())
	})
	t.Run("another autoscaler on it", func(t *testing.T) {
		found := foundAbove(t, deployment, set, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "h"},
			Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}},
		})
		assert.Equal(t, decision.TargetConflict, found.state)
		assert.Contains(t, found.fact.Detail, "HorizontalPodAutoscaler h also scales")
	})
}
