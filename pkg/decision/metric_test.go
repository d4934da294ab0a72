package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
)

// An autoscaler that follows the metric lags behind it: what it was shown does not fall
// in rounds that may not lower, on data that do not allow it, or within the window.
func TestTheMetricFallsOnlyAsReplicasWould(t *testing.T) {
	policy := demoPolicy()
	metric := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	metric.Actuation = ActuationMetric
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a-h100"}: metric, {Namespace: "ns", Name: "b-l40s"}: metric}
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

	for range 10 {
		w.now = w.now.Add(15 * time.Second)
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	}
	assert.Equal(t, 1, sum(plan), "after it")
}

// Whoever follows the metric removes replicas later than it falls, with a window of its own.
// What it was shown does not rise meanwhile because there are more replicas than that still.
func TestTheMetricStaysDownWhileItsFollowerLags(t *testing.T) {
	policy := demoPolicy()
	metric := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	metric.Actuation = ActuationMetric
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a-h100"}: metric}
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
	step := func(from, until time.Duration, current, shown int) HistoryEntry {
		return HistoryEntry{From: epoch.Add(-from), Until: epoch.Add(-until), Replicas: current, Desired: shown, Decided: true}
	}
	for name, c := range map[string]struct {
		past          []HistoryEntry
		shown, target int
	}{
		"nothing is known":              {nil, 12, 12},
		"all within the period":         {[]HistoryEntry{step(50*time.Second, 0, 12, 11)}, 12, 12},
		"shown since the period began":  {[]HistoryEntry{step(2*period, period+time.Second, 12, 12), step(period, 0, 12, 11)}, 11, 12},
		"shown since":                   {[]HistoryEntry{step(2*period, period, 12, 12), step(period-time.Second, 0, 12, 11)}, 12, 12},
		"shown for long":                {[]HistoryEntry{step(3*period, 0, 12, 11)}, 11, 12},
		"followed just now":             {[]HistoryEntry{step(3*period, time.Second, 12, 9), step(0, 0, 9, 9)}, 9, 12},
		"rounds were missing meanwhile": {[]HistoryEntry{step(9*period, 8*period, 12, 7)}, 7, 12},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 12, Ready: 12})
			v.Old.History = c.past
			v.Policy.Actuation = ActuationMetric
			assert.Equal(t, c.shown, r.ReplicasBefore(within(r, v), period))
			v.Policy.Actuation = ActuationScale
			assert.Equal(t, c.target, r.ReplicasBefore(within(r, v), period))
		})
	}
}

// What is shown counts as the target's own number for a while, as what is written does; but not
// for ever, since whoever follows it may have a bound or a window of its own.
func TestWhatIsShownCountsForAWhile(t *testing.T) {
	round := func(ago time.Duration, current, shown int) HistoryEntry {
		return HistoryEntry{From: epoch.Add(-ago), Until: epoch.Add(-ago), Replicas: current, Desired: shown, Decided: true}
	}
	for name, c := range map[string]struct {
		past        []HistoryEntry
		most, count int
		scale       bool
	}{
		"nothing was shown":                  {most: -1, count: 3},
		"shown just now":                     {past: []HistoryEntry{round(15*time.Second, 3, 5)}, most: -1, count: 5},
		"it writes itself":                   {past: []HistoryEntry{round(15*time.Second, 3, 5)}, most: -1, count: 3, scale: true},
		"no more than maxReplicas":           {past: []HistoryEntry{round(15*time.Second, 3, 5)}, most: 4, count: 4},
		"less is shown":                      {past: []HistoryEntry{round(15*time.Second, 3, 2)}, most: -1, count: 3},
		"for as long as a pod has":           {past: []HistoryEntry{round(fleet.PodPatience, 3, 4), round(time.Minute, 3, 5)}, most: -1, count: 5},
		"for longer":                         {past: []HistoryEntry{round(fleet.PodPatience+time.Second, 3, 4), round(time.Minute, 3, 5)}, most: -1, count: 3},
		"it is followed, a step at a time":   {past: []HistoryEntry{round(2*fleet.PodPatience, 2, 5), round(time.Minute, 3, 5)}, most: -1, count: 5},
		"it was followed, and more is asked": {past: []HistoryEntry{round(2*fleet.PodPatience, 3, 3), round(time.Minute, 3, 5)}, most: -1, count: 5},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 3, Ready: 3})
			v.Old.History, v.Policy.Max, v.Policy.Actuation = c.past, c.most, ActuationMetric
			if c.scale {
				v.Policy.Actuation = ActuationScale
			}
			assert.Equal(t, c.count, within(r, v).AsShown().Current)
			assert.Equal(t, 3, v.In.Current)
		})
	}
}

// What one variant was shown to have, and nobody has made yet, is given to no other one; and
// it is not shown less because its own number holds the room.
func TestWhatIsShownHoldsItsRoom(t *testing.T) {
	policy := demoPolicy()
	policy.Limited = true
	metric := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	metric.Actuation = ActuationMetric
	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = metric
	w := newWorld(118)
	w.variants = w.variants[:1]
	w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", 3)}
	snapshot := func() Snapshot {
		s := w.snapshot()
		// Another model on the same devices begins to lack replicas, and comes first.
		other := s.Models[0]
		other.ID, other.Variants = "a", []Variant{other.Variants[0]}
		other.Variants[0].Name = "other"
		s.Models = []Model{other, s.Models[0]}
		return s
	}
	first := w.snapshot()
	plan, memory := Decide(first, policy, Memory{}, RoundFull)
	shown := *plan.Models[0].Variants[0].Desired
	require.Equal(t, 4, shown, "all three free devices")

	w.now = w.now.Add(10 * time.Second)
	plan, _ = Decide(snapshot(), policy, memory, RoundFast)
	assert.Equal(t, shown, *plan.Models[1].Variants[0].Desired)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "there is no room left for the other one")
	told := plan.Models[1].Variants[0]
	assert.Equal(t, 1, told.Current, "what is told is what there is")
	assert.Contains(t, told.Steps, Step{Stage: StageSupply, Before: shown, After: shown, Reason: ReasonMetricsFound, Detail: contract.SaysOnlyPublished.With(3)})
}

// Whose bound it is stands in the reason, where it is not the object's own.
func TestWhoseBoundItIs(t *testing.T) {
	for of, want := range map[string]string{"": "maxReplicas is 2", "HorizontalPodAutoscaler h": "maxReplicas of HorizontalPodAutoscaler h is 2"} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
		v.Policy.Max, v.Policy.MaxOf, v.Target = 2, of, 3
		reason, obstacle := r.Obstacle(within(r, v), 3)
		assert.Equal(t, ReasonMaxReplicas, reason)
		assert.Equal(t, want, textOf(obstacle))
		r.Bounds(within(r, m))
		assert.Equal(t, 2, v.Target)
		assert.Equal(t, want, textOf(v.Plan.Message))
	}
}
