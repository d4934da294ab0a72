package decision

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// One replica of twenty has a queue, or does nothing any more: the others go that are
// too many, and where the choice is ours it is not the one that goes.
func TestOneFullReplicaKeepsNoFleet(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Replica)
		left   int
	}{
		"none is full": {func(*Replica) {}, 1},
		"one is full":  {func(p *Replica) { p.Waiting.Value = 6 }, 2},
		"one does nothing": {func(p *Replica) {
			p.Running.Value, p.Waiting.Value, p.KVUse.Value, p.Served.Value = 128, 6, 0.5, 0
		}, 2},
	} {
		for _, picks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the choice is ours: %v", name, picks), func(t *testing.T) {
				w := newWorld(15)
				w.variants = w.variants[:1]
				w.cluster = machines(3)
				w.setReplicas(0, 20)
				w.now = w.now.Add(time.Hour)
				policy, memory := demoPolicy(), Memory{}
				for range 20 {
					s := w.snapshot()
					v := &s.Models[0].Variants[0]
					v.ChoosesVictims = picks
					c.change(&v.Replicas[0])
					var plan Plan
					plan, memory = Decide(s, policy, memory, RoundFull)
					if c.left > 1 {
						assert.NotContains(t, plan.Models[0].Variants[0].Victims, v.Replicas[0].Name)
					}
					w.apply(plan)
					w.now = w.now.Add(15 * time.Second)
				}
				assert.Equal(t, c.left, w.variants[0].replicas)
			})
		}
	}
}

// A replica that hangs while the load is high stays full for ever: when the load falls
// the others go as if it were not there, once, and what serves suffices.
func TestAFrozenReplica(t *testing.T) {
	const at = 20 * time.Minute
	web := vesselOf("web", 10)
	m := &flow{id: "m", arrivals: step(at, 20, 5), variants: []*vessel{web}}
	f := newFluid(machines(4), DefaultPolicy(), m)
	f.run(10 * time.Minute)
	bad := web.pods[3]
	bad.frozen, bad.running, bad.waiting = true, 16, podQueue
	f.run(2 * time.Hour)
	assert.NotContains(t, web.pods, bad, "its clients are gone after so long")
	assert.Equal(t, 3, web.replicas, "three serve 5 requests/s with headroom: %v", f.writes)
	assert.Less(t, m.queue, 1.0)
	down := 0
	for _, w := range f.writes {
		if w.to < w.from {
			down++
			assert.Greater(t, w.at, at)
		}
	}
	assert.Equal(t, 1, down, "%v", f.writes)
	assert.LessOrEqual(t, len(f.writes), 2, "%v", f.writes)
}

// Where none may stay all go, the full ones last.
func TestAFullVictim(t *testing.T) {
	w := newWorld(2)
	w.variants = w.variants[:1]
	w.cluster = machines(1)
	w.setReplicas(0, 4)
	w.now = w.now.Add(time.Hour)
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.ChoosesVictims = true
	v.Replicas[0].Waiting.Value, v.Replicas[1].Waiting.Value = 9, 7
	for most, want := range map[int][]string{2: {"a-h100-2", "a-h100-3"}, 1: {"a-h100-1", "a-h100-2", "a-h100-3"}} {
		policy := demoPolicy()
		own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
		own.Max = most
		policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
		assert.ElementsMatch(t, want, first(s, policy).Models[0].Variants[0].Victims, "of %d none is more than %d", 4, most)
	}
	v.Replicas[0].Marked = true
	policy := demoPolicy()
	own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	own.Max = 2
	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
	assert.Contains(t, first(s, policy).Models[0].Variants[0].Victims, "a-h100-0", "what was chosen before stays chosen")
}

// After a scale-down beside saturated replicas at least as many stay, two others had
// room, and the load of those that had room, carried by those of them that stay, is
// within the triggers; so is what all of them serve, with headroom, where a saturated one
// counts for no more than it serves now.
func TestBesideFullReplicasTheOthersHaveRoom(t *testing.T) {
	const each = 7.0 // what one replica serves at the load of the triggers
	lowered := 0
	for seed := range uint64(4 * cases()) {
		random := rand.New(rand.NewPCG(seed, 4))
		n, hot := 2+random.IntN(12), 1+random.IntN(2)
		level, spread := 0.7*random.Float64(), 0.05
		v := Variant{Name: "v", Current: n, Ready: n, Request: request("H100", 1), Cost: 10, Profile: serving.Profile{Base: 100}}
		sample := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
		saturation, queue, unsaturated, served, useful := 0.0, 0.0, 0, 0.0, 0.0
		for i := range n {
			kv, waits := max(0, level+spread*random.Float64()), 0.5*random.Float64()
			rate := 10 * kv
			if i < hot {
				kv, waits = 0.85, 6*random.Float64()
				rate = []float64{0, 2, each}[random.IntN(3)]
				useful += min(rate, each)
			} else {
				saturation, queue, unsaturated = saturation+kv, queue+waits, unsaturated+1
			}
			served += rate
			v.Replicas = append(v.Replicas, Replica{
				Name: fmt.Sprint(i), KVUse: sample(kv), Waiting: sample(waits), Running: sample(100 * kv),
				Served: sample(rate), InFlightGrowth: sample(0), InService: sample(10), Input: sample(1), Output: sample(100),
			})
		}
		m := Model{Namespace: "ns", ID: "m", Arrival: sample(served), Variants: []Variant{v}}
		policy := DefaultPolicy()
		own := DefaultVariantPolicy()
		own.Down.Window = 0
		policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "v"}: own}
		plan := first(Snapshot{Time: epoch, Models: []Model{m}}, policy)
		p := plan.Models[0].Variants[0]
		gone := n - *p.Desired
		if gone <= 0 {
			continue
		}
		lowered++
		stay := float64(unsaturated - gone)
		told := fmt.Sprintf("seed %d: %s", seed, lineOf(&p))
		require.GreaterOrEqual(t, *p.Desired, hot, told)
		require.GreaterOrEqual(t, unsaturated, 2, told)
		require.Positive(t, stay, told)
		require.LessOrEqual(t, saturation/stay, 0.7+1e-9, told)
		require.LessOrEqual(t, queue/stay, 2+1e-9, told)
		require.InDelta(t, each, float64(p.ServesEach), 1e-6, told)
		require.GreaterOrEqual(t, stay*each+useful, need.LowerHeadroom*served-1e-6, told)
	}
	assert.Greater(t, lowered, cases()/4)
}

// A replica is saturated at a threshold and not only above it, as published.
func TestAReplicaAtAThresholdIsSaturated(t *testing.T) {
	for name, c := range map[string]struct {
		cache, queue, running float64
		want                  fleet.Load
	}{
		"below all":             {cache: 0.79, queue: 4.9, running: 7, want: fleet.Load{Unsaturated: 1}},
		"at that of the cache":  {cache: 0.80, want: fleet.Load{Saturated: 1}},
		"at that of the queue":  {queue: 5, want: fleet.Load{Saturated: 1}},
		"at that of the batch":  {running: 8, want: fleet.Load{Saturated: 1}},
		"an empty one is known": {want: fleet.Load{Unsaturated: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := func(value float64) Sample { return Sample{Value: value, Time: epoch, Present: true} }
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, BatchLimit: 10, BatchSource: serving.BatchStated,
				Replicas: []Replica{{KVUse: fresh(c.cache), Waiting: fresh(c.queue), Running: fresh(c.running)}}})
			got := within(r, v).LoadOf(&within(r, m).Model.Model.Model.Model)
			assert.Equal(t, c.want.Saturated, got.Saturated)
			assert.Equal(t, c.want.Unsaturated, got.Unsaturated)
		})
	}
}

// What waits in a saturated replica that it will not have served by the time at which another one
// serves is needed of it, however much the others serve.
func TestWhatAReplicaOwesItsOwnQueue(t *testing.T) {
	for name, c := range map[string]struct {
		waiting, backlog float64
		full             bool
		own, queued      capacity.Rate
	}{
		"nothing waits":                         {},
		"it is served by then":                  {waiting: 180, full: true},
		"it is nearly served by then":           {waiting: 210, full: true, own: 0.25, queued: 0.25},
		"it is not, and the others have room":   {waiting: 18000, full: true, own: 2.5, queued: 2.5},
		"a part of it is to be met":             {waiting: 180, backlog: 60, full: true, own: 0.5, queued: 0.5},
		"more waits elsewhere":                  {waiting: 180, backlog: 420, full: true, own: 1.5, queued: 3.5},
		"it waits in one that is not saturated": {waiting: 18000, backlog: 120, queued: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1, Replicas: []Replica{{Waiting: Sample{Value: c.waiting, Time: epoch, Present: true}}}})
			v.Load.Of, m.Lead = []fleet.Class{fleet.Unsaturated}, time.Minute
			if c.full {
				v.Load.Of[0] = fleet.Saturated
			}
			n := need.Need{Backlog: c.backlog}
			within(r, m).Drain(&n)
			assert.InDelta(t, float64(c.own), float64(n.Own), 1e-9)
			assert.InDelta(t, float64(c.queued), float64(n.Queued), 1e-9)
		})
	}
}

// Beside one that stays saturated as much stays as is required: else the next round would add
// what this one gives up.
func TestWhatStaysBesideASaturatedOne(t *testing.T) {
	for name, c := range map[string]struct {
		saturated int
		required  capacity.Rate
		least     capacity.Rate
	}{
		"none is saturated":       {0, 9, 2 * need.LowerHeadroom},
		"one is":                  {1, 9, 9},
		"one is, and less is due": {1, 1, 2 * need.LowerHeadroom},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 5, Current: 5, Request: request("H100", 1)})
			m.Demand.IsCertain, m.Demand.Now, m.Demand.Certain, m.Load.Saturated = true, 2, 2, c.saturated
			n := need.Need{Required: c.required, Supply: 12.5}
			within(r, m).Less(&n)
			assert.Equal(t, need.WantLess, n.Want)
			assert.InDelta(t, float64(c.least), float64(n.Least), 1e-9)
		})
	}
}

// A scale-down gives a replica at most four times what it has to do now, where nothing but that
// says what it serves.
func TestHowFarAScaleDownStretches(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*limit.Round, *limit.Model, *limit.Variant)
		after  capacity.Rate
		safe   bool
	}{
		"nobody knows, twice": {func(*limit.Round, *limit.Model, *limit.Variant) {}, 20, true},
		"nobody knows, more":  {func(*limit.Round, *limit.Model, *limit.Variant) {}, 17.5, false},
		"it is idle":          {func(_ *limit.Round, m *limit.Model, _ *limit.Variant) { m.Load.Saturation = 0 }, 7.5, true},
		"a profile tells":     {func(_ *limit.Round, _ *limit.Model, v *limit.Variant) { v.In.Profile.Base = 10 }, 7.5, true},
		"it was learned":      {func(_ *limit.Round, _ *limit.Model, v *limit.Variant) { v.Old.Latency.Estimate = learnedOf(t) }, 7.5, true},
		"it was learned and not counted": {func(r *limit.Round, _ *limit.Model, v *limit.Variant) {
			v.Old.Latency.Estimate, r.Policy.Hybrid = learnedOf(t), false
		}, 7.5, false},
		"none of it serves": {func(_ *limit.Round, _ *limit.Model, v *limit.Variant) { v.In.Ready = 0 }, 7.5, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := DefaultPolicy()
			policy.Hybrid = true
			r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Ready: 16, Current: 16, Request: request("H100", 1)})
			m.Load, m.Need.Least, v.Load.Unsaturated = fleet.Load{Saturation: 0.01, Unsaturated: 16}, 1, 16
			m.Promise.SLO = tight
			c.change(r, m, v)
			seen, _ := within(r, v).SeenRate(&within(r, m).Model.Model, capacity.TokenShape{Input: 16, Output: 28})
			v.Rate.Guessed = seen.Guessed
			now := allocate.Standing{Ready: 40, Coming: 40, Up: 16, Total: 16, Unsaturated: 16}
			after := allocate.Standing{Ready: c.after, Coming: c.after, Up: int(c.after / 2.5), Total: int(c.after / 2.5), Unsaturated: 16}
			assert.Equal(t, c.safe, allocate.IsSafe(m, now, after))
		})
	}
	assert.True(t, rate.Rate{Trigger: 1}.Times(2).Guessed, "what is another one's rate")
}

// learnedOf is an estimate that counts.
func learnedOf(t *testing.T) serving.Estimate {
	t.Helper()
	e := serving.Estimate{Profile: serving.Profile{Base: 10, BatchLimit: 10, KVTokens: 4096}, Confidence: 1}
	require.True(t, e.Usable())
	return e
}
