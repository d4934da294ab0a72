package controller

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// entry is what a field manager owns since so many seconds before noon.
func entry(manager, subresource, fields string, age int) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		Time: ptr.To(metav1.NewTime(noon.Add(-time.Duration(age) * time.Second))),
	}
}

const (
	replicasField = `{"f:spec":{"f:replicas":{}}}`
	templateField = `{"f:metadata":{"f:labels":{"f:replicas":{}}},"f:spec":{"f:template":{"f:spec":{}}}}`
)

func TestWhoWroteTheReplicas(t *testing.T) {
	const ours = v1alpha1.FieldManager
	cases := []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		{"nobody says", nil, ""},
		{"whoever created it", []metav1.ManagedFieldsEntry{entry("helm", "", `{"f:spec":{"f:replicas":{},"f:template":{}}}`, 9)}, "helm"},
		{"kubectl scale", []metav1.ManagedFieldsEntry{entry("helm", "", templateField, 1), entry("kubectl", "scale", replicasField, 9)}, "kubectl"},
		{"this program", []metav1.ManagedFieldsEntry{entry("helm", "", templateField, 1), entry(ours, "scale", replicasField, 9)}, ours},
		{"somebody who applied the same number since", []metav1.ManagedFieldsEntry{entry(ours, "scale", replicasField, 9), entry("argocd", "", replicasField, 2)}, "argocd"},
		{"this program since somebody applied", []metav1.ManagedFieldsEntry{entry(ours, "scale", replicasField, 2), entry("argocd", "", replicasField, 9)}, ours},
		{"an entry of the scale subresource, which has no time", []metav1.ManagedFieldsEntry{
			entry("helm", "", templateField, 1), {Manager: "kubectl", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(replicasField)},
		}, "kubectl"},
		{"only the status", []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "status", `{"f:status":{"f:replicas":{}}}`, 1)}, ""},
		{"what cannot be read", []metav1.ManagedFieldsEntry{entry("odd", "", `{"f:spec":{"f:replicas"`, 1)}, ""},
		{"without fields or time", []metav1.ManagedFieldsEntry{{Manager: "none"}, {Manager: "old", FieldsV1: ownsReplicas}}, "old"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, lastWriter(c.entries))

			// The same from what the cache keeps, however often it looks.
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			for range 2 {
				kept, err := keepWriter(d)
				require.NoError(t, err)
				assert.Same(t, d, kept)
				assert.LessOrEqual(t, len(d.ManagedFields), 1)
				assert.Equal(t, c.want, lastWriter(d.ManagedFields))
			}

			for _, e := range c.entries {
				if e.FieldsV1 != nil && !json.Valid(e.FieldsV1.GetRawBytes()) {
					return // an unstructured object holds no such thing
				}
			}
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetManagedFields(c.entries)
			_, err := keepWriter(u)
			require.NoError(t, err)
			assert.Equal(t, c.want, lastWriter(u.GetManagedFields()))
		})
	}
}

func TestWhatTheCacheKeepsOfTargets(t *testing.T) {
	options := CacheOptions("", "", Access{LeaderWorkerSets: true})
	set := empty(kindLeaderWorkerSet)
	for _, object := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}, set} {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{entry("kubectl", "scale", replicasField, 1), entry("other", "", templateField, 0)})
		found := false
		for kind, by := range options.ByObject {
			if reflect.TypeOf(kind) == reflect.TypeOf(object) {
				_, err := by.Transform(object)
				require.NoError(t, err)
				found = true
			}
		}
		require.True(t, found, "%T", object)
		require.Len(t, object.GetManagedFields(), 1, "%T", object)
		assert.Equal(t, "kubectl", object.GetManagedFields()[0].Manager)
	}
	owned := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		OwnerReferences: []metav1.OwnerReference{{Name: "d", Controller: ptr.To(true)}},
		ManagedFields:   []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", replicasField, 1)},
	}}
	_, err := stripReplicaSet(owned)
	require.NoError(t, err)
	assert.Empty(t, owned.ManagedFields, "nobody scales the ReplicaSet of a Deployment")
}

// everything is a scheme with all kinds of Kubernetes and ours.
func everything(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, kubernetesscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

func TestOurOwnWriteHasNoOtherWriter(t *testing.T) {
	scale := func(version string) *autoscalingv1.Scale {
		return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: "d", ResourceVersion: version}}
	}
	reader := fake.NewClientBuilder().WithScheme(everything(t)).
		WithIndex(&v1alpha1.VariantAutoscaling{}, indexTarget, targetOfVariant).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, indexTarget, targetOfAutoscaler).
		WithIndex(&appsv1.ReplicaSet{}, indexOwner, func(client.Object) []string { return nil }).
		WithReturnManagedFields().Build()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "d"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}}
	require.NoError(t, reader.Create(t.Context(), d, client.FieldOwner("kubectl")))
	cases := []struct{ name, written, want string }{
		{"nothing was written", "", "kubectl"},
		{"the cache has not seen our write", "9", ""},
		{"the cache is as new as our write", "1", "kubectl"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &targetFinder{reader: reader, overlay: newOverlay()}
			if c.written != "" {
				f.overlay.scales["d"] = scale(c.written)
			}
			v := &variant{object: &v1alpha1.VariantAutoscaling{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "v"},
				Spec:       v1alpha1.VariantAutoscalingSpec{ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "d"}},
			}}
			v.key.Namespace, v.key.Name = "n", "v"
			require.NoError(t, f.find(t.Context(), []*variant{v}))
			assert.Equal(t, c.want, v.target.told.Writer)
		})
	}
}
