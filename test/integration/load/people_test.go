package load_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// scaleAs writes the replicas as kubectl scale does, under a name.
func (x *target) scaleAs(t *testing.T, manager string, replicas int32) {
	t.Helper()
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: x.deployment.Name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}
	_, err := x.typed.AppsV1().Deployments(x.namespace).UpdateScale(t.Context(), x.deployment.Name, scale, metav1.UpdateOptions{FieldManager: manager})
	require.NoError(t, err)
}

// Somebody scales by hand. Once is a new starting point from which nothing goes for a
// window; twice is a fight, which nobody wins: nothing is written, whatever the load.
func somebodyElseScales(t *testing.T, w *world) {
	const somebody = "kubectl-scale"
	s := w.site(t, "llama")
	x := s.target(t, plan{name: "server", model: "llama", instance: brisk, kind: "a10", replicas: 2, held: true, window: time.Minute})
	load := s.clients(t, "llama")
	x.steady(t, load, 1.2*carries)
	recorded := x.watchWrites(t)

	x.scaleAs(t, somebody, 4)
	eventually(t, patience, "an event that names who it was", func() (string, bool) {
		notes := x.told(t, "ReplicasChanged")
		return fmt.Sprint(notes), len(notes) == 1 && strings.Contains(notes[0], somebody) && strings.Contains(notes[0], "from 2 to 4")
	})
	x.serves(t, 4)
	w.roundsLater(t, brisk, 3)
	assert.EqualValues(t, 4, *x.deployment.Spec.Replicas, "it is accepted, and nothing goes within the window")
	x.shows(t, patience, v1alpha1.ConditionConflict, v1alpha1.ReasonNoConflict)

	x.scaleAs(t, somebody, 3)
	conflict := x.shows(t, patience, v1alpha1.ConditionConflict, "ReplicasOverwritten")
	assert.Equal(t, metav1.ConditionTrue, conflict.Status)
	assert.Contains(t, conflict.Message, somebody)
	x.shows(t, patience, v1alpha1.ConditionReady, "Conflict")
	load.ask(5 * carries)
	w.roundsLater(t, brisk, 5)
	assert.Len(t, recorded.seen(), 2, "only somebody else wrote:\n%s", recorded)
	assert.EqualValues(t, 3, *x.deployment.Spec.Replicas)
}
