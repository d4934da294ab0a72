package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestARisingRateIsCarriedOnToTheStartOfNewReplicas(t *testing.T) {
	w, memory := newWorld(2), Memory{}
	var plan Plan
	for range 5 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.arrival += 4
	}
	// No more than that is believed at once.
	assert.InDelta(t, trendGrowth*float64(plan.Models[0].Demand.Arrival), float64(plan.Models[0].Demand.Forecast), 0.01)
	for range 5 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.arrival += 4
	}
	demand := plan.Models[0].Demand
	require.NotNil(t, demand)
	// 0.4 requests/s more per second, 15 s of start-up, 10 s to the next round and
	// half of a 20 s window ahead.
	assert.InDelta(t, float64(demand.Arrival)+0.4*35, float64(demand.Forecast), 0.01)
	w.arrival = 3
	plan, _ = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
	assert.Equal(t, plan.Models[0].Demand.Arrival, plan.Models[0].Demand.Forecast, "a fall is not carried on")
}

func TestRequestsThatBecomeLongerAreARiseToo(t *testing.T) {
	w, memory := newWorld(10), Memory{}
	var plan Plan
	for range 4 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.tokens.Output += 100
	}
	demand := plan.Models[0].Demand
	assert.Greater(t, float64(demand.Forecast), 1.4*float64(demand.Arrival))
}

func TestAFewShortRequestsDoNotLowerTheTokensReckonedWith(t *testing.T) {
	w, memory := newWorld(10), Memory{}
	for range 20 {
		_, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
		w.now = w.now.Add(15 * time.Second)
	}
	w.tokens.Output = 50
	var plan Plan
	plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
	assert.Greater(t, float64(plan.Models[0].Demand.Tokens.Output), 180.0)
	for range 80 {
		w.now = w.now.Add(15 * time.Second)
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
	}
	assert.InDelta(t, 50, float64(plan.Models[0].Demand.Tokens.Output), 5, "in the end they do")
}

// Requests that are a little longer for once are chance; much longer ones count at once.
func TestOnlyMuchLongerRequestsCountAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		input, output capacity.Tokens
		wantInput     float64
		wantOutput    float64
	}{
		"a little longer":     {1155 * 1.09, 211 * 1.09, 1155, 211},
		"much longer prompts": {1155 * 1.5, 211, 1155 * 1.5, 211},
		"much longer answers": {1155, 211 * 1.5, 1155, 211 * 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Replicas: []Replica{{
				Served: Sample{5, epoch, true}, Input: Sample{float64(c.input), epoch, true}, Output: Sample{float64(c.output), epoch, true},
			}}})
			known := TokenMean{Time: epoch.Add(-time.Second), Shape: conv, Weight: 1e9}
			m.old.Tokens = known
			got := r.tokens(m)
			assert.InEpsilon(t, c.wantInput, float64(got.Input), 1e-6)
			assert.InEpsilon(t, c.wantOutput, float64(got.Output), 1e-6)
		})
	}
}

// New replicas that nobody scrapes yet must not multiply the demand.
func TestConstantLoadDoesNotRunAwayWhileNewReplicasAreSilent(t *testing.T) {
	w, memory := newWorld(60), Memory{}
	w.gateway = false
	w.setReplicas(0, 2)
	w.now = w.now.Add(time.Hour)
	loaded := w.snapshot().Models[0].Variants[0].Replicas
	for range 12 {
		s := w.snapshot()
		v := &s.Models[0].Variants[0]
		v.Replicas = nil
		for i := range loaded {
			p := loaded[i]
			for _, sample := range []*Sample{&p.KVUse, &p.Waiting, &p.Running, &p.Served, &p.InFlightGrowth, &p.Input, &p.Output} {
				sample.Time = s.Time
			}
			v.Replicas = append(v.Replicas, p)
		}
		s.Models[0].Variants[1].Replicas = nil
		var plan Plan
		plan, memory = Decide(s, demoPolicy(), memory, RoundFast)
		w.apply(plan)
		w.now = w.now.Add(20 * time.Second)
	}
	// Both that are seen stay saturated, so a trigger stays on: one more a round.
	assert.Less(t, w.variants[0].replicas+w.variants[1].replicas, 20)
}

func TestTheSameSamplesAreOneObservation(t *testing.T) {
	w := newWorld(10)
	s := w.snapshot()
	_, memory := Decide(s, demoPolicy(), Memory{}, RoundFull)
	before := memory.Variants[Key{"ns", "a-h100"}].Curve.Weight
	s.Time = s.Time.Add(2 * time.Second)
	_, memory = Decide(s, demoPolicy(), memory, RoundEvent)
	assert.Len(t, memory.Models[ModelKey{"ns", "m"}].Arrivals, 1)
	assert.InDelta(t, before, memory.Variants[Key{"ns", "a-h100"}].Curve.Weight, 1e-9)
}

func TestTrendIgnoresNoise(t *testing.T) {
	points := func(rates ...float64) []Observation {
		var list []Observation
		for i, r := range rates {
			list = append(list, Observation{Time: epoch.Add(time.Duration(i) * 10 * time.Second), Rate: capacity.Rate(r)})
		}
		return list
	}
	for name, tc := range map[string]struct {
		points []Observation
		want   float64
	}{
		"too few":           {points(1, 9), 0},
		"constant":          {points(5, 5, 5, 5), 0},
		"noise":             {points(10, 10.5, 9.8, 10.6), 0},
		"a ramp":            {points(10, 20, 30, 40), 1},
		"falling":           {points(40, 30, 20, 10), 0},
		"up and down again": {points(5, 20, 35, 50, 12), 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, tc.want, trend(tc.points, time.Minute, time.Second, 1), 1e-9)
		})
	}
}
