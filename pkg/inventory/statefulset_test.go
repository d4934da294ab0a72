package inventory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The claims that a set makes for its pods may be on some nodes alone, as any other volume.
func TestClaimTemplatesAreVolumesOfThePods(t *testing.T) {
	inv := Read([]*corev1.Node{h100("n")}, nil)
	s := &appsv1.StatefulSet{}
	s.Spec.Template = *template(container("nvidia.com/gpu", "2"))
	s.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tmp"}}
	bound := func() string {
		r, err := inv.Request(TemplateOfStatefulSet(s), nil, Normalize("H100"))
		require.NoError(t, err)
		return r.Bound
	}
	assert.Equal(t, unseen, bound())
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}}
	assert.Equal(t, "volumes, "+unseen, bound())
	assert.Len(t, s.Spec.Template.Spec.Volumes, 1, "the set is not changed")
}

func TestClaimTemplatesOfALeaderWorkerSet(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"leaderWorkerTemplate": map[string]any{
		"workerTemplate": map[string]any{}, "volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "cache"}}},
	}}}}
	set, err := LeaderWorkerSetOf(object)
	require.NoError(t, err)
	require.Len(t, set.Template.Spec.Volumes, 1)
	assert.True(t, BindsToNode(set.Template.Spec.Volumes[0]))
}

// The annotation is on the set, which passes it on to its pods. Larger groups are not counted.
func TestExclusiveTopologyIsSaidByTheLeaderWorkerSet(t *testing.T) {
	inv := Read([]*corev1.Node{h100("n")}, nil)
	bound := func(annotations map[string]string) string {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"leaderWorkerTemplate": map[string]any{
			"workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "server", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "2"}},
			}}}},
		}}}}
		object.SetAnnotations(annotations)
		set, err := LeaderWorkerSetOf(object)
		require.NoError(t, err)
		r, err := inv.Request(set.Template, nil, Normalize("H100"))
		require.NoError(t, err)
		return r.Bound
	}
	assert.Equal(t, unseen, bound(nil))
	assert.Equal(t, "exclusive topology, "+unseen,
		bound(map[string]string{"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}))
}

func TestOrderOfAStatefulSet(t *testing.T) {
	for policy, want := range map[appsv1.PodManagementPolicyType]bool{
		"": true, appsv1.OrderedReadyPodManagement: true, appsv1.ParallelPodManagement: false,
	} {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{PodManagementPolicy: policy, MinReadySeconds: 90}}
		ordered, settling := OrderOfStatefulSet(s)
		assert.Equal(t, want, ordered, policy)
		assert.Equal(t, want, settling == 90*time.Second, policy)
	}
}
