package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// For three minutes everything takes longer, without another version: the fleet grows, and each
// replica has then so little to do that it cannot show at which times a full one serves. The given
// profile, which is right about what they show, says it.
func TestASlowdownIsOverWhenItIs(t *testing.T) {
	for lax, slower := range map[capacity.Milliseconds]float64{2: 3, 1: 1.5} {
		s := constant(0, variant("a", fast, 10, 7))
		s.Models[0].Variants[0].Told = true
		slo := tight(s)
		slo.ITL *= lax
		s.hybrid(slo)
		each := newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 70).promise.least
		s.Models[0].Load, s.Calm = []Point{{0, 5.5 * each}}, 5*time.Hour
		s.Faults = []Fault{{Kind: FaultSlow, From: 3 * time.Hour, To: 3*time.Hour + 3*time.Minute, Factor: slower}}
		w := run(s, decision.Decide, "")
		v := w.models[0].variants[0]
		assert.Greater(t, v.highest, 20, "it grows while they are slow")
		assert.LessOrEqual(t, v.target, 8, "%s", w.tell())
	}
}

// unshown is one metric that no server shows, for good.
func unshown(metric int) []Fault { return []Fault{{Kind: FaultUnshown, To: forGood, Count: metric}} }

// While no server shows how full it is no replica may go. A cheaper mix is then begun, and never
// comes to be: each round would begin it again, until the cluster is full.
func TestNoSwitchBeginsWhereNoReplicaMayGo(t *testing.T) {
	for metric, name := range []string{"KV use", "waiting", "running"} {
		for _, grows := range []bool{false, true} {
			s := constant(0, variant("dear", fast, 40, 2), variant("cheap", slow, 2, 0))
			s.Models[0].Load = []Point{{0, 0.1 * s.each(0)}}
			s.Faults = unshown(metric)
			if grows {
				s.Hidden, s.Grows = true, time.Minute
			}
			w := run(s, decision.Decide, "")
			assert.LessOrEqual(t, w.models[0].variants[1].highest, 1, "%s", name)
		}
	}
}

// No server shows how many wait. How full they are and what reaches the gateway suffice to add.
func TestOneMetricThatIsNotShownStopsNoGrowth(t *testing.T) {
	for metric, name := range []string{"KV use", "waiting", "running"} {
		s := constant(0, variant("a", fast, 10, 2))
		s.Models[0].Gateway, s.Models[0].Patience = true, time.Minute
		low, high := 1.4*s.each(0), 6*s.each(0)
		s.Models[0].Load, s.Calm = []Point{{0, low}, {10 * time.Minute, low}, {10*time.Minute + step, high}}, time.Hour
		s.Faults = unshown(metric)
		w := run(s, decision.Decide, "")
		assert.GreaterOrEqual(t, w.models[0].variants[0].target, 5, "%s: %s", name, w.tell())
	}
}

// A HorizontalPodAutoscaler sets nothing of what it is shown. The dearer variant carries the load.
func TestAFollowerThatSetsNothingStarvesNobody(t *testing.T) {
	a, b := variant("a", fast, 4, 2), variant("b", fast, 10, 0)
	a.Metric, a.Kubernetes, a.Stuck, a.Policy.Actuation, a.Policy.Min = true, true, true, decision.ActuationMetric, 1
	s := constant(0, a, b)
	low, high := 1.5*s.each(0), 6*s.each(0)
	s.Models[0].Load, s.Models[0].Patience, s.Calm = []Point{{0, low}, {10 * time.Minute, low}, {10*time.Minute + step, high}}, time.Minute, time.Hour
	w := run(s, decision.Decide, "")
	assert.GreaterOrEqual(t, w.models[0].variants[1].target, 3, w.tell())
}

// No server ever shows how full its KV cache is. After an hour it is read without: replicas go as with one,
// and what is left suffices.
func TestAServerWithoutAKVMetricKeepsNoFleet(t *testing.T) {
	for _, unstated := range []bool{false, true} {
		s := constant(0, variant("a", fast, 10, 8))
		s.Models[0].Load, s.Calm, s.Unstated = []Point{{0, 1.4 * s.each(0)}}, 3*time.Hour, unstated
		s.Faults = unshown(0)
		w := run(s, decision.Decide, "")
		v := w.models[0].variants[0]
		assert.LessOrEqual(t, v.target, 4, "%v: %s", unstated, w.tell())
		assert.GreaterOrEqual(t, v.target, 2, "%v: %s", unstated, w.tell())
	}
}
