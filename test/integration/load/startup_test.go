package load_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

const (
	// impatient is the instance of a manager that waits for first start-ups not long, and
	// starts no cheaper replicas to save alone: a test is shorter than what pays.
	impatient         = "impatient"
	impatientDeadline = 10 * time.Second
	// leftAlone is how long a variant is left alone at least when its replicas did not
	// come up.
	leftAlone = time.Minute
	never     = 10 * time.Hour
)

// replicasThatNeverStart are those of the cheaper variant: they hold their nodes and
// never answer.
func replicasThatNeverStart(t *testing.T, w *world) {
	giveWay(t, w, "a30", "a6000", time.Second, func(*target) {})
}

// replicasThatCrash are withdrawn whatever the scale-down's window says: what never
// served is not missed.
func replicasThatCrash(t *testing.T, w *world) {
	giveWay(t, w, "a40", "v100", time.Hour, func(x *target) {
		app := x.deployment.Name
		conditiontest.Every(t, 500*time.Millisecond, func(ctx context.Context, _ time.Time) {
			var pods corev1.PodList
			if err := x.api.List(ctx, &pods, client.InNamespace(x.namespace), client.MatchingLabels{"app": app}); err != nil {
				return
			}
			for i := range pods.Items {
				crash(ctx, x, &pods.Items[i])
			}
		})
	})
}

// crash lets a pod's container fail again and again.
func crash(ctx context.Context, x *target, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount > 0 {
		return
	}
	s := &pod.Status.ContainerStatuses[0]
	s.RestartCount = 3
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}}
	// Who is too late tries again with the next look.
	_ = x.api.Status().Update(ctx, pod)
}

// giveWay has a cheap variant whose replicas do not come up, and a dear one that serves.
// The cheap one is asked first; when its replicas are overdue the dear one gets the
// demand, and the cheap one gives back what it has and is left alone for a while.
func giveWay(t *testing.T, w *world, firstKind, secondKind string, window time.Duration, spoil func(first *target)) {
	t.Helper()
	s := w.site(t, "llama")
	second := s.target(t, plan{name: "dear", model: "llama", instance: impatient, kind: secondKind, replicas: 1, held: true, window: window, cost: 10})
	load := s.clients(t, "llama")
	second.steady(t, load, 1)
	// Not before the other is steady: a busy machine may be late with that one's first
	// replica too, and then this variant would have been tried and left alone by now.
	first := s.target(t, plan{name: "cheap", model: "llama", instance: impatient, kind: firstKind, startup: never, window: window, cost: 5})
	spoil(first)
	first.shows(t, patience, v1alpha1.ConditionTargetResolved, "TargetFound")
	w.roundsLater(t, impatient, 2)
	recorded := first.watchWrites(t)

	// Well below what two carry, so that a rate seen a little high asks for no third.
	load.ask(1.5 * carries)
	first.comesToAsk(t, patience, "some", atLeast(1))
	var created time.Time
	eventually(t, patience, "a pod of the cheap variant", func() (string, bool) {
		pods := first.pods(t)
		if len(pods) > 0 {
			created = pods[0].CreationTimestamp.Time
		}
		return "none", len(pods) > 0
	})
	second.comesToAsk(t, patience, "two", atLeast(2))
	first.comesToAsk(t, patience, "no", exactly(0))
	// When the dear one grew is not judged: a rate seen a little high may ask for one more, and
	// that goes to the variant whose containers do not fail.
	given := time.Now()
	t.Logf("the replicas were given back %s after the first pod was made", given.Sub(created).Round(time.Second))
	assert.GreaterOrEqual(t, given.Sub(created), impatientDeadline, "not before they are overdue: %s", recorded)
	second.serves(t, int(*second.deployment.Spec.Replicas))
	conditiontest.Throughout(t, leftAlone/3-time.Since(given), "left alone", func() (string, bool) {
		// What it asked for while the load still rose is not judged: a rate seen a little high
		// may ask for one more before the first is overdue.
		return recorded.String(), !recorded.roseAgain()
	})
	require.True(t, recorded.fell(), recorded.String())
}
