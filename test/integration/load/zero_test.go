package load_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

const (
	// retention is how long nothing must be asked of a model before it sleeps.
	retention = 8 * time.Second
)

// A model of which nothing is asked goes to sleep, its neighbour of which the ConfigMap
// says nothing does not. The first request that the gateway queues wakes its cheapest
// variant, alone and soon, and gets its answer; then it sleeps again.
func anIdleModelSleepsAndWakes(t *testing.T, w *world) {
	const instance = "idle"
	s := w.site(t, "sleeper", "neighbour")
	w.configMap(t, "wva-model-scale-to-zero-config", map[string]string{
		"sleeper": fmt.Sprintf("model_id: %s\nnamespace: %s\nenable_scale_to_zero: true\nretention_period: %s\n", s.model("sleeper"), s.namespace, retention),
	})
	w.startManager(t, instance, append(append(hurry, prometheusAt(w.cluster.PrometheusURL())...), "--gateway-metrics-urls="+s.gateway())...)
	cheap := s.target(t, plan{name: "cheap", model: "sleeper", instance: instance, kind: "t4", replicas: 1, cost: 5})
	dear := s.target(t, plan{name: "dear", model: "sleeper", instance: instance, kind: "l4", cost: 10})
	neighbour := s.target(t, plan{name: "neighbour", model: "neighbour", instance: instance, kind: "t4", replicas: 1})
	writesOfDear, writesOfNeighbour := dear.watchWrites(t), neighbour.watchWrites(t)
	cheap.serves(t, 1)
	outcome, err := s.once(t.Context(), "sleeper")
	require.NoError(t, err)
	require.False(t, outcome.Failed)
	answered, recorded := time.Now(), cheap.watchWrites(t)
	cheap.fallsAsleep(t, recorded, answered)

	queued := time.Now()
	answers := make(chan emulation.Outcome, 1)
	go func() {
		outcome, err := s.once(t.Context(), "sleeper")
		if err != nil {
			outcome.Failed = true
		}
		answers <- outcome
	}()
	var woken write
	eventually(t, patience, "a replica for the request", func() (string, bool) {
		ups, _ := split(recorded.seen())
		if len(ups) > 0 {
			woken = ups[0]
		}
		_, text := cheap.asks(t)
		return text, len(ups) > 0
	})
	outcome = <-answers
	answered = time.Now()
	t.Logf("the model was woken %s after its request, which had its first token after %s", woken.at.Sub(queued).Round(time.Millisecond), outcome.TTFT.Round(time.Millisecond))
	assert.False(t, outcome.Failed, "the request that waited is answered")
	assert.EqualValues(t, 1, woken.to)
	cheap.fallsAsleep(t, recorded, answered)
	assert.Empty(t, writesOfDear.seen(), "it is woken alone:\n%s", writesOfDear)
	assert.Empty(t, writesOfNeighbour.seen(), "nothing is said of the neighbour:\n%s", writesOfNeighbour)
}

// fallsAsleep waits until a model sleeps of which nothing was asked since it was
// answered, and no earlier than it may.
func (x *target) fallsAsleep(t *testing.T, recorded *writes, answered time.Time) {
	t.Helper()
	x.comesToAsk(t, 2*patience, "no", exactly(0))
	list := recorded.seen()
	require.NotEmpty(t, list)
	asleep := list[len(list)-1]
	t.Logf("the model slept %s after its last answer, with a retention of %s", asleep.at.Sub(answered).Round(time.Millisecond), retention)
	// What the last scrape and the round before it saw may be as old as they are apart.
	assert.GreaterOrEqual(t, asleep.at.Sub(answered), retention-time.Second)
	eventually(t, patience, "no pods, and an event", func() (string, bool) {
		return fmt.Sprint(len(x.pods(t))), len(x.pods(t)) == 0 && len(x.told(t, "ScaledToZero")) > 0
	})
	x.shows(t, patience, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
}
