package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An autoscaler that follows the metric lags behind it: what it was shown does not fall
// in rounds that may not lower, on data that do not allow it, or within the window.
func TestTheMetricFallsOnlyAsReplicasWould(t *testing.T) {
	policy := demoPolicy()
	metric := policy.Variants[Key{"ns", "a-h100"}]
	metric.Actuation = ActuationMetric
	policy.Variants = map[Key]VariantPolicy{{"ns", "a-h100"}: metric, {"ns", "b-l40s"}: metric}
	w := newWorld(118)
	plan, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	sum := func(p Plan) int { return *p.Models[0].Variants[0].Desired + *p.Models[0].Variants[1].Desired }
	wanted := sum(plan)
	require.Greater(t, wanted, 3)

	w.arrival = 5
	w.now = w.now.Add(10 * time.Second)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFast)
	assert.Equal(t, wanted, sum(plan), "a fast round")

	s := w.snapshot()
	s.Models[0].Variants[0].Replicas[0].Waiting = Sample{}
	s.Time = s.Time.Add(time.Second)
	plan, memory = Decide(s, policy, memory, RoundFull)
	assert.Equal(t, wanted, sum(plan), "no data")

	w.now = w.now.Add(5 * time.Second)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Equal(t, wanted, sum(plan), "within the window")

	for range 6 {
		w.now = w.now.Add(15 * time.Second)
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	}
	assert.Equal(t, 1, sum(plan), "after it")
}

// Whoever follows the metric removes replicas later than it falls, with a window of its own.
// What it was shown does not rise meanwhile because there are more replicas than that still.
func TestTheMetricStaysDownWhileItsFollowerLags(t *testing.T) {
	policy := demoPolicy()
	metric := policy.Variants[Key{"ns", "a-h100"}]
	metric.Actuation = ActuationMetric
	policy.Variants = map[Key]VariantPolicy{{"ns", "a-h100"}: metric}
	w, memory := newWorld(1), Memory{}
	w.setReplicas(0, 5)
	var plan Plan
	for range 8 {
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
		w.now = w.now.Add(15 * time.Second)
	}
	require.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
	for _, kind := range []Round{RoundFast, RoundEvent} {
		plan, memory = Decide(w.snapshot(), policy, memory, kind)
		assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "a %s round", kind)
		w.now = w.now.Add(10 * time.Second)
	}
}

// The policies of behavior bound what is shown, and not what there is: a follower with a
// tolerance of a tenth would else wait for a second step, and that for the first.
func TestPoliciesBoundWhatIsShown(t *testing.T) {
	const period = time.Minute
	step := func(from, until time.Duration, current, shown int) Stretch {
		return Stretch{From: epoch.Add(-from), Until: epoch.Add(-until), Replicas: current, Desired: shown, Decided: true}
	}
	for name, c := range map[string]struct {
		past          []Stretch
		shown, target int
	}{
		"nothing is known":              {nil, 12, 12},
		"all within the period":         {[]Stretch{step(50*time.Second, 0, 12, 11)}, 12, 12},
		"shown since the period began":  {[]Stretch{step(2*period, period+time.Second, 12, 12), step(period, 0, 12, 11)}, 11, 12},
		"shown since":                   {[]Stretch{step(2*period, period, 12, 12), step(period-time.Second, 0, 12, 11)}, 12, 12},
		"shown for long":                {[]Stretch{step(3*period, 0, 12, 11)}, 11, 12},
		"followed just now":             {[]Stretch{step(3*period, time.Second, 12, 9), step(0, 0, 9, 9)}, 9, 12},
		"rounds were missing meanwhile": {[]Stretch{step(9*period, 8*period, 12, 7)}, 7, 12},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 12, Ready: 12})
			v.old.History = c.past
			v.policy.Actuation = ActuationMetric
			assert.Equal(t, c.shown, r.replicasBefore(v, period))
			v.policy.Actuation = ActuationScale
			assert.Equal(t, c.target, r.replicasBefore(v, period))
		})
	}
}
