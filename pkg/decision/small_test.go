package decision

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/demand"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// spelled is all that a memory holds.
func spelled(m Memory) string {
	variants, models := map[Key]VariantMemory{}, map[ModelKey]ModelMemory{}
	for key, v := range m.Variants {
		variants[key] = *v
	}
	for key, v := range m.Models {
		models[key] = *v
	}
	return fmt.Sprintf("%v %+v %+v", m.Time, variants, models)
}

// variantOf and modelOf are working states of which nothing is remembered.
func variantOf(with func(*limit.Variant)) *limit.Variant {
	v := &limit.Variant{}
	if with != nil {
		with(v)
	}
	v.Old, v.Next = &VariantMemory{}, &VariantMemory{}
	return v
}

func modelOf(with func(*limit.Model)) *limit.Model {
	m := &limit.Model{}
	if with != nil {
		with(m)
	}
	m.Old, m.Next = &ModelMemory{}, &ModelMemory{}
	m.Stack()
	return m
}

// within puts a model, or a variant, into a round.
func within[S *limit.Model | *limit.Variant](r *limit.Round, s S) S {
	switch s := any(s).(type) {
	case *limit.Model:
		s.Round = &r.Round
		s.Stack()
		for _, v := range s.Variants {
			v.Round = &r.Round
		}
	case *limit.Variant:
		s.Round = &r.Round
	}
	return s
}

// bare is a round at epoch with one model of one variant, to try single functions on.
func bare(policy Policy, memory Memory, in *Variant) (*limit.Round, *limit.Model, *limit.Variant) {
	r := newRound(&Snapshot{Time: epoch}, &policy, &memory, RoundFull)
	key := ModelKey{Namespace: "ns", ID: "m"}
	v := variantOf(func(it *limit.Variant) {
		it.In, it.Key, it.Managed, it.Target, it.Policy, it.Fleet, it.Rate = in, Key{Namespace: "ns", Name: in.Name}, true, in.Current, DefaultVariantPolicy(), fleet.Fleet{Supply: in.Ready + len(in.Starting)}, rate.Rate{Trigger: 2.5, Max: 3}
	})
	v.Fleet.Count[fleet.StateServing] = in.Ready
	m := modelOf(func(it *limit.Model) {
		it.In, it.Key, it.Saturation, it.Demand, it.Rated, it.Variants = &Model{}, key, DefaultSaturation(), demand.Demand{Seen: true}, true, []*limit.Variant{v}
	})
	m.Lead = allocate.LeadOf(r, m.Variants)
	return r, within(r, m), v
}

// What waits grows by what arrives beyond what is served, until replicas serve.
func TestBacklogAtReady(t *testing.T) {
	born := func(ago time.Duration) Starting { return Starting{Since: epoch.Add(-ago)} }
	for name, c := range map[string]struct {
		arrival  float64
		backlog  float64
		ready    int
		starting []Starting
		want     float64
	}{
		"nothing waits and all is served":             {arrival: 3, ready: 1},
		"fewer wait than fire the trigger":            {arrival: 3, backlog: 2, ready: 1},
		"a queue that drains is met as it is":         {arrival: 1, backlog: 100, ready: 1, want: 100},
		"it grows until one that is started now":      {arrival: 5, backlog: 100, ready: 1, want: 100 + 2*62},
		"it grows until one that started long ago":    {arrival: 5, backlog: 100, ready: 1, starting: []Starting{born(42 * time.Second)}, want: 100 + 2*20},
		"an overdue one is expected at any moment":    {arrival: 5, backlog: 100, ready: 1, starting: []Starting{born(time.Hour)}, want: 100},
		"two that come one after the other":           {arrival: 8, backlog: 100, ready: 1, starting: []Starting{born(52 * time.Second), born(42 * time.Second)}, want: 100 + 5*10 + 2*10},
		"nothing serves, all of it waits":             {arrival: 2, backlog: 7, want: 7 + 2*62},
		"the steady rate alone overruns what serves":  {arrival: 4, ready: 1, want: 62},
		"what few will wait, with less than a second": {arrival: 3, backlog: 2.5, ready: 1, want: 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			in := &Variant{Name: "v", Current: c.ready + len(c.starting), Ready: c.ready, Starting: c.starting, Startup: time.Minute}
			r, m, _ := bare(DefaultPolicy(), Memory{}, in)
			m.Demand.Now, m.Demand.Backlog = capacity.Rate(c.arrival), c.backlog
			assert.InDelta(t, c.want, within(r, m).BacklogAtReady(), 1e-6)
		})
	}
}

// A trigger that what serves will quiet is left alone while the load eases.
func TestDrains(t *testing.T) {
	ago := func(d time.Duration, backlog float64, ready int) Observation {
		return Observation{Time: epoch.Add(-d), Backlog: backlog, Ready: ready}
	}
	for name, c := range map[string]struct {
		seen     []Observation
		required float64
		want     bool
	}{
		"fewer wait than before":                      {[]Observation{ago(20*time.Second, 300, 2)}, 4, true},
		"replicas began to serve":                     {[]Observation{ago(20*time.Second, 90, 1)}, 4, true},
		"what serves just suffices":                   {[]Observation{ago(20*time.Second, 300, 2)}, 5, true},
		"what serves does not suffice":                {[]Observation{ago(20*time.Second, 300, 2)}, 6, false},
		"more wait than before":                       {[]Observation{ago(20*time.Second, 50, 2)}, 4, false},
		"no fewer than a window ago, of as many pods": {[]Observation{ago(70*time.Second, 100, 2), ago(20*time.Second, 300, 2)}, 4, false},
		"nothing is known of before":                  {nil, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
			m.Demand.Backlog = 100
			m.Next.Seen = c.seen
			assert.Equal(t, c.want, within(r, m).Drains(&need.Need{Required: capacity.Rate(c.required), Supply: 5}))
		})
	}
}

// A step that falls into two scrapes looks like a ramp for one of them, whatever its size and
// however the scrapes cut it; a minute later nothing of that is left.
func TestAStepIsHardlyARamp(t *testing.T) {
	for _, before := range []float64{0.5, 1, 6, 50} {
		if !thorough && before != 6 {
			continue
		}
		for _, after := range []float64{1.3, 1.5, 2, 4, 20} {
			for part := range 5 {
				rate := float64(part) / 5
				m := &flow{id: "m", arrivals: step(5*time.Minute+time.Duration(rate*15)*time.Second, before, before*after), variants: []*vessel{vesselOf("web", 40)}}
				f := newFluid(machines(8), DefaultPolicy(), m)
				f.told = func(_ *Snapshot, plan *Plan) {
					if d := plan.Models[0].Demand; d != nil {
						// What the noise of half a minute hides is not told apart.
						noise := 4 * math.Sqrt(before*after/30)
						most := 3 * before * after
						if f.elapsed() > 6*time.Minute+15*time.Second {
							most = 1.25 * before * after
						}
						require.LessOrEqual(t, float64(d.Forecast), most+noise, "%v to %v requests/s at %v", before, before*after, f.elapsed())
					}
				}
				f.run(8 * time.Minute)
			}
		}
	}
}

func TestARampIsCarriedOn(t *testing.T) {
	m := &flow{id: "m", variants: []*vessel{vesselOf("web", 40)}, arrivals: func(t time.Duration) float64 {
		return 5 + 0.3*max(0, (t-3*time.Minute).Seconds())
	}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	most := 0.0
	f.told = func(_ *Snapshot, plan *Plan) {
		if d := plan.Models[0].Demand; d != nil {
			most = max(most, float64(d.Forecast-d.Arrival))
		}
	}
	f.run(7 * time.Minute)
	assert.Greater(t, most, 0.3*50, "most of a minute ahead")
	assert.Less(t, most, 0.3*(110+10+60), "and not beyond the start-up")
}

// One change by somebody else is a new start; two within a window are a fight, which
// ends in a backoff that doubles when the fight begins again, and is forgotten in time.
func TestConflictBackoff(t *testing.T) {
	memory := Memory{}
	in := Variant{Name: "v", Request: request("H100", 1), Writer: "kubectl"}
	now, replicas := epoch, 3
	round := func(after time.Duration, current int) VariantPlan {
		now, in.Current, in.Ready = now.Add(after), current, current
		var plan Plan
		plan, memory = Decide(Snapshot{Time: now, Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{in}}}}, DefaultPolicy(), memory, RoundFull)
		v := plan.Models[0].Variants[0]
		replicas = *v.Desired
		return v
	}
	until := func(after time.Duration) string { return now.Add(after).UTC().Format(time.TimeOnly) + " UTC" }
	fight := func() VariantPlan {
		round(time.Minute, replicas+2)
		return round(time.Minute, replicas+2)
	}
	round(0, 3)
	v := round(time.Minute, 5)
	assert.Contains(t, detailOf(v.Facts, ReasonReplicasChanged), "field manager kubectl changed the replicas from 3 to 5")
	assert.NotEqual(t, ReasonReplicasOverwritten, v.Reason, "once is accepted")

	v = round(time.Minute, 7)
	require.Equal(t, ReasonReplicasOverwritten, v.Reason)
	assert.Contains(t, textOf(v.Message), "kubectl keeps changing the replicas: no writes until "+until(5*time.Minute))
	assert.Equal(t, 7, *v.Desired)
	assert.Equal(t, ReasonReplicasOverwritten, round(4*time.Minute, 7).Reason)
	assert.NotEqual(t, ReasonReplicasOverwritten, round(2*time.Minute, 7).Reason, "the backoff is over")

	assert.Contains(t, textOf(fight().Message), until(10*time.Minute), "the next one is longer")
	for range 12 {
		round(6*time.Minute, replicas)
	}
	assert.Empty(t, memory.Variants[Key{Namespace: "ns", Name: "v"}].Conflict, "forgotten")
	assert.Contains(t, textOf(fight().Message), until(5*time.Minute))
}

// A conflict that is known is no fight: when the other one is gone, it is over.
func TestNoBackoffAfterAConflict(t *testing.T) {
	w, memory := newWorld(60), Memory{}
	var plan Plan
	for i := range 20 {
		s := w.snapshot()
		v := &s.Models[0].Variants[0]
		if i < 19 {
			v.Target, v.Current = TargetConflict, 1+i%3
		}
		plan, memory = Decide(s, demoPolicy(), memory, RoundFull)
		require.NotEqual(t, ReasonReplicasOverwritten, plan.Models[0].Variants[0].Reason)
		w.now = w.now.Add(30 * time.Second)
	}
	for key, v := range memory.Variants {
		assert.Empty(t, v.Conflict, "%v", key)
	}
	assert.Greater(t, *plan.Models[0].Variants[0].Desired+*plan.Models[0].Variants[1].Desired, 1)
}

// One that follows the metric makes changes of its own, and no fight.
func TestFollowersOfTheMetricDoNotFight(t *testing.T) {
	policy := DefaultPolicy()
	own := DefaultVariantPolicy()
	own.Actuation = ActuationMetric
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "v"}: own}
	memory := Memory{}
	for i := range 6 {
		in := Variant{Name: "v", Request: request("H100", 1), Current: 1 + i%3, Ready: 1 + i%3}
		s := Snapshot{Time: epoch.Add(time.Duration(i) * time.Minute), Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{in}}}}
		var plan Plan
		plan, memory = Decide(s, policy, memory, RoundFull)
		require.Empty(t, detailOf(plan.Models[0].Variants[0].Facts, ReasonReplicasChanged))
	}
}

// In hybrid mode a replica is reckoned with what it serves at the triggers or within
// the promise, whichever is less.
func TestHybridSizing(t *testing.T) {
	mean := onH100.Steady(0.7*128, conv)
	for name, c := range map[string]struct {
		slo          capacity.SLO
		least, most  float64
		reason       Reason
		word         string
		hybrid, told bool
	}{
		"capacity-only":         {capacity.SLO{ITL: 12}, float64(mean.Rate), float64(mean.Rate), ReasonMetricsFound, "a replica serves", false, true},
		"a loose promise":       {capacity.SLO{TTFT: 60000, ITL: 500}, float64(mean.Rate), float64(mean.Rate), ReasonMetricsFound, "", true, true},
		"a tight promise":       {capacity.SLO{ITL: 15}, 1, 0.9 * float64(mean.Rate), ReasonMetricsFound, "", true, true},
		"no promise":            {capacity.SLO{}, float64(mean.Rate), float64(mean.Rate), ReasonMetricsFound, "", true, true},
		"nobody can keep it":    {capacity.SLO{ITL: 0.1}, float64(mean.Rate), float64(mean.Rate), ReasonSLO, "no variant meets the SLO even when idle", true, true},
		"nothing is known here": {capacity.SLO{ITL: 15}, 1, 0.9 * float64(mean.Rate), ReasonBorrowed, "b-h100", true, false},
		"nor is it at the edge": {capacity.SLO{ITL: 1.002 * onH100.Steady(1, conv).ITL}, float64(mean.Rate), float64(mean.Rate), ReasonSLO, "no variant meets the SLO even when idle", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(5)
			w.variants[1] = &worldVariant{name: "b-h100", profile: onH100, told: onH100, cost: 7, request: request("H100", 1)}
			if !c.told {
				w.variants[0].told = serving.Profile{}
			}
			policy := demoPolicy()
			policy.Hybrid = c.hybrid
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {Class: "c", Priority: 1, SLO: c.slo}}
			s := w.snapshot()
			if !c.told {
				s.Models[0].Variants[0].Replicas[0].Served, s.Models[0].Variants[0].Replicas[0].Running = Sample{}, Sample{}
				s.Models[0].Variants[1].Replicas = []Replica{{Name: "b-0", KVUse: w.sample(0.1), Waiting: w.sample(0), Running: w.sample(5), Served: w.sample(3), Input: w.sample(1155), Output: w.sample(211)}}
				s.Models[0].Variants[1].Current, s.Models[0].Variants[1].Ready = 1, 1
			}
			v := first(s, policy).Models[0].Variants[0]
			assert.GreaterOrEqual(t, float64(v.ServesEach), c.least*0.99)
			assert.LessOrEqual(t, float64(v.ServesEach), c.most*1.01)
			notes := tellSteps(v.Steps)
			assert.Contains(t, notes, c.reason)
			assert.Contains(t, notes, c.word)
		})
	}
}

// A variant that cannot keep the promise is not added to.
func TestUnfitVariantsAreNotAddedTo(t *testing.T) {
	w := newWorld(60)
	slow := onH100
	slow.Base = 80
	w.variants[1] = &worldVariant{name: "b-slow", profile: slow, told: slow, cost: 0.01, request: request("H100", 1)}
	policy := demoPolicy()
	policy.Hybrid = true
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {Class: "c", Priority: 1, SLO: capacity.SLO{ITL: 40}}}
	plan := first(w.snapshot(), policy)
	assert.Zero(t, *plan.Models[0].Variants[1].Desired, "however cheap it is")
	assert.Contains(t, tellSteps(plan.Models[0].Variants[1].Steps), "misses the SLO even when idle")
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 3)
}

// A size that was found stands until the question changes.
func TestSizesAreKept(t *testing.T) {
	w := newWorld(5)
	policy := demoPolicy()
	policy.Hybrid = true
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {SLO: capacity.SLO{ITL: 20}}}
	_, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	key := Key{Namespace: "ns", Name: "a-h100"}
	v := memory.Variants[key]
	kept := &v.Sizing
	require.Positive(t, kept.Rate)
	kept.Rate *= 1.003 // A mark, to see that it is not found anew.
	memory.Variants[key] = v
	plan, _ := Decide(w.snapshot(), policy, memory, RoundFull)
	assert.InDelta(t, float64(kept.Rate), float64(plan.Models[0].Variants[0].ServesEach), 1e-9)
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {SLO: capacity.SLO{ITL: 25}}}
	plan, _ = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Greater(t, float64(plan.Models[0].Variants[0].ServesEach), 1.01*float64(kept.Rate))
}

// Eight devices for models that each want as many: priority first, equals alike.
func TestSharing(t *testing.T) {
	for name, c := range map[string]struct {
		priorities []int
		minima     []int
		want       []int
		weights    []float64
		anyOrder   bool
	}{
		"two equals":                           {priorities: []int{1, 1}, want: []int{4, 4}},
		"the more important first":             {priorities: []int{2, 1}, want: []int{0, 8}},
		"three equals, to one replica":         {priorities: []int{5, 5, 5}, want: []int{2, 3, 3}, anyOrder: true},
		"equals below a more important one":    {priorities: []int{3, 1, 3}, want: []int{0, 8, 0}},
		"a minimum of the least important one": {priorities: []int{1, 9}, minima: []int{0, 4}, want: []int{5, 3}},
		"one that counts more":                 {priorities: []int{1, 1}, weights: []float64{3, 0}, want: []int{5, 3}},
		"a weight against a priority":          {priorities: []int{2, 1}, weights: []float64{100, 0}, want: []int{0, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := DefaultPolicy()
			policy.Limited, policy.Promises, policy.Variants = true, map[ModelKey]Promise{}, map[Key]VariantPolicy{}
			cluster := machines(1)
			s := Snapshot{Time: epoch.Add(time.Hour), Cluster: cluster}
			for i, priority := range c.priorities {
				w := newWorld(400)
				w.variants, w.now = w.variants[:1], s.Time
				m := w.snapshot().Models[0]
				m.ID = fmt.Sprint("m", i)
				m.Variants[0].Name = fmt.Sprint("v", i)
				s.Models = append(s.Models, m)
				promise := Promise{Priority: priority}
				if c.weights != nil {
					promise.Weight = c.weights[i]
				}
				policy.Promises[ModelKey{Namespace: "ns", ID: m.ID}] = promise
				own := DefaultVariantPolicy()
				if c.minima != nil {
					own.Min = c.minima[i]
				}
				policy.Variants[Key{Namespace: "ns", Name: m.Variants[0].Name}] = own
			}
			plan := first(s, policy)
			var got []int
			for _, m := range plan.Models {
				got = append(got, *m.Variants[0].Desired-1)
			}
			if c.anyOrder {
				slices.Sort(got)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// When a model may rest, and what keeps it awake.
func TestRest(t *testing.T) {
	quiet := func(ago time.Duration) Memory {
		return Memory{Models: map[ModelKey]*ModelMemory{{Namespace: "ns", ID: "m"}: {Active: epoch.Add(time.Hour - ago)}}}
	}
	for name, c := range map[string]struct {
		memory  Memory
		change  func(*Snapshot, *Policy)
		want    int
		allowed bool
	}{
		"quiet for the retention":        {quiet(10 * time.Minute), nil, 0, true},
		"quiet for less":                 {quiet(10*time.Minute - time.Nanosecond), nil, 1, true},
		"it may not":                     {quiet(time.Hour), nil, 1, false},
		"a new leader counts anew":       {Memory{}, nil, 1, true},
		"a request is served":            {quiet(time.Hour), func(s *Snapshot, _ *Policy) { s.Models[0].Variants[0].Replicas[0].Running.Value = 0.1 }, 1, true},
		"one waits in the gateway":       {quiet(time.Hour), func(s *Snapshot, _ *Policy) { s.Models[0].Queue.Value = 1 }, 1, true},
		"one arrived":                    {quiet(time.Hour), func(s *Snapshot, _ *Policy) { s.Models[0].Arrival.Value = 0.01 }, 1, true},
		"nobody saw":                     {quiet(time.Hour), func(s *Snapshot, _ *Policy) { s.Models[0].Variants[0].Replicas[0].Running = Sample{} }, 1, true},
		"a replica starts after a wake":  {quiet(time.Hour), func(s *Snapshot, _ *Policy) { starts(&s.Models[0].Variants[0], s.Time) }, 1, true},
		"another variant has a minimum":  {quiet(time.Hour), func(_ *Snapshot, p *Policy) { atLeastOne(p, "b-l40s") }, 0, true},
		"it has a minimum":               {quiet(time.Hour), func(_ *Snapshot, p *Policy) { atLeastOne(p, "a-h100") }, 1, true},
		"how full it is, nobody knows":   {quiet(time.Hour), func(s *Snapshot, _ *Policy) { hides(&s.Models[0].Variants[0]) }, 1, true},
		"data are old, and none is work": {quiet(time.Hour), func(s *Snapshot, _ *Policy) { s.Time = s.Time.Add(90 * time.Second) }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.now = epoch.Add(time.Hour)
			s := w.snapshot()
			s.Models[0].Variants[0].Replicas[0].Running.Value = 0
			s.Models[0].Variants[0].Replicas[0].Served.Value = 0
			policy := DefaultPolicy()
			policy.Idle.Enabled = c.allowed
			if c.change != nil {
				c.change(&s, &policy)
			}
			plan, _ := Decide(s, policy, c.memory, RoundFull)
			assert.Equal(t, c.want, *plan.Models[0].Variants[0].Desired, lineOf(&plan.Models[0].Variants[0]))
		})
	}
}

func starts(v *Variant, now time.Time) {
	v.Ready, v.Replicas = 0, nil
	v.Starting = []Starting{{Name: "s", Since: now.Add(-10 * time.Second), Placed: true}}
}

// hides leaves nothing that says how full the variant's replicas are.
func hides(v *Variant) {
	v.Profile, v.BatchLimit = serving.Profile{}, 0
	v.Replicas[0].KVUse = Sample{}
}

func atLeastOne(p *Policy, name string) {
	own := DefaultVariantPolicy()
	own.Min = 1
	p.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: name}: own}
}

// Requests at the gateway of a model that sleeps get one replica of its cheapest
// variant that fits, even in a round that is not full.
func TestWake(t *testing.T) {
	for name, c := range map[string]struct {
		l40s int
		want []int
	}{
		"the cheapest":           {8, []int{0, 1}},
		"the cheapest that fits": {0, []int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.setReplicas(0, 0)
			s := w.snapshot()
			s.Models[0].Queue.Value = 400
			s.Cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(1, "L40S", c.l40s)...)}
			policy := DefaultPolicy()
			policy.Idle.Enabled = true
			plan, _ := Decide(s, policy, Memory{}, RoundEvent)
			for i, want := range c.want {
				assert.Equal(t, want, *plan.Models[0].Variants[i].Desired, "alone, however many wait")
			}
		})
	}
}

// The minimum of one has its room before the growth of another.
func TestMinimaHaveTheirRoomFirst(t *testing.T) {
	w := newWorld(400)
	w.variants = w.variants[:1]
	s := w.snapshot()
	idle := w.snapshot().Models[0]
	idle.ID, idle.Variants = "z", []Variant{{Name: "z", Request: request("H100", 1)}}
	idle.Arrival.Value = 0
	s.Models = append(s.Models, idle)
	s.Cluster = machines(1)
	policy := DefaultPolicy()
	policy.Limited = true
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {Priority: 1}, {Namespace: "ns", ID: "z"}: {Priority: 99}}
	own := DefaultVariantPolicy()
	own.Min = 3
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "z"}: own}
	plan := first(s, policy)
	assert.Equal(t, 3, *plan.Models[1].Variants[0].Desired)
	assert.Equal(t, 1+5, *plan.Models[0].Variants[0].Desired, "the rest of eight")
}

// The plan says what binds, and what the next best answer would have cost.
func TestTheNextBestAnswerIsTold(t *testing.T) {
	plan := first(newWorld(74).snapshot(), demoPolicy())
	a, b := plan.Models[0].Variants[0], plan.Models[0].Variants[1]
	assert.Regexp(t, `^\d+ of (a-h100|b-l40s)( and \d+ of b-l40s)? for \d+\.\d\d/h, now \d+\.\d\d/h$`, textOf(b.Alternative))
	assert.Contains(t, textOf(b.Alternative), fmt.Sprintf("now %.2f/h", 6.88*float64(*a.Desired)+3.72*float64(*b.Desired)))
	assert.Equal(t, textOf(a.Alternative), textOf(b.Alternative), "it is one of the model's")
	assert.Regexp(t, `^demand: \d+\.\d\d req/s are required; a replica serves 11\.33$`, textOf(b.BoundBy))
	calm := first(newWorld(5).snapshot(), demoPolicy()).Models[0].Variants[0]
	assert.Equal(t, ReasonSteady, calm.Reason)
	// 5*0.85/0.70 = 6.07
	assert.Regexp(t, `^demand: a scale-down must leave 6\.07 req/s of capacity; a replica serves 18\.81$`, textOf(calm.BoundBy), "no trigger fired, so nothing is required beyond that")
	one := newWorld(74)
	one.variants = one.variants[:1]
	assert.Empty(t, textOf(first(one.snapshot(), demoPolicy()).Models[0].Variants[0].Alternative), "a model of one variant has none")
}

// What costs nothing is reckoned with a little of the least cost, in whatever money that is.
func TestWhatCostsNothingIsTheCheapest(t *testing.T) {
	for _, least := range []capacity.Cost{1e-5, 1, 1e5} {
		_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
		m.Variants = append(m.Variants, variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "w", Cost: least} }), variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "x", Cost: 2 * least} }))
		m.Stack()
		m.Prices()
		assert.Positive(t, v.Price)
		assert.Less(t, v.Price, least/100)
		assert.Equal(t, least, m.Variants[1].Price)
	}
}

// A switch waits for the windows of those that may go, and not of those that stay.
func TestASwitchIsHeldByWhatMayGo(t *testing.T) {
	of := func(name string, window time.Duration, least int) *limit.Variant {
		return variantOf(func(it *limit.Variant) {
			it.In, it.Target, it.Policy = &Variant{Name: name}, 2, VariantPolicy{Min: least, Down: Behavior{Window: window}}
		})
	}
	m := modelOf(func(it *limit.Model) { it.Rated = true })
	cheap := of("cheap", 9*time.Minute, 0)
	all := []*limit.Variant{cheap, of("stays", 8*time.Minute, 2), of("one may go", 5*time.Minute, 1), of("both may", time.Minute, 0)}
	assert.Equal(t, 5*time.Minute, allocate.BesideFor(m, all, cheap))
	assert.Zero(t, allocate.BesideFor(m, all[:2], cheap))
}

// Only pods that the scheduler refused lose the room that is kept for them; those that wait
// for their turn keep it.
func TestOnlyRefusedPodsLoseTheirRoom(t *testing.T) {
	for name, c := range map[string]struct {
		starting []Starting
		free     int
	}{
		"waits for the scheduler":       {[]Starting{{}}, 7},
		"refused":                       {[]Starting{{Unschedulable: true}}, 8},
		"refused before, placed by now": {[]Starting{{Unschedulable: true, Placed: true}, {}}, 7},
		"one of two":                    {[]Starting{{Unschedulable: true}, {}}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.starting {
				c.starting[i].Since = epoch.Add(-time.Hour)
			}
			in := Variant{Name: "v", Request: request("H100", 1), Current: len(c.starting), Starting: c.starting}
			s := Snapshot{Time: epoch, Cluster: machines(1), Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{in}}}}
			policy := DefaultPolicy()
			memory := Memory{Variants: map[Key]*VariantMemory{{Namespace: "ns", Name: "v"}: {Refused: epoch.Add(-time.Hour)}}}
			r := newRound(&s, &policy, &memory, RoundFull)
			r.Reserve()
			assert.Equal(t, c.free, r.Slots(r.Models[0].Variants[0].In.Request))
		})
	}
}

// A pod for which there is no room anyway is not refused: it waits like any other, and what
// is kept for the one beside it is not taken.
func TestAPodWithoutRoomIsNotRefused(t *testing.T) {
	for starting, refused := range map[int]bool{1: true, 2: false} {
		in := Variant{Name: "v", Request: request("H100", 8), Current: starting, Starting: []Starting{{Unschedulable: true}, {}}[:starting]}
		s := Snapshot{Time: epoch, Cluster: machines(1), Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{in}}}}
		policy := DefaultPolicy()
		r := newRound(&s, &policy, &Memory{}, RoundFull)
		r.Reserve()
		assert.Equal(t, refused, !r.Models[0].Variants[0].Next.Refused.IsZero(), "%d start", starting)
	}
}

// Thresholds may leave no room for a load at all; then any load is beyond it.
func TestShareOfTheRoom(t *testing.T) {
	assert.InDelta(t, 0.5, fleet.Share(1, 2), 1e-9)
	assert.Zero(t, fleet.Share(0, 0))
	assert.True(t, math.IsInf(fleet.Share(1, 0), 1))
	assert.True(t, math.IsInf(fleet.Share(0, -1), 1))
}

// What was learned on other hardware is forgotten; more CPU or memory is no other hardware.
func TestOtherHardwareIsLearnedAnew(t *testing.T) {
	shape := capacity.Shape{Accelerator: "H100", Devices: 2, Pods: 1, MilliCPU: 4000, MemoryBytes: 1 << 30}
	was := VariantMemory{Curve: serving.Curve{Weight: 1}, Holds: 5, Latency: LatencyMemory{Pace: 2}, Sizing: Sizing{Rate: 3}, Lowered: 7}
	first := was.On(shape)
	assert.Equal(t, 5.0, first.Holds, "nobody knows on what it was learned")
	for name, c := range map[string]struct {
		change func(*capacity.Shape)
		forgot bool
	}{
		"the same":        {func(*capacity.Shape) {}, false},
		"more CPU":        {func(s *capacity.Shape) { s.MilliCPU *= 2 }, false},
		"more memory":     {func(s *capacity.Shape) { s.MemoryBytes *= 2 }, false},
		"more devices":    {func(s *capacity.Shape) { s.Devices = 4 }, true},
		"another type":    {func(s *capacity.Shape) { s.Accelerator = "A100" }, true},
		"a larger device": {func(s *capacity.Shape) { s.MemoryGiB = 141 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := shape
			c.change(&now)
			next := first.On(now)
			if c.forgot {
				assert.Equal(t, VariantMemory{Lowered: 7, Hardware: next.Hardware}, *next)
				now.MilliCPU, now.MemoryBytes = 0, 0
				assert.Equal(t, now, next.Hardware)
				return
			}
			assert.Equal(t, first, next)
		})
	}
	assert.Equal(t, 3.0, float64(was.Sizing.Rate), "the memory itself stays as it is")
}
