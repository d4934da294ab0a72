package load_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// The load of a model steps from 1 to 20 requests a second, of which a replica carries
// 2.5. What is asked for is
//
//	ceil((rate + backlog / drain time) / what one carries)
//
// where the backlog is what waits when the new replicas begin to serve. Start-up and
// drain time are a tenth of the real ones (110 s and 2 minutes); the fast rounds every
// ten seconds, which answer, are as they are. Two replicas serve at first, not one:
// requests that wait in a replica stay there, and one alone would work on the backlog
// for minutes.
//
// The backlog is what Prometheus saw at its highest, so that the test knows no more and
// no less than the manager could. That it is met to one replica and not exactly has
// three reasons: waiting requests are scraped every two seconds while 26 more come, the
// manager reckons with the mean start-up of the two replicas that it saw, and the
// machine may delay either. A replica is worth 30 requests of the backlog. More is asked for,
// because what is sized for is a quantile of the forecast: mostly a tenth, and half as much
// again where a scrape cuts the step, so that it looks like a ramp for one round. How much a
// cut makes of it, and that the answer comes within 30 s, is shown where time is virtual
// (TestAStepIsHardlyARamp): here a neighbour's load counts.
func aStep(t *testing.T, w *world) {
	const (
		before, after = 1.0, 20.0
		drain         = 12 * time.Second
		instance      = "step"
	)
	w.startManager(t, instance, append(prometheusAt(w.cluster.PrometheusURL()),
		"--global-opt-interval=15s", "--prometheus-metrics-window=10s", "--wva-backlog-drain-time="+drain.String(), "--wva-limited-mode")...)
	s := w.site(t, "llama")
	x := s.target(t, plan{
		name: "server", model: "llama", instance: instance, kind: "h100", replicas: 2, startup: 8 * time.Second, window: 10 * time.Second,
		adjust: func(_ *appsv1.Deployment, v *v1alpha1.VariantAutoscaling) { v.Spec.MinReplicas = ptr.To[int32](2) },
	})
	load := s.clients(t, "llama")
	x.serves(t, 2)
	x.shows(t, patience, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	load.ask(before)
	// A window of the old load, so that the step is one.
	w.roundsLater(t, instance, 2)
	require.EqualValues(t, 2, *x.deployment.Spec.Replicas)

	recorded := x.watchWrites(t)
	stepped := time.Now()
	load.ask(after)
	waiting := fmt.Sprintf("sum(vllm:num_requests_waiting{namespace=%q})", s.namespace)
	eventually(t, patience, "the answer", func() (string, bool) {
		_, text := x.asks(t)
		return text, len(recorded.seen()) > 0
	})
	eventually(t, 3*patience, "the end of the backlog", func() (string, bool) {
		// As long as only the replicas serve that did before, there is one.
		queue, _ := s.query(t, waiting)
		serving, _ := s.query(t, fmt.Sprintf("count(vllm:num_requests_running{namespace=%q})", s.namespace))
		_, text := x.asks(t)
		return fmt.Sprintf("%.0f wait, %.0f serve\n%s\n%s", queue, serving, recorded, text), serving > 2 && queue < 1
	})
	highest, _ := s.query(t, fmt.Sprintf("max_over_time(%s[3m:1s])", waiting))
	need := int(math.Ceil((after + highest/drain.Seconds()) / carries))
	drained := time.Since(stepped)
	// Of what the load does not need all goes: the replicas that served from the first work for longest on
	// their part of the backlog, and on a busy machine their queues end last.
	least, most := int(math.Ceil(after/carries)), int(math.Ceil(after*lowerHeadroom/carries))
	x.comesToAsk(t, 2*patience, "what the load needs", func(n int32) bool { return recorded.fell() && int(n) <= most+1 })
	lowered := time.Since(stepped)
	// Constant load: two full rounds and all between them change nothing.
	w.roundsLater(t, instance, 2)

	list := recorded.seen()
	ups, downs := split(list)
	t.Logf("need %d (%.0f waited at most); backlog gone after %s, given back after %s; writes since the step at %s:\n%s\n%s",
		need, highest, drained.Round(time.Second), lowered.Round(time.Second), stepped.Format("15:04:05.000"), recorded, x.notes(t))
	require.NotEmpty(t, ups)
	assert.LessOrEqual(t, len(ups), 2, "writes that raise")
	answer := ups[len(ups)-1]
	assert.GreaterOrEqual(t, int(answer.to), need-1, "replicas for the load and its backlog")
	assert.LessOrEqual(t, int(answer.to), 2*need, "and not many more")
	// More than one where a busy machine lets the last of the backlog come late.
	require.NotEmpty(t, downs)
	assert.LessOrEqual(t, len(downs), 3, "writes that lower")
	assert.True(t, downs[0].at.After(answer.at))
	last := downs[len(downs)-1]
	assert.GreaterOrEqual(t, int(last.to), least, "what the load alone needs stays")
	assert.LessOrEqual(t, int(last.to), most+1, "what it does not need goes")
}

// lowerHeadroom is how much more than the demand stays after a scale-down: the distance
// of the published thresholds, up at 0.85 and down at 0.70.
const lowerHeadroom = 0.85 / 0.70

// split tells the writes that raise from those that lower.
func split(list []write) (ups, downs []write) {
	for _, one := range list {
		if one.to > one.from {
			ups = append(ups, one)
		} else {
			downs = append(downs, one)
		}
	}
	return ups, downs
}

// fell reports whether a write lowered the replicas.
func (w *writes) fell() bool {
	_, downs := split(w.seen())
	return len(downs) > 0
}

// roseAgain reports whether a write raised the replicas after another had lowered them.
func (w *writes) roseAgain() bool {
	fell := false
	for _, one := range w.seen() {
		if one.to > one.from && fell {
			return true
		}
		fell = fell || one.to < one.from
	}
	return false
}

// One replica more than twelve is less than the tenth that a HorizontalPodAutoscaler
// tolerates. It is written all the same, once, and none goes again. There may be no more
// than that: a rate that a busy machine makes uneven would ask for another.
func oneMoreAtTwelve(t *testing.T, w *world) {
	s := w.site(t, "llama")
	x := s.target(t, plan{name: "server", model: "llama", instance: brisk, kind: "h200", replicas: 12, held: true})
	load := s.clients(t, "llama")
	// Less than the triggers allow, and with headroom more than eleven carry, so that none
	// goes either.
	x.steady(t, load, 10.6*carries)
	x.patch(t, x.variant, `{"spec":{"maxReplicas":13}}`)
	recorded := x.watchWrites(t)

	load.ask(12.2 * carries)
	x.comesToAsk(t, patience, "more", atLeast(13))
	x.serves(t, int(*x.deployment.Spec.Replicas))
	w.roundsLater(t, brisk, 6)
	list := recorded.seen()
	require.Len(t, list, 1, "%s\n%s", recorded, x.notes(t))
	assert.EqualValues(t, 13, list[0].to)
}
