package decision

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

func TestStartingReplicasCountUntilTheirDeadline(t *testing.T) {
	w := newWorld(60)
	w.startup = 10 * time.Minute
	policy, memory := demoPolicy(), Memory{}
	plan, memory := Decide(w.snapshot(), policy, memory, RoundFull)
	w.apply(plan)
	w.now = w.now.Add(15 * time.Second)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.False(t, w.apply(plan), "what starts will carry it")
	assert.Equal(t, ReasonStartingSuffices, plan.Models[0].Variants[1].Reason)

	w.startup = 24 * time.Hour // they never become ready
	snapshot := func() Snapshot {
		s := w.snapshot()
		for i := range s.Models[0].Variants {
			s.Models[0].Variants[i].Startup = time.Minute
		}
		// The first replica serves on.
		served := newWorld(60)
		served.now = w.now
		s.Models[0].Variants[0] = served.snapshot().Models[0].Variants[0]
		return s
	}
	w.now = w.now.Add(4 * time.Minute)
	plan, _ = Decide(snapshot(), policy, memory, RoundFull)
	assert.Contains(t, reasons(plan.Models[0].Variants[1].Facts), ReasonStartupOverdue)
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 1, "the demand goes to the other variant")
	assert.Less(t, *plan.Models[0].Variants[1].Desired, w.variants[1].replicas, "and what did not come up is given back")
}

func TestUnknownRatesBuyOneReplicaAtATime(t *testing.T) {
	w := newWorld(17)
	s := w.snapshot()
	for i := range s.Models[0].Variants {
		v := &s.Models[0].Variants[i]
		v.Profile = serving.Profile{}
		for j := range v.Replicas {
			p := &v.Replicas[j]
			p.Served.Value, p.Waiting.Value = 0, 40
			p.Input, p.Output = Sample{}, Sample{}
		}
	}
	plan, memory := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "one more, of the cheapest")
	s.Models[0].Variants[1].Current = 1
	s.Models[0].Variants[1].Starting = []Starting{{Name: "b", Since: s.Time}}
	s.Time = s.Time.Add(10 * time.Second)
	plan, _ = Decide(s, demoPolicy(), memory, RoundFast)
	assert.Equal(t, ReasonStartingSuffices, plan.Models[0].Variants[1].Reason)
}

func TestASharedTargetCountsOnce(t *testing.T) {
	w := newWorld(60)
	s := w.snapshot()
	shared := s.Models[0].Variants[0]
	shared.Name, shared.Target, shared.Current, shared.Ready, shared.Replicas = "z-shared", TargetShared, 50, 0, nil
	s.Models[0].Variants = append(s.Models[0].Variants, shared)
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	alone, _ := Decide(w.snapshot(), demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, *alone.Models[0].Variants[0].Desired, *plan.Models[0].Variants[0].Desired, "what it has is no supply")
	assert.Equal(t, *alone.Models[0].Variants[1].Desired, *plan.Models[0].Variants[1].Desired)
	assert.Nil(t, plan.Models[0].Variants[2].Desired)
}

// One pod that crashes must not stop its variant from growing.
func TestOneBadPodStopsNoGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		bad  Starting
		want int
	}{
		"that never became ready":                        {Starting{Name: "bad", Since: epoch, Placed: true}, 5},
		"that finds no node, which is asked for already": {Starting{Name: "bad", Since: epoch, Unschedulable: true}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants = w.variants[:1]
			s := w.snapshot()
			s.Models[0].Variants[0].Current = 2
			s.Models[0].Variants[0].Starting = []Starting{test.bad}
			plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
			assert.GreaterOrEqual(t, *plan.Models[0].Variants[0].Desired, test.want)
		})
	}
}

// What a replica shows of its first metrics window is its start.
func TestNothingIsLearnedFromAReplicaThatHasJustBegun(t *testing.T) {
	w := newWorld(10)
	for age, learns := range map[time.Duration]bool{19 * time.Second: false, 20 * time.Second: true} {
		s := w.snapshot()
		p := &s.Models[0].Variants[0].Replicas[0]
		p.Since, p.ITL, p.TTFT = s.Time.Add(-age), w.sample(0.02), w.sample(0.1)
		s.Models[0].Variants[0].Profile = serving.Profile{}
		policy := demoPolicy()
		policy.Hybrid, policy.Promises = true, map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {SLO: capacity.SLO{ITL: 50}}}
		_, memory := Decide(s, policy, Memory{}, RoundFull)
		key := Key{Namespace: "ns", Name: "a-h100"}
		assert.Equal(t, learns, memory.Variants[key].Curve.Known())
		assert.Equal(t, learns, len(memory.Variants[key].Latency.Learned.Seen) > 0)
	}
}

// A variant of which no replica runs yet is reckoned with by what its KV cache holds:
// the first guess of its curve lies where its replicas will work.
func TestAVariantWithoutReplicasHasAKVCache(t *testing.T) {
	// Times per token bend where arithmetic overtakes the reading of the weights.
	bends := serving.Profile{Form: serving.Overlapped, Base: 5, PerResidentToken: 4e-5, PerPrefillToken: 0.02, BatchLimit: 1024}
	long := capacity.TokenShape{Input: 10_000, Output: 1000}
	for name, c := range map[string]struct {
		in    Variant
		holds float64
	}{
		"memory and model size": {Variant{KVTokens: 420_000, KVSource: serving.CacheComputed}, 40},
		"a smaller batch limit": {Variant{KVTokens: 420_000, KVSource: serving.CacheComputed, BatchLimit: 16, BatchSource: serving.BatchStated}, 16},
		"nothing of the cache":  {Variant{}, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Name, c.in.Profile = "v", bends
			r, m, v := bare(DefaultPolicy(), Memory{}, &c.in)
			m.Demand.Tokens = long
			m.Sized, m.Rated = within(r, m).Rates()
			within(r, m).TellSupply()
			limit, _ := within(r, v).Holds(long)
			assert.InDelta(t, c.holds, limit, 1e-9)
			assert.InEpsilon(t, float64(bends.Steady(c.holds, long).Rate), float64(v.Rate.Max), 0.05)
			told := ""
			for _, s := range v.Plan.Steps {
				told += textOf(s.Detail) + "\n"
			}
			if c.in.KVTokens > 0 {
				assert.Contains(t, told, "KV cache not reported by the server: 420000 tokens from memory and model size")
			} else {
				assert.NotContains(t, told, "KV cache")
			}
		})
	}
}

// Where answers become longer while the load grows, the time per token falls with the number
// in service: most of it was the prompt's. A replica is then taken to serve far more at the
// triggers than any device does. That is no reason to believe that it misses the promise at
// the load that it does carry.
func TestARateOutOfReachDoesNotMakeAVariantMissThePromise(t *testing.T) {
	var curve serving.Curve
	for i := range 60 {
		shape := capacity.TokenShape{Input: 1000, Output: capacity.Tokens(2 + i)}
		n := 1 + float64(i)/30
		curve = curve.Observe(epoch.Add(time.Duration(i-60)*15*time.Second), n, onH100.Steady(n, shape).Rate, shape)
	}
	s := estateOf(1, epoch, 20)
	shape := capacity.TokenShape{Input: 1000, Output: 20}
	v := &s.Models[0].Variants[0]
	v.Profile = serving.Profile{BatchLimit: onH100.BatchLimit, KVTokens: onH100.KVTokens}
	seen := onH100.Steady(2, shape).Rate
	p := &v.Replicas[0]
	p.Running.Value, p.Served.Value, s.Models[0].Arrival.Value = 2, float64(seen), float64(seen)
	p.KVUse.Value = 0
	learned := LatencyMemory{Pace: 1, Estimate: serving.Estimate{Profile: onH100, Confidence: 1}}
	memory := Memory{Variants: map[Key]*VariantMemory{{Namespace: "ns", Name: v.Name}: {Curve: curve, Latency: learned}}}
	policy := hybrid(DefaultPolicy(), capacity.SLO{TTFT: 2000, ITL: 60})
	policy.Promises[ModelKey{Namespace: "ns", ID: s.Models[0].ID}] = policy.Promises[ModelKey{Namespace: "ns", ID: "m"}]
	plan, _ := Decide(s, policy, memory, RoundFull)
	require.True(t, plan.Models[0].Sized)
	serves := plan.Models[0].Variants[0].ServesEach
	atTriggers := 0.7 * float64(onH100.BatchLimit)
	require.Greater(t, rate.LeastPromised*curve.Rate(atTriggers, shape, onH100), serves, "what it is taken to serve at the triggers is out of reach")
	assert.NotContains(t, tellSteps(plan.Models[0].Variants[0].Steps), "misses the SLO")
	assert.Greater(t, serves, seen)
}

// Replicas that have less than half a request in service show no rate, and go all the same:
// as long as the others are not full without them.
func TestReplicasThatAreHardlyAskedGo(t *testing.T) {
	for name, c := range map[string]struct {
		use  float64
		age  time.Duration
		want int
	}{
		"hardly full":           {0.005, time.Hour, 2},
		"as full as two may be": {0.27, time.Hour, 2},
		"half full":             {0.40, time.Hour, 3},
		"nobody knows how full": {math.NaN(), time.Hour, 4},
		"they still fill":       {0.005, 10 * time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(20)
			w.setReplicas(0, 4)
			w.now = w.now.Add(time.Hour)
			s := w.snapshot()
			for i := range s.Models[0].Variants {
				v := &s.Models[0].Variants[i]
				v.Profile, v.BatchLimit = serving.Profile{}, 0
				for j := range v.Replicas {
					p := &v.Replicas[j]
					p.Running.Value, p.Served.Value, p.KVUse.Value, p.Waiting.Value = 0.4, 5, c.use, 0
					p.Since = s.Time.Add(-c.age)
				}
			}
			s.Models[0].Variants[1].Cost = 0.01
			plan := first(s, atOnce(policyFor(false, "a-h100", "b-l40s")))
			assert.Equal(t, c.want, *plan.Models[0].Variants[0].Desired, lineOf(&plan.Models[0].Variants[0]))
			assert.Zero(t, *plan.Models[0].Variants[1].Desired, "nobody knows whether it serves more for its price")
		})
	}
}

// A round that cannot tell the lengths of the requests, or sizes for no promise, keeps what
// was learned before it.
func TestWhatWasLearnedOutlivesARoundWithoutUse(t *testing.T) {
	for _, c := range []struct {
		name         string
		hybrid, only bool
		says         string
	}{
		{"lengths are unknown", true, false, "no request ended yet, so lengths are unknown: saturation alone decides"},
		{"its class says so", true, true, "service class Gold sets capacity-only for the model: saturation alone decides"},
		{"capacity alone decides", false, false, "hybrid mode is off: saturation alone decides"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(10)
			s := w.snapshot()
			for i := range s.Models[0].Variants[0].Replicas {
				p := &s.Models[0].Variants[0].Replicas[i]
				p.Input, p.Output = Sample{}, Sample{}
			}
			key := Key{Namespace: "ns", Name: "a-h100"}
			old := &VariantMemory{
				Latency: LatencyMemory{Estimate: serving.Estimate{Profile: onH100, Confidence: 0.9}, Fitted: s.Time.Add(-time.Minute)},
				Sizing:  Sizing{Profile: onH100, Rate: 5, Found: s.Time.Add(-time.Minute)},
			}
			policy := demoPolicy()
			policy.Hybrid, policy.Promises = c.hybrid, map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {Class: "Gold", SLO: capacity.SLO{ITL: 50}, CapacityOnly: c.only}}
			plan, memory := Decide(s, policy, Memory{Time: s.Time.Add(-time.Minute), Variants: map[Key]*VariantMemory{key: old}}, RoundFull)
			assert.Equal(t, old.Latency.Estimate, memory.Variants[key].Latency.Estimate)
			assert.Equal(t, old.Sizing, memory.Variants[key].Sizing)
			for _, v := range plan.Models[0].Variants {
				assert.True(t, slices.ContainsFunc(v.Steps, func(s Step) bool { return s.Reason == ReasonSLO && textOf(s.Detail) == c.says }), "%v", v.Steps)
			}
		})
	}
}

// What a replica serves at the triggers is not what it did lately carried on in a straight
// line: where its latency was learned, that says how the rate bends in between. Else a load
// that falls to a tenth makes each replica count for less, with every one that is added.
func TestARateAtTheTriggersFollowsWhatWasLearned(t *testing.T) {
	const few, many = 2, 60
	seen := serving.Curve{}
	for range 20 {
		seen = seen.Observe(epoch, few, onH100.Steady(few, conv).Rate, conv)
	}
	truth := float64(onH100.Steady(many, conv).Rate)
	policy := DefaultPolicy()
	rateAt := func(hybrid bool, confidence float64) float64 {
		policy.Hybrid = hybrid
		r, m, v := bare(policy, Memory{}, &Variant{Name: "v"})
		m.Promise.SLO = tight
		v.Next.Curve, v.Old.Latency.Estimate = seen, serving.Estimate{Profile: onH100, Confidence: confidence}
		return float64(within(r, v).RateAt(&within(r, m).Model.Model, many, conv))
	}
	assert.InEpsilon(t, truth, rateAt(true, 1), 0.01)
	carriedOn := rateAt(true, 0)
	assert.Less(t, carriedOn, 0.75*truth, "nothing was learned well enough")
	assert.Equal(t, carriedOn, rateAt(false, 1), "saturation alone decides by what it sees")
}

// The first requests to complete are those with the shortest answers. What a given profile says
// of them is not held against what replicas show of all the others.
func TestTheFirstLengthsDoNotStay(t *testing.T) {
	w := newWorld(8)
	usual := w.tokens
	w.tokens.Output = 10
	first := w.snapshot()
	first.Models[0].Variants[0].Replicas[0].Since = w.now.Add(-10 * time.Second)
	_, memory := Decide(first, demoPolicy(), Memory{}, RoundFull)
	w.tokens = usual
	for range 8 {
		w.now = w.now.Add(15 * time.Second)
		var plan Plan
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
		shape := memory.Models[ModelKey{Namespace: "ns", ID: "m"}].Tokens.Shape
		told := float64(onH100.Steady(0.7*128, shape).Rate)
		assert.InEpsilon(t, told, float64(plan.Models[0].Variants[0].ServesEach), 0.2)
	}
}
