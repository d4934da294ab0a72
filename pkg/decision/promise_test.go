package decision

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// hybrid promises all the latency to the model m.
func hybrid(policy Policy, slo capacity.SLO) Policy {
	policy.Hybrid = true
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {Class: "c", Priority: 1, SLO: slo}}
	return policy
}

// Where the promise decides, scatter of the arrivals is no reason to write either.
func TestNoiseMovesLittleWhereThePromiseDecides(t *testing.T) {
	for _, rate := range []float64{2, 6, 20} {
		if !thorough && rate != 6 {
			continue
		}
		t.Run(fmt.Sprintf("%v requests/s", rate), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 7))
			arrivals := func(time.Duration) float64 { return max(0, rate+math.Sqrt(rate)*random.NormFloat64()) }
			m := &flow{id: "m", arrivals: arrivals, variants: []*vessel{vesselOf("web", 1+int(rate/1.5))}}
			f := newFluid(machines(8), hybrid(DefaultPolicy(), capacity.SLO{TTFT: 2000, ITL: 40}), m)
			f.told = func(_ *Snapshot, plan *Plan) {
				require.True(t, f.elapsed() < time.Minute || plan.Models[0].Sized)
			}
			f.run(6 * time.Hour)
			// One replica more or fewer about twice an hour.
			assert.LessOrEqual(t, len(f.writes), 14, "%v", f.writes)
		})
	}
}

// estateOf is n models of one replica each whose answers have so many tokens.
func estateOf(n int, now time.Time, output float64) Snapshot {
	sample := func(v float64) Sample { return Sample{Value: v, Time: now, Present: true} }
	small := onH100
	small.BatchLimit = 4
	s := Snapshot{Time: now, Cluster: &placement.Cluster{Nodes: nodes(n/8+1, "H100", 8)}}
	for i := range n {
		id := fmt.Sprintf("m%04d", i)
		s.Models = append(s.Models, Model{Namespace: "ns", ID: id, Arrival: sample(1), Queue: sample(0), Variants: []Variant{{
			Name: id, Current: 1, Ready: 1, Request: request("H100", 1), Cost: 1, Profile: small, Startup: time.Minute,
			Replicas: []Replica{{
				Name: "p", KVUse: sample(0.1), Waiting: sample(0), Running: sample(1), Served: sample(1), InFlightGrowth: sample(0),
				Input: sample(1000), Output: sample(output),
			}},
		}}})
	}
	return s
}

// Of many models each has its turn to be sized: first ones a few hundred a round, new
// ones when all can have had theirs. None waits for ever because of its name.
func TestEveryModelHasItsTurnToBeSized(t *testing.T) {
	const n = 900
	policy := DefaultPolicy()
	policy.Hybrid, policy.Promises = true, map[ModelKey]Promise{}
	for i := range n {
		policy.Promises[ModelKey{Namespace: "ns", ID: fmt.Sprintf("m%04d", i)}] = Promise{Priority: 1, SLO: capacity.SLO{TTFT: 2000, ITL: 30}}
	}
	now, memory := epoch, Memory{}
	round := func(after time.Duration, output float64) {
		now = now.Add(after)
		_, memory = Decide(estateOf(n, now, output), policy, memory, RoundFast)
	}
	newest := func() int {
		count := 0
		for _, v := range memory.Variants {
			if v.Sizing.Found.Equal(now) {
				count++
			}
		}
		return count
	}
	for _, sized := range []int{rate.SizesPerRound, 2 * rate.SizesPerRound, n} {
		round(FastInterval, 200)
		found := 0
		for _, v := range memory.Variants {
			if !v.Sizing.Found.IsZero() {
				found++
			}
		}
		require.Equal(t, sized, found)
	}
	round(time.Second, 26000)
	assert.Equal(t, rate.SizesPerRound, newest(), "the lengths are others, and it is the turn of the first ones")
	round(time.Minute, 340)
	assert.Equal(t, n, newest())
	round(FastInterval, 440)
	assert.Zero(t, newest(), "and it is nobody's turn")
	round(FastInterval, 440)
	assert.Equal(t, n, newest())
	assert.Equal(t, memory.Variants[Key{Namespace: "ns", Name: "m0000"}].Sizing.Shape, memory.Variants[Key{Namespace: "ns", Name: "m0899"}].Sizing.Shape)
}

// shows gives the world's first replica all that a latency model is learned from.
func (w *world) shows() Snapshot {
	s := w.snapshot()
	p := &s.Models[0].Variants[0].Replicas[0]
	at := onH100.Steady(p.Running.Value, w.tokens)
	p.ITL, p.TTFT = w.sample(float64(at.ITL)/1000), w.sample(float64(at.TTFT)/1000)
	s.Models[0].Variants[0].Profile = serving.Profile{}
	return s
}

// A latency model that was good enough once is kept: points that became too old make
// the estimate of now useless, and not that of before.
func TestAUsableLatencyModelIsKept(t *testing.T) {
	w := newWorld(5)
	w.variants = w.variants[:1]
	policy, key := hybrid(demoPolicy(), capacity.SLO{ITL: 15}), Key{Namespace: "ns", Name: "a-h100"}
	plan, memory := Decide(w.shows(), policy, Memory{}, RoundFull)
	require.False(t, plan.Models[0].Sized, "one point teaches nothing")
	v := memory.Variants[key]
	require.False(t, v.Latency.Estimate.Usable())
	v.Latency.Estimate = serving.Estimate{Profile: onH100, Confidence: 0.9}
	memory.Variants[key] = v
	for range 3 {
		w.now = w.now.Add(2 * rate.FitSpacing)
		plan, memory = Decide(w.shows(), policy, memory, RoundFull)
		assert.True(t, plan.Models[0].Sized)
		l := memory.Variants[key].Latency
		assert.False(t, l.Learned.Estimate(serving.Profile{}).Usable())
		assert.True(t, l.Estimate.Usable())
	}
}

// A fit takes milliseconds, so each variant has one in a while.
func TestFitsAreSpaced(t *testing.T) {
	w := newWorld(5)
	w.variants = w.variants[:1]
	policy, memory := hybrid(demoPolicy(), capacity.SLO{ITL: 15}), Memory{}
	fitted := func(after time.Duration) time.Time {
		w.now = w.now.Add(after)
		w.arrival++
		_, memory = Decide(w.shows(), policy, memory, RoundFull)
		return memory.Variants[Key{Namespace: "ns", Name: "a-h100"}].Latency.Fitted
	}
	began := fitted(0)
	require.Equal(t, w.now, began)
	assert.Equal(t, began, fitted(rate.FitSpacing/2), "there is a new point, and it is too early")
	assert.Equal(t, w.now.Add(rate.FitSpacing/2), fitted(rate.FitSpacing/2))
}

// Of many variants those that waited longest have their fit first, a few a round.
func TestFitsAreFewInARound(t *testing.T) {
	const n = 2*rate.FitsPerRound + 3
	policy, memory := DefaultPolicy(), Memory{}
	policy.Hybrid, policy.Promises = true, map[ModelKey]Promise{}
	for round, want := range []int{rate.FitsPerRound, 2 * rate.FitsPerRound, n} {
		now := epoch.Add(time.Duration(round) * FastInterval)
		s := estateOf(n, now, 200)
		for i := range s.Models {
			policy.Promises[ModelKey{Namespace: "ns", ID: s.Models[i].ID}] = Promise{SLO: capacity.SLO{ITL: 30}}
			s.Models[i].Variants[0].Replicas[0].ITL = Sample{Value: 0.02, Time: now, Present: true}
		}
		_, memory = Decide(s, policy, memory, RoundFast)
		fitted := 0
		for _, v := range memory.Variants {
			if !v.Latency.Fitted.IsZero() {
				fitted++
			}
		}
		require.Equal(t, want, fitted, "after %d rounds", round+1)
	}
}

// What a replica shows of its time belongs to the requests that it completed itself.
func TestAReplicaHasItsOwnTokenShape(t *testing.T) {
	sample := func(v float64, ago time.Duration) Sample {
		return Sample{Value: v, Time: epoch.Add(-ago), Present: true}
	}
	mean, own := capacity.TokenShape{Input: 1000, Output: 200}, capacity.TokenShape{Input: 300, Output: 40}
	for name, c := range map[string]struct {
		replica Replica
		want    capacity.TokenShape
	}{
		"both are known":     {Replica{Input: sample(300, 0), Output: sample(40, 0)}, own},
		"they are old":       {Replica{Input: sample(300, time.Hour), Output: sample(40, time.Hour)}, mean},
		"one is old":         {Replica{Input: sample(300, 0), Output: sample(40, 90*time.Second)}, mean},
		"one is missing":     {Replica{Input: sample(300, 0)}, mean},
		"nothing completed":  {Replica{}, mean},
		"they are no number": {Replica{Input: sample(math.NaN(), 0), Output: sample(40, 0)}, mean},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
			assert.Equal(t, c.want, r.ShapeOf(&c.replica, mean))
		})
	}
}

// A latency model has the limits of the server that it is used for, whoever it is from.
func TestALatencyModelHasTheLimitsOfItsServer(t *testing.T) {
	reported := Sample{Value: 111000, Time: epoch, Present: true}
	for name, c := range map[string]struct {
		in     Variant
		limit  int
		tokens capacity.Tokens
	}{
		"nothing else is known":         {Variant{Profile: onH100}, 128, 447936},
		"the server's arguments":        {Variant{Profile: onH100, BatchLimit: 32, BatchSource: serving.BatchStated, KVTokens: 90000}, 32, 90000},
		"what a replica says":           {Variant{Profile: onH100, KVTokens: 90000, Replicas: []Replica{{KVTokens: reported}}}, 128, 111000},
		"borrowed, with its own limits": {Variant{BatchLimit: 16, BatchSource: serving.BatchStated, KVTokens: 80000}, 16, 80000},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Name, c.in.Request = "v", request("H100", 1)
			r, m, _ := bare(DefaultPolicy(), Memory{}, &c.in)
			other := variantOf(func(it *limit.Variant) {
				it.In, it.Key = &Variant{Name: "o", Profile: onH100, Request: request("H100", 1)}, Key{Namespace: "ns", Name: "o"}
			})
			m.Variants = append(m.Variants, other)
			m.Stack()
			got := within(r, m).Profiles()
			assert.Equal(t, c.limit, got[0].BatchLimit)
			assert.Equal(t, c.tokens, got[0].KVTokens)
			assert.Equal(t, onH100, got[1])
		})
	}
}

// After a deploy of a faster version the fleet gets smaller, whether the profile that is given
// follows or none is given.
func TestAFasterVersionNeedsFewer(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			web := vesselOf("web", 4)
			web.unstated = !told
			swing := func(at time.Duration) float64 { return 8 + 4*math.Sin(2*math.Pi*at.Hours()/4) }
			f := newFluid(machines(8), hybrid(DefaultPolicy(), capacity.SLO{TTFT: 2000, ITL: 30}), &flow{id: "m", arrivals: swing, variants: []*vessel{web}})
			most := func(until time.Duration) int {
				top := 0
				for f.elapsed() < until {
					f.step()
					top = max(top, web.replicas)
				}
				return top
			}
			most(8 * time.Hour)
			before := most(12 * time.Hour)
			web.profile = faster(web.profile, 0.4)
			web.version, web.surge = 1, 1
			most(24 * time.Hour)
			after := most(28 * time.Hour)
			f.memory = Memory{}
			most(32 * time.Hour)
			assert.LessOrEqual(t, after, most(36*time.Hour)+1, "%d before: %v", before, f.writes)
			assert.Less(t, after, before)
		})
	}
}

// A deploy of the same version changes nothing, at night either, when nothing shows how the server
// does at the loads of the day.
func TestADeployOfTheSameVersionChangesNothing(t *testing.T) {
	day := func(at time.Duration) float64 { return 12 - 11*math.Cos(2*math.Pi*at.Hours()/24) }
	var most []int
	for _, deploys := range []bool{false, true} {
		web := vesselOf("web", 4)
		web.unstated = true
		f := newFluid(machines(8), hybrid(DefaultPolicy(), capacity.SLO{TTFT: 2000, ITL: 30}), &flow{id: "m", arrivals: day, variants: []*vessel{web}})
		f.run(24 * time.Hour)
		if web.surge = 1; deploys {
			web.version++
		}
		top := 0
		for f.elapsed() < 48*time.Hour {
			f.step()
			top = max(top, web.replicas)
		}
		most = append(most, top)
	}
	assert.InDelta(t, most[0], most[1], 1)
}

// What servers show after a change tells whether they are others.
func TestWhetherAServerIsAnotherOne(t *testing.T) {
	truth := serving.Profile{Base: 20, PerRequest: 0.5, PerResidentToken: 1e-5, BatchLimit: 64, KVTokens: 1e6}
	at := func(p serving.Profile, when time.Duration, batch float64) serving.Observation {
		steady := p.Steady(batch, conv)
		return serving.Observation{Time: epoch.Add(when), Point: serving.Point{Shape: conv, Batch: batch, Rate: steady.Rate, ITL: steady.ITL, TTFT: steady.TTFT}}
	}
	for name, c := range map[string]struct {
		times   float64
		learned bool
		// seen is when the new server was seen, changed when it changed.
		seen, changed time.Duration
		doubt         bool
		pace          float64
		left          int
	}{
		"the same":                  {1.1, true, -time.Minute, -10 * time.Minute, false, 1, 8},
		"slower":                    {1.2, true, -time.Minute, -10 * time.Minute, false, 1.2, 1},
		"faster":                    {0.4, true, -time.Minute, -10 * time.Minute, false, 0.4, 1},
		"not seen yet":              {0.4, true, -11 * time.Minute, -10 * time.Minute, true, 1, 8},
		"it changed just now":       {0.4, true, -time.Minute, -4 * time.Minute, true, 1, 8},
		"little is known of it yet": {1, false, -time.Minute, -10 * time.Minute, false, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var l LatencyMemory
			for i := range 8 {
				l.Learned = l.Learned.Observe(at(truth, -time.Hour, 2*math.Exp2(float64(i)/2)))
			}
			if c.learned {
				l.Estimate = l.Learned.Estimate(truth)
				require.True(t, l.Estimate.Usable())
			}
			was := l.Estimate.Profile
			l.Learned = l.Learned.Observe(at(faster(truth, c.times), c.seen, 24))
			l.Changed = epoch.Add(c.changed)
			rate.JudgeChange(&l, serving.Profile{}, epoch.Add(-5*time.Minute))
			assert.Equal(t, c.doubt, !l.Changed.IsZero())
			assert.InDelta(t, c.pace*float64(was.Base), float64(l.Estimate.Profile.Base), 0.01*float64(was.Base))
			assert.Len(t, l.Learned.Seen, c.left)
		})
	}
}

// faster is the profile of a server of which everything takes so much less time.
func faster(p serving.Profile, times float64) serving.Profile {
	for _, part := range []*capacity.Milliseconds{&p.Base, &p.PerRequest, &p.PerResidentToken, &p.PerPrefillToken, &p.PerPrompt} {
		*part *= capacity.Milliseconds(times)
	}
	return p
}
