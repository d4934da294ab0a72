package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// A mark is taken back where no object scales the pod any more. Those of another manager's
// scale-down are its own, whatever its object is on.
func TestMarksThatBelongToNobody(t *testing.T) {
	marks := map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: ""}
	pod := &corev1.Pod{ObjectMeta: made("pod", "apps/v1", "ReplicaSet", "set")}
	pod.Annotations = marks
	leaving := pod.DeepCopy()
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.NewTime(noon)), []string{"example.com/waits"}
	set := &appsv1.ReplicaSet{ObjectMeta: made("set", "apps/v1", "Deployment", "d")}
	deployment := &appsv1.Deployment{ObjectMeta: made("d", "example.com/v1", "Server", "server")}
	theirs := func(apiVersion, kind, target string) client.Object {
		v := on("theirs", apiVersion, kind, target, 1)
		v.Labels = nil
		return v
	}
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		beside []client.Object
		stray  bool
	}{
		"nobody scales it":                              {pod, []client.Object{set, deployment}, true},
		"nobody scales it, and it goes already":         {leaving, []client.Object{set, deployment}, false},
		"another manager scales its ReplicaSet":         {pod, []client.Object{set, theirs("apps/v1", "ReplicaSet", "set")}, false},
		"another manager scales its Deployment":         {pod, []client.Object{set, deployment, theirs("apps/v1", "Deployment", "d")}, false},
		"another manager scales what made that":         {pod, []client.Object{set, deployment, theirs("example.com/v1", "Server", "server")}, false},
		"another manager scales something else":         {pod, []client.Object{set, deployment, theirs("apps/v1", "Deployment", "e")}, true},
		"another manager scales a Deployment elsewhere": {pod, []client.Object{set, deployment, elsewhere(theirs("apps/v1", "Deployment", "d"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(c.beside...)
			require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
			strays, err := (&observer{reader: builder.Build()}).strays(t.Context(), &observation{}, []*corev1.Pod{c.pod})
			require.NoError(t, err)
			assert.Equal(t, c.stray, len(strays) == 1)
		})
	}
}

func elsewhere(o client.Object) client.Object {
	o.SetNamespace("other")
	return o
}
