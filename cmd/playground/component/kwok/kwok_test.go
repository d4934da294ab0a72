package kwok

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the controllers of nodes and of pods do after a restart, when both find objects. The race detector
// sees what otherwise ends the process once in many restarts.
func TestNodesAndPodsAtOnce(t *testing.T) {
	stages, err := parseStages(stageDocuments)
	require.NoError(t, err)
	require.NoError(t, learnTypes(t.Context(), stages))

	now := metav1.Now()
	cases := []struct {
		name   string
		object runtime.Object
		want   string
	}{
		{"a node that was never ready", &corev1.Node{}, "node-ready"},
		{"a pod that its node has not started", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}, "pod-start"},
		{"a pod that waits for a node", &corev1.Pod{}, ""},
		{"a deleted pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Spec: corev1.PodSpec{NodeName: "a"}}, "pod-end"},
	}
	found := make([]string, len(cases))
	var all errgroup.Group
	for i, c := range cases {
		all.Go(func() error {
			stage, err := match(t.Context(), stages, c.object)
			if stage != nil {
				found[i] = stage.Name()
			}
			return err
		})
	}
	require.NoError(t, all.Wait())
	for i, c := range cases {
		assert.Equal(t, c.want, found[i], c.name)
	}
}
