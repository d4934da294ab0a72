package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/demand"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// A ramp is carried on to the time at which a replica that is asked for now would serve;
// a fall is not.
func TestARisingRateIsCarriedOnToTheStartOfNewReplicas(t *testing.T) {
	w, memory := newWorld(2), Memory{}
	var plan Plan
	for range 10 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.arrival += 4
	}
	demand := plan.Models[0].Demand
	require.NotNil(t, demand)
	// 0.4 requests/s more per second, for most of the 15 s of start-up and the 10 s to the next round: a ramp may end.
	assert.Greater(t, float64(demand.Forecast), float64(demand.Arrival)+0.4*12)
	assert.Less(t, float64(demand.Forecast), 2.5*float64(demand.Arrival))
	w.arrival = 3
	for range 3 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
	}
	assert.GreaterOrEqual(t, plan.Models[0].Demand.Forecast, plan.Models[0].Demand.Arrival, "a fall is not carried on")
}

func TestRequestsThatBecomeLongerAreARiseToo(t *testing.T) {
	w, memory := newWorld(10), Memory{}
	var plan Plan
	for range 4 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.tokens.Input, w.tokens.Output = w.tokens.Input*1.3, w.tokens.Output*1.3
	}
	demand := plan.Models[0].Demand
	assert.Greater(t, float64(demand.Forecast), 1.3*float64(demand.Arrival))
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
	before := memory.Variants[Key{Namespace: "ns", Name: "a-h100"}].Curve.Weight
	s.Time = s.Time.Add(2 * time.Second)
	_, memory = Decide(s, demoPolicy(), memory, RoundEvent)
	assert.Len(t, memory.Models[ModelKey{Namespace: "ns", ID: "m"}].Seen, 1)
	assert.InDelta(t, before, memory.Variants[Key{Namespace: "ns", Name: "a-h100"}].Curve.Weight, 1e-9)
}

// Whoever takes a great risk still has enough for what arrives now.
func TestExpectedIsNeverBelowThePresent(t *testing.T) {
	var f forecast.Belief
	for i, rate := range []float64{10, 11, 9, 10, 10} {
		f = f.Observe(epoch.Add(time.Duration(i)*15*time.Second), forecast.Count{Rate: capacity.Rate(rate), Span: 15 * time.Second, Shape: conv}, nil)
	}
	mean, _ := f.Moments()
	d := demand.Demand{Known: true, Now: capacity.Rate(mean), Forecast: &f, Risk: 0.2, Tokens: conv}
	assert.Less(t, f.Quantile(d.Risk, time.Minute, nil), mean)
	assert.Equal(t, d.Expected(d.Risk, time.Minute), d.Now)
}

// The forecast counts requests of its own shape; of longer ones fewer come to the same work.
func TestTheForecastIsToldInRequestsOfThePresentShape(t *testing.T) {
	d := demand.Demand{Known: true, Forecast: twofold(12, 12), Tokens: capacity.TokenShape{Input: 1000, Output: 100}}
	d.Forecast.Shape = d.Tokens
	same := d.Expected(0.5, time.Minute)
	assert.InDelta(t, 12, float64(same), 0.1)
	d.Tokens = capacity.TokenShape{Input: 2000, Output: 200}
	assert.InDelta(t, float64(same)/2, float64(d.Expected(0.5, time.Minute)), 1e-9)
}

// A round may see the samples of the round before. A count that was a lower bound then is
// still one: by now as few replicas served "before" as do now.
func TestACountIsLookedAtOnce(t *testing.T) {
	for ago, mean := range map[time.Duration]float64{0: 9, time.Second: 6} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
		sample := func(value float64) Sample { return Sample{Value: value, Time: epoch, Present: true} }
		v.In.Replicas = []Replica{{Recent: sample(3)}, {Recent: sample(3)}}
		for i := range 40 {
			m.Old.Forecast = m.Old.Forecast.Observe(epoch.Add(time.Duration(i-41)*15*time.Second), forecast.Count{Rate: 9, Span: 15 * time.Second}, nil)
		}
		m.Old.Seen = []Observation{{Sampled: epoch.Add(-ago), Ready: 2}}
		belief, _ := within(r, m).Forecast(&demand.Counts{At: epoch, Scrapes: true, Spoke: 2, Recent: forecast.Count{Rate: 6, Span: 15 * time.Second}}, capacity.TokenShape{})
		found, _ := belief.Moments()
		assert.InDelta(t, mean, found, 0.5, "seen %s ago", ago)
	}
}

// Clients send again what replicas had in flight that went: as many requests beyond what is expected
// are no rise, once, within a metrics window.
func TestWhatReplicasHadThatWentComesAgain(t *testing.T) {
	at := func(ago time.Duration, ready int, inFlight, again float64) Observation {
		return Observation{Time: epoch.Add(-ago), Ready: ready, InFlight: inFlight, Again: again}
	}
	window := DefaultPolicy().Window
	for name, c := range map[string]struct {
		seen []Observation
		rate capacity.Rate
		want float64
	}{
		"none went":                     {[]Observation{at(20*time.Second, 2, 100, 0)}, 20, 0},
		"half of them went":             {[]Observation{at(20*time.Second, 4, 100, 0)}, 20, 50},
		"less came than they had":       {[]Observation{at(20*time.Second, 4, 100, 0)}, 11, 20},
		"less came than is expected":    {[]Observation{at(20*time.Second, 4, 100, 0)}, 5, 0},
		"they went a round before":      {[]Observation{at(30*time.Second, 4, 100, 0), at(20*time.Second, 2, 90, 0)}, 20, 50},
		"some of it came before":        {[]Observation{at(30*time.Second, 4, 100, 0), at(20*time.Second, 2, 90, 30)}, 20, 20},
		"two times some went":           {[]Observation{at(30*time.Second, 4, 100, 0), at(20*time.Second, 3, 90, 10)}, 20, 25 - 10 + 30},
		"they went a window before":     {[]Observation{at(window+2*time.Second, 4, 100, 0), at(window+time.Second, 2, 100, 0), at(time.Second, 2, 100, 0)}, 20, 0},
		"some came and others went":     {[]Observation{at(30*time.Second, 1, 100, 0), at(20*time.Second, 3, 90, 0)}, 20, 30},
		"nothing was ever seen of them": {nil, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
			for i := range 400 {
				m.Old.Forecast = m.Old.Forecast.Observe(epoch.Add(time.Duration(i-401)*20*time.Second), forecast.Count{Rate: 10, Span: 20 * time.Second}, nil)
			}
			m.Old.Seen = c.seen
			seen := forecast.Count{Rate: c.rate, Span: 20 * time.Second}
			got := within(r, m).Again(&seen)
			assert.InDelta(t, c.want, got, 1)
			assert.InDelta(t, float64(c.rate)-got/20, float64(seen.Rate), 1e-9)
		})
	}
}

// Where requests are in service for longer than a metrics window, and few, one count between
// two scrapes says nothing of the load.
func TestLongRequestsAreCountedByTheWindow(t *testing.T) {
	for name, c := range map[string]struct{ running, served, window, last, want float64 }{
		"short ones":              {5, 0.1, 0.2, 0.6, 0.6},
		"as long as the window":   {6, 0.1, 0.2, 0.6, 0.6},
		"longer":                  {7, 0.1, 0.2, 0.6, 0.2},
		"longer, and nearly many": {70, 1, 0.59, 0.9, 0.59},
		"longer, and many":        {70, 1, 0.61, 0.9, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1})
			sample := func(value float64) Sample { return Sample{Value: value, Time: epoch, Present: true} }
			v.In.Replicas = []Replica{{Running: sample(c.running), Served: sample(c.served)}}
			counted := demand.Counts{
				At: epoch, Window: true, Steady: forecast.Count{Rate: capacity.Rate(c.window), Span: time.Minute},
				Scrapes: true, Recent: forecast.Count{Rate: capacity.Rate(c.last), Span: 15 * time.Second},
			}
			m.In.Arrival, m.In.Recent = sample(c.window), sample(c.last)
			belief, _ := within(r, m).Forecast(&counted, capacity.TokenShape{})
			mean, _ := belief.Moments()
			assert.InDelta(t, c.want, mean, 0.01)
		})
	}
	r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
	assert.Zero(t, within(r, m).InService(), "nobody serves")
}

// How far ahead the forecast looks is a matter of the variants that would grow: one that is never
// bought, because it is dear, full, or at its maximum, does not lengthen it by its start-up.
func TestTheLeadIsOfThoseThatWouldGrow(t *testing.T) {
	for name, c := range map[string]struct {
		cost    capacity.Cost
		change  func(slow *VariantPolicy, fast *VariantPolicy)
		limited bool
		free    int
		lead    time.Duration
	}{
		"the slow one is dear":                      {cost: 50, lead: 15 * time.Second},
		"the slow one is cheap":                     {cost: 1, lead: 10 * time.Minute},
		"it is cheap and at its maximum":            {cost: 1, change: func(slow, _ *VariantPolicy) { slow.Max = 0 }, lead: 15 * time.Second},
		"it is cheap and may not grow":              {cost: 1, change: func(slow, _ *VariantPolicy) { slow.Up.Select = SelectDisabled }, lead: 15 * time.Second},
		"it is dear and the other at its maximum":   {cost: 50, change: func(_, fast *VariantPolicy) { fast.Max = 2 }, lead: 10 * time.Minute},
		"it is cheap and there is no room":          {cost: 1, limited: true, lead: 15 * time.Second},
		"it is cheap and there is room":             {cost: 1, limited: true, free: 8, lead: 10 * time.Minute},
		"it is dear and has the only room":          {cost: 50, limited: true, free: -1, lead: 10 * time.Minute},
		"nobody may grow, and so all count as they": {cost: 50, change: func(slow, fast *VariantPolicy) { slow.Max, fast.Max = 0, 2 }, lead: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(30)
			w.setReplicas(0, 2)
			w.now = w.now.Add(time.Hour)
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(1, "L40S", 8)...)}
			if c.free <= 0 {
				w.cluster.Nodes[1].Free.Devices = 0
			}
			if c.free < 0 {
				w.cluster.Nodes[0].Free.Devices, w.cluster.Nodes[1].Free.Devices = 0, 8
			}
			s := w.snapshot()
			s.Models[0].Variants[1].Startup, s.Models[0].Variants[1].Cost = 10*time.Minute, c.cost
			policy := demoPolicy()
			policy.Limited = c.limited
			fast, slow := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}], policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}]
			if c.change != nil {
				c.change(&slow, &fast)
			}
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a-h100"}: fast, {Namespace: "ns", Name: "b-l40s"}: slow}
			r := newRound(&s, &policy, &Memory{}, RoundFull)
			answer(r)
			assert.Equal(t, c.lead, r.Models[0].Lead)
		})
	}
}
