package decision

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// Each test here is a decision that was wrong once.

// tight is a promise that plain keeps, and that a variant which takes three times as long
// for each token keeps at no load.
var tight = capacity.SLO{TTFT: 5000, ITL: 40}

// slowAndFast are a variant that keeps the tight promise and a cheaper one that cannot.
func slowAndFast(fasts, slows int) (fast, slow *vessel) {
	fast, slow = vesselOf("fast", fasts), vesselOf("slow", slows)
	slow.profile.Base *= 3
	slow.cost = 2
	return fast, slow
}

// A variant that cannot keep the promise counts for the same when replicas are added and
// when they go, so that a constant load comes to rest.
func TestAVariantThatMissesThePromiseMakesNoCycle(t *testing.T) {
	for _, rate := range []float64{0.5, 2.5, 4, 9} {
		for _, slows := range []int{0, 4} {
			t.Run(fmt.Sprintf("%v requests/s, %d slow ones", rate, slows), func(t *testing.T) {
				fast, slow := slowAndFast(2, slows)
				m := &flow{id: "m", arrivals: constant(rate), variants: []*vessel{fast, slow}}
				f := newFluid(machines(4), hybrid(DefaultPolicy(), tight), m)
				f.run(time.Hour)
				before := len(f.writes)
				f.run(3 * time.Hour)
				assert.Len(t, f.writes, before, "%v", f.writes)
				assert.Zero(t, slow.replicas, "it serves nothing that counts")
				assert.GreaterOrEqual(t, float64(fast.replicas)*allowed(plain), rate)
			})
		}
	}
}

// Whoever keeps a model's only replica, or wakes it, keeps the promise if anybody does.
func TestTheReplicaThatIsKeptKeepsThePromise(t *testing.T) {
	fast, slow := slowAndFast(0, 0)
	m := &flow{id: "m", arrivals: step(30*time.Minute, 0, 1), variants: []*vessel{fast, slow}}
	policy := hybrid(DefaultPolicy(), tight)
	f := newFluid(machines(4), policy, m)
	f.memory.Models = map[ModelKey]*ModelMemory{{Namespace: "ns", ID: "m"}: {Tokens: forecast.TokenMean{Time: epoch, Shape: conv, Weight: 1e6}}}
	f.run(time.Minute)
	assert.Equal(t, 1, fast.replicas)
	assert.Zero(t, slow.replicas)
	f.run(time.Hour)
	assert.Zero(t, slow.replicas, "%v", f.writes)
}

// A promise at the edge of what a device can do asks for no thousands of replicas: who
// keeps it only at a small share of its rate does not keep it.
func TestAPromiseAtTheEdgeIsNotKept(t *testing.T) {
	for _, arrival := range []float64{5, 40, 150} {
		w := newWorld(arrival)
		w.variants = w.variants[:1]
		without := *first(w.snapshot(), demoPolicy()).Models[0].Variants[0].Desired
		for itl := capacity.Milliseconds(6.4); itl < 12; itl += 0.02 {
			plan := first(w.snapshot(), hybrid(demoPolicy(), capacity.SLO{ITL: itl}))
			m := plan.Models[0]
			require.LessOrEqual(t, float64(*m.Variants[0].Desired), math.Ceil(1/rate.LeastPromised)*float64(without+1), "ITL %v ms at %v requests/s: %s", itl, arrival, lineOf(&m.Variants[0]))
			if m.Sized {
				require.GreaterOrEqual(t, float64(m.Variants[0].ServesEach), rate.LeastPromised*float64(onH100.Steady(0.7*128, conv).Rate))
			}
		}
	}
}

// Near that edge an estimate that wavers from fit to fit does not turn the fleet over: who
// once kept the promise keeps it on. Some of these promises lie where the rate wavers across
// the edge.
func TestAnEstimateAtTheEdgeComesToRest(t *testing.T) {
	crossed := 0
	for itl := capacity.Milliseconds(7); itl < 10; itl += 0.25 {
		random := rand.New(rand.NewPCG(1, 7))
		w := newWorld(40)
		w.variants = w.variants[:1]
		policy, memory := hybrid(DefaultPolicy(), capacity.SLO{ITL: itl}), Memory{}
		var plan Plan
		kept, changes, least, most := false, 0, math.MaxInt, 0
		below := false
		for range 300 {
			w.variants[0].told.Base = onH100.Base * capacity.Milliseconds(1+0.02*random.NormFloat64())
			plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
			w.apply(plan)
			w.now = w.now.Add(time.Minute)
			sizing := memory.Variants[Key{Namespace: "ns", Name: "a-h100"}].Sizing
			if sizing.Keeps != kept {
				kept, least, most = sizing.Keeps, math.MaxInt, 0
				changes++
			}
			least, most = min(least, w.variants[0].replicas), max(most, w.variants[0].replicas)
			below = below || kept && float64(sizing.Rate) < rate.LeastPromised*w.eachServes(0)
		}
		assert.LessOrEqual(t, changes, 1, "ITL %v ms", itl)
		assert.LessOrEqual(t, float64(most), 2*float64(least), "ITL %v ms", itl)
		if below {
			crossed++
		}
	}
	assert.Positive(t, crossed)
}

// restraints are behaviors that keep a variant from growing now.
func restraints() map[string]Behavior {
	return map[string]Behavior{
		"disabled":    {Select: SelectDisabled},
		"rate policy": {Select: SelectMax, Policies: []RatePolicy{{Pods: 1, Period: 30 * time.Minute}}},
		"tolerance":   {Select: SelectMax, Tolerance: 0.99},
		"window":      {Select: SelectMax, Window: time.Hour},
	}
}

// What the cheapest variant may not add now is bought of the others at once.
func TestWhatOneVariantMayNotAddOthersDo(t *testing.T) {
	for name, up := range restraints() {
		for _, promise := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hybrid %v", name, promise), func(t *testing.T) {
				const at = 10 * time.Minute
				cheap, dear := vesselOf("cheap", 2), vesselOf("dear", 0)
				cheap.cost = 3
				policy := DefaultPolicy()
				if promise {
					policy = hybrid(policy, tight)
				}
				own := DefaultVariantPolicy()
				own.Up = up
				policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "cheap"}: own}
				m := &flow{id: "m", arrivals: step(at, 3, 10), variants: []*vessel{cheap, dear}}
				f := newFluid(machines(4), policy, m)
				f.run(at + 45*time.Second)
				assert.GreaterOrEqual(t, dear.replicas+cheap.replicas, 4, "%v", f.writes)
				f.run(at + 15*time.Minute)
				assert.Less(t, m.queue, 10.0, "%v", f.writes)
			})
		}
	}
}

// A switch that behavior blocks keeps nothing from going.
func TestABlockedSwitchKeepsNothing(t *testing.T) {
	for name, up := range restraints() {
		t.Run(name, func(t *testing.T) {
			cheap, dear := vesselOf("cheap", 0), vesselOf("dear", 8)
			cheap.cost = 3
			policy := DefaultPolicy()
			own := DefaultVariantPolicy()
			own.Up = up
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "cheap"}: own}
			m := &flow{id: "m", arrivals: constant(1), variants: []*vessel{cheap, dear}}
			f := newFluid(machines(4), policy, m)
			f.run(15 * time.Minute)
			assert.LessOrEqual(t, dear.replicas, 1, "%v", f.writes)
		})
	}
}

// A replica that costs nothing holds a device all the same.
func TestReplicasThatCostNothingGo(t *testing.T) {
	for name, costs := range map[string][]capacity.Cost{"alone": {0}, "all": {0, 0}, "beside one that costs": {0, 5}} {
		t.Run(name, func(t *testing.T) {
			m := &flow{id: "m", arrivals: constant(1)}
			for i, cost := range costs {
				v := vesselOf(fmt.Sprint("v", i), 10*(1-i))
				v.cost = cost
				m.variants = append(m.variants, v)
			}
			f := newFluid(machines(4), DefaultPolicy(), m)
			f.run(30 * time.Minute)
			assert.Equal(t, 1, m.variants[0].replicas, "%v", f.writes)
			for _, v := range m.variants[1:] {
				assert.Zero(t, v.replicas)
			}
		})
	}
}

// In a cluster that does not grow a more important model that lacks room gets it from less
// important ones, as far as their bounds and behavior allow, and both say so.
func TestALessImportantModelGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		least  int
		down   Select
		want   int
		nobody bool
	}{
		"it has no minimum":     {want: 1},
		"it has a minimum":      {least: 5, want: 5},
		"it may not scale down": {down: SelectDisabled, want: 8, nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			batch := &flow{id: "batch", arrivals: constant(18), variants: []*vessel{vesselOf("batch", 8)}}
			chat := &flow{id: "chat", arrivals: step(20*time.Minute, 0, 7), variants: []*vessel{vesselOf("chat", 0)}}
			policy := DefaultPolicy()
			policy.Limited, policy.Idle.Enabled = true, true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
			own := DefaultVariantPolicy()
			own.Min = c.least
			if c.down != "" {
				own.Down.Select = c.down
			}
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "batch"}: own}
			f := newFluid(machines(1), policy, batch, chat)
			gives, waits := "", ""
			f.told = func(_ *Snapshot, plan *Plan) {
				if f.elapsed() > 20*time.Minute && gives == "" {
					gives = detailOf(plan.Models[0].Variants[0].Facts, ReasonPreempted)
					waits = detailOf(plan.Models[1].Variants[0].Facts, ReasonNoSlots)
				}
			}
			for f.elapsed() < time.Hour {
				f.step()
				require.GreaterOrEqual(t, batch.variants[0].replicas, c.want)
			}
			if c.nobody {
				assert.Empty(t, gives, "who may not go is not asked to")
				return
			}
			assert.GreaterOrEqual(t, chat.variants[0].replicas, min(3, 8-c.least), "%v", f.writes)
			assert.Contains(t, gives, "chat")
			assert.NotEmpty(t, waits)
		})
	}
}

// Whoever sets the same number again and again is a conflict, however long he waits.
func TestASlowFightIsAConflict(t *testing.T) {
	for _, every := range []time.Duration{5*time.Minute + 30*time.Second, 10 * time.Minute, 25 * time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			web := vesselOf("web", 2)
			f := newFluid(machines(4), DefaultPolicy(), &flow{id: "m", arrivals: constant(9), variants: []*vessel{web}})
			f.run(20 * time.Minute)
			require.Greater(t, web.replicas, 3)
			f.writes = nil
			conflict := false
			f.told = func(_ *Snapshot, plan *Plan) {
				conflict = conflict || plan.Models[0].Variants[0].Reason == ReasonReplicasOverwritten
			}
			for f.elapsed() < 20*time.Minute+3*time.Hour {
				if f.elapsed()%every == 0 && web.replicas != 2 {
					web.replicas = 2
					f.remove(web, nil)
				}
				f.step()
			}
			assert.True(t, conflict)
			assert.LessOrEqual(t, len(f.writes), 8, "%v", f.writes)
		})
	}
}

// What a lower maxReplicas takes is bought of another variant in the same round.
func TestALowerMaximumIsReplacedAtOnce(t *testing.T) {
	for _, promise := range []bool{false, true} {
		t.Run(fmt.Sprint("hybrid ", promise), func(t *testing.T) {
			const at = 20 * time.Minute
			cheap, dear := vesselOf("cheap", 8), vesselOf("dear", 0)
			cheap.cost = 3
			policy := DefaultPolicy()
			if promise {
				policy = hybrid(policy, tight)
			}
			m := &flow{id: "m", arrivals: constant(16), variants: []*vessel{cheap, dear}}
			f := newFluid(machines(4), policy, m)
			f.run(at)
			before := cheap.replicas
			require.Greater(t, before, 6, "%v", f.writes)
			own := DefaultVariantPolicy()
			own.Max = 2
			f.policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "cheap"}: own}
			for cheap.replicas == before {
				f.step()
			}
			assert.Equal(t, 2, cheap.replicas)
			assert.GreaterOrEqual(t, dear.replicas, 5, "%v", f.writes)
		})
	}
}

// The queue of a replica that completes nothing is not demand.
func TestAHungReplicaIsNoDemand(t *testing.T) {
	for _, promise := range []bool{false, true} {
		t.Run(fmt.Sprint("hybrid ", promise), func(t *testing.T) {
			web := vesselOf("web", 4)
			policy := DefaultPolicy()
			if promise {
				policy = hybrid(policy, tight)
			}
			f := newFluid(machines(8), policy, &flow{id: "m", arrivals: constant(8), direct: true, evenly: true, variants: []*vessel{web}})
			f.run(20 * time.Minute)
			require.Equal(t, 4, web.replicas, "%v", f.writes)
			web.pods[0].frozen = true
			for f.elapsed() < 3*time.Hour {
				f.step()
				require.LessOrEqual(t, web.replicas, 6, "%v", f.writes)
			}
		})
	}
}

// Samples from the future are not fresh for ever.
func TestSamplesFromTheFutureAge(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, 40 * time.Minute, 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			w, memory := newWorld(1), Memory{}
			w.setReplicas(0, 8)
			w.now = w.now.Add(time.Hour)
			s := w.snapshot()
			for _, sample := range samples(&s.Models[0]) {
				sample.Time = sample.Time.Add(ahead)
			}
			for range 120 {
				var plan Plan
				plan, memory = Decide(s, DefaultPolicy(), memory, RoundFull)
				require.GreaterOrEqual(t, *plan.Models[0].Variants[0].Desired, 8, "%v later", s.Time.Sub(w.now))
				s.Time = s.Time.Add(15 * time.Second)
			}
		})
	}
}

// A rollout whose new pods crash holds nothing.
func TestARolloutThatCrashesHoldsNothing(t *testing.T) {
	for name, bad := range map[string]Starting{
		"its containers fail": {Name: "new", Since: epoch, Placed: true, Held: true, Failing: true},
		"it hangs":            {Name: "new", Since: epoch, Placed: true, Held: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, memory := newWorld(1), Memory{}
			w.setReplicas(0, 8)
			w.now = w.now.Add(time.Hour)
			desired, policy := 0, DefaultPolicy()
			policy.Horizon = 0
			for range 60 {
				s := w.snapshot()
				v := &s.Models[0].Variants[0]
				v.Ready, v.Replicas, v.Starting, v.Rolling = 7, v.Replicas[1:], []Starting{bad}, true
				var plan Plan
				plan, memory = Decide(s, policy, memory, RoundFull)
				desired = *plan.Models[0].Variants[0].Desired
				w.now = w.now.Add(15 * time.Second)
			}
			assert.Less(t, desired, 4)
		})
	}
}

// While nobody knows how long a start takes, what starts is not bought again.
func TestAnUnseenSlowStartBuysOnce(t *testing.T) {
	for _, promise := range []bool{false, true} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprintf("hybrid %v, direct %v", promise, direct), func(t *testing.T) {
				const at = 5 * time.Minute
				web := vesselOf("web", 1)
				web.startup, web.seen = 15*time.Minute, 0
				policy := DefaultPolicy()
				if promise {
					policy = hybrid(policy, tight)
				}
				m := &flow{id: "m", arrivals: step(at, 1, 9), direct: direct, variants: []*vessel{web}}
				f := newFluid(machines(8), policy, m)
				f.run(at + 90*time.Minute)
				assert.LessOrEqual(t, highest(f.writes), atMost(6), "%v", f.writes)
				assert.Less(t, m.queue, 10.0)
			})
		}
	}
}

// Where no more may be added of what keeps the promise, the rest is served late: by as many
// as that takes, and not by all that happen to be there.
func TestMisfitsThatNothingNeedsGo(t *testing.T) {
	fast, slow := slowAndFast(2, 14)
	m := &flow{id: "m", arrivals: constant(9), variants: []*vessel{fast, slow}}
	policy := hybrid(DefaultPolicy(), tight)
	own := DefaultVariantPolicy()
	own.Max = 2
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "fast"}: own}
	f := newFluid(machines(4), policy, m)
	f.run(2 * time.Hour)
	assert.Equal(t, 2, fast.replicas)
	// The two serve 5 requests/s at the triggers, and each of the others a third of 2.5.
	assert.GreaterOrEqual(t, slow.replicas, 5, "%v", f.writes)
	assert.LessOrEqual(t, slow.replicas, 9, "%v", f.writes)
}

// As long as what keeps the promise can be added, those that miss it stay until it serves.
func TestMisfitsStayWhileOthersAreBought(t *testing.T) {
	for late, want := range map[capacity.Rate]int{0: 4, 2: 1} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
		v.Rate, v.Price = rate.Rate{Trigger: 2.5, Max: 3, Bound: true}, 1
		m.Demand.Certain, m.Demand.IsCertain = 1, true
		allocate.RelieveMisfits(r, within(r, m), late)
		// 2.5 is the first multiple of 2.5 above 2*0.85/0.70.
		assert.Equal(t, want, v.Target, "%v req/s are served late", late)
	}
}

// Misfits that went in vain stay the next time.
func TestMisfitsThatWereMissedStay(t *testing.T) {
	for few, want := range map[int]int{0: 1, 1: 2, 3: 4} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
		v.Rate, v.Price = rate.Rate{Trigger: 2.5, Max: 3, Bound: true}, 1
		m.Demand.Now, m.Demand.Certain, m.Demand.IsCertain = 1, 1, true
		m.Next.TooFew, v.Next.TooFew = TooFew{At: epoch, Load: 1}, few
		allocate.RelieveMisfits(r, within(r, m), 2)
		assert.Equal(t, want, v.Target, "%d were too few", few)
	}
}

// Where nothing that keeps the promise may be added, what serves late is asked for beyond
// what fits, too: only then can a node autoscaler act.
func TestTheClusterGrowsForMisfits(t *testing.T) {
	for _, limited := range []bool{false, true} {
		fast, slow := slowAndFast(1, 2)
		m := &flow{id: "m", arrivals: constant(9), variants: []*vessel{fast, slow}}
		policy := hybrid(DefaultPolicy(), tight)
		own := DefaultVariantPolicy()
		own.Max = 1
		policy.Variants, policy.Limited = map[Key]VariantPolicy{{Namespace: "ns", Name: "fast"}: own}, limited
		f := newFluid(&placement.Cluster{Nodes: nodes(1, "H100", 3)}, policy, m)
		f.run(5 * time.Minute)
		if limited {
			assert.Equal(t, 2, slow.replicas, "%v", f.writes)
			continue
		}
		// The fast one serves 2.5 of 9 requests/s, and each of the others a third of that.
		assert.GreaterOrEqual(t, slow.replicas, 8, "%v", f.writes)
	}
}

// Replicas that are nearly idle go where nobody was told what one serves: a batch of one says
// that it grows, and not that half of its time is the batch's.
func TestIdleReplicasOfAnUnknownServerGo(t *testing.T) {
	web := vesselOf("web", 2)
	web.unstated, web.profile = true, onH100
	m := &flow{id: "m", arrivals: constant(4), variants: []*vessel{web}}
	f := newFluid(machines(2), DefaultPolicy(), m)
	f.run(2 * time.Hour)
	assert.Equal(t, 1, web.replicas, "%v", f.writes)
	assert.Len(t, f.writes, 1)
}

// A tolerance is of what is wanted, and not of what maxReplicas leaves of it.
func TestAToleranceLooksBeyondMaxReplicas(t *testing.T) {
	for arrivals, want := range map[float64]int{30: 4, 8.5: 3} {
		web := vesselOf("web", 3)
		m := &flow{id: "m", arrivals: constant(arrivals), variants: []*vessel{web}}
		policy, own := DefaultPolicy(), DefaultVariantPolicy()
		own.Max, own.Up.Tolerance = 4, 0.42
		policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "web"}: own}
		f := newFluid(machines(2), policy, m)
		f.run(10 * time.Minute)
		assert.Equal(t, want, web.replicas, "%v requests/s", arrivals)
	}
}

// Replicas go while one of them serves what waits in it alone, however long that takes.
func TestOthersGoWhileOneServesItsOwnQueue(t *testing.T) {
	r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4, Replicas: []Replica{{
		Name: "p", Waiting: Sample{Value: 9000, Time: epoch, Present: true}, Running: Sample{Value: 18, Time: epoch, Present: true}, Served: Sample{Value: 3, Time: epoch, Present: true},
	}}})
	v.Load.Of = []fleet.Class{fleet.Saturated}
	served := 3 * r.Policy.Window.Seconds()
	for name, c := range map[string]struct {
		before float64
		waits  bool
	}{
		"it served what went": {9000 + served, false},
		"others served, too":  {9000 + served + 2.6*r.Policy.Drain.Seconds(), true},
	} {
		m.Next.Seen = []Observation{{Time: epoch.Add(-r.Policy.Window), Backlog: c.before, Ready: 4}}
		assert.Equal(t, c.waits, textOf(within(r, m).Unsettled(&need.Need{Own: 2.5, Supply: 4})) != "", name)
	}
}

// A switch to which the tolerance of the dear ones lets none of them go saves nothing, unless
// it is worth it beside those that stay.
func TestASwitchThatAToleranceHoldsSavesNothing(t *testing.T) {
	for _, c := range []struct {
		tolerance float64
		cost      capacity.Cost
		pays      bool
	}{{0, 31, true}, {0.2, 31, true}, {0.25, 31, false}, {0.25, 27, true}} {
		_, m, dear := bare(DefaultPolicy(), Memory{}, &Variant{Name: "dear", Current: 4, Ready: 4})
		dear.Price, dear.Load.Unsaturated, dear.Policy.Down.Tolerance = 10, 4, c.tolerance
		cheap := variantOf(func(it *limit.Variant) {
			it.In, it.Managed, it.Policy, it.Price, it.Rate = &Variant{Name: "cheap"}, true, DefaultVariantPolicy(), 1, dear.Rate
		})
		m.Variants = append(m.Variants, cheap)
		m.Stack()
		m.Load, m.Need.Least = fleet.Load{Unsaturated: 4}, 8
		best := allocation.Vector{Replicas: []int{3, 1}, Cost: c.cost}
		assert.Equal(t, c.pays, allocate.PaysOff(m, m.Variants, map[*limit.Variant]int{dear: 3, cheap: 1}, &best), "%+v", c)
	}
}

// A model that may sleep sleeps beside a replica that only minReplicas asks for and no node
// holds.
func TestAModelSleepsBesideAReplicaWithoutANode(t *testing.T) {
	least, other := vesselOf("least", 0), vesselOf("other", 0)
	least.request = request("A100", 1)
	m := &flow{id: "m", arrivals: constant(0), variants: []*vessel{least, other}}
	policy, own := DefaultPolicy(), DefaultVariantPolicy()
	own.Min = 1
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "least"}: own}
	policy.Idle = Idle{Enabled: true, Retention: 4 * time.Minute}
	f := newFluid(machines(1), policy, m)
	f.run(2 * time.Hour)
	assert.Zero(t, other.replicas)
	assert.LessOrEqual(t, len(f.writes), 3, "%v", f.writes)
}

// Who was given room takes it, although its scaleUp has a window: that began when it lacked
// the room, so that whoever gave it does not take it back.
func TestRoomThatWasGivenIsTaken(t *testing.T) {
	batch := &flow{id: "batch", arrivals: constant(14.5), variants: []*vessel{vesselOf("batch", 6)}}
	chat := &flow{id: "chat", arrivals: step(20*time.Minute, 4, 6.5), variants: []*vessel{vesselOf("chat", 2)}}
	policy, own := DefaultPolicy(), DefaultVariantPolicy()
	own.Up.Window = 105 * time.Second
	policy.Limited, policy.Variants = true, map[Key]VariantPolicy{{Namespace: "ns", Name: "chat"}: own}
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
	f := newFluid(machines(1), policy, batch, chat)
	f.run(2 * time.Hour)
	assert.Equal(t, 3, chat.variants[0].replicas, "%v", f.writes)
	assert.Len(t, f.writes, 2, "%v", f.writes)
}

// What a replica did that went is missing from the count: that is no fall of the load, from
// which it would then rise again.
func TestACountWithoutAReplicaThatWentIsALowerBound(t *testing.T) {
	seen := func(ready int, ago time.Duration) Observation {
		return Observation{Sampled: epoch.Add(-ago), Ready: ready}
	}
	for name, c := range map[string]struct {
		seen   []Observation
		shrank bool
	}{
		"nothing was seen":                      {nil, false},
		"one more served at the last sample":    {[]Observation{seen(3, 15*time.Second)}, true},
		"as many":                               {[]Observation{seen(2, 15*time.Second)}, false},
		"one more served when last seen":        {[]Observation{seen(3, 16*time.Second)}, true},
		"one more served before, and then none": {[]Observation{seen(3, 16*time.Second), seen(2, 10*time.Second)}, false},
		"one more served within the span":       {[]Observation{seen(3, 14*time.Second), seen(2, 10*time.Second)}, true},
	} {
		r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
		m.Old.Seen = c.seen
		assert.Equal(t, c.shrank, within(r, m).Shrank(epoch, 15*time.Second), name)
	}
	fast, slow := vesselOf("fast", 1), vesselOf("slow", 2)
	fast.profile, slow.profile = onH100, plain
	m := &flow{id: "m", arrivals: constant(3), direct: true, variants: []*vessel{fast, slow}}
	policy, own := hybrid(DefaultPolicy(), tight), DefaultVariantPolicy()
	own.Min = 2
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "slow"}: own}
	f := newFluid(machines(2), policy, m)
	f.told = func(s *Snapshot, plan *Plan) {
		if d := plan.Models[0].Demand; f.elapsed() > 5*time.Minute && d != nil {
			assert.Greater(t, float64(d.Arrival), 2.8, "%v: %v", f.elapsed(), f.writes)
		}
	}
	f.run(time.Hour)
	assert.Zero(t, fast.replicas, "%v", f.writes)
}

// A given profile stands while what was seen is within a half of it, and once it was not it
// is paced by whatever is seen.
func TestAProfileStandsUntilItIsWrong(t *testing.T) {
	seen := func(longer float64) serving.Learned {
		at := onH100.Steady(10, conv)
		return serving.Learned{}.Observe(serving.Observation{Point: serving.Point{Shape: conv, Batch: 10, Rate: at.Rate, ITL: at.ITL * capacity.Milliseconds(longer)}})
	}
	for _, c := range []struct{ before, longer, pace float64 }{
		{0, 1.4, 1}, {0, 1.6, 1.6}, {1, 1.4, 1}, {1, 0.7, 1}, {1, 0.6, 0.6}, {1.6, 1.4, 1.4}, {1.6, 1, 1},
	} {
		l := LatencyMemory{Learned: seen(c.longer), Given: onH100, Pace: c.before}
		rate.Repace(&l, onH100)
		assert.InEpsilon(t, c.pace, l.Pace, 1e-9, "%+v", c)
		l.Pace = 3
		rate.Repace(&l, plain)
		assert.Equal(t, plain, l.Given)
		assert.NotEqual(t, 3.0, l.Pace, "that of another profile")
	}
}

// A profile that was given and is wrong is paced by what the servers show, long before these
// have shown enough for a model of their own.
func TestAWrongProfileIsPaced(t *testing.T) {
	serves := map[float64]float64{}
	for _, wrong := range []float64{1, 0.5, 2} {
		web := vesselOf("web", 8)
		web.profile, web.stated = onH100, onH100.Paced(wrong)
		m := &flow{id: "m", arrivals: constant(20), variants: []*vessel{web}}
		f := newFluid(machines(4), hybrid(DefaultPolicy(), capacity.SLO{TTFT: 2000, ITL: 25}), m)
		says := ""
		f.told = func(_ *Snapshot, plan *Plan) {
			v := &plan.Models[0].Variants[0]
			serves[wrong] = float64(v.ServesEach)
			for _, s := range v.Steps {
				if strings.HasSuffix(textOf(s.Detail), "as long as the given profile says") {
					says = textOf(s.Detail)
				}
			}
		}
		f.run(30 * time.Minute)
		assert.Equal(t, wrong != 1, says != "", says)
		assert.InEpsilon(t, serves[1], serves[wrong], 0.1, "%v times as long", wrong)
	}
}

// A profile that was borrowed is paced by the borrower's own servers.
func TestALoanIsPaced(t *testing.T) {
	r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Profile: onH100, Request: request("H100", 1)})
	w := variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "w", Request: request("H100", 1)} })
	m.Variants = append(m.Variants, w)
	m.Stack()
	at := onH100.Steady(10, conv)
	w.Next.Latency.FittedTo = serving.Learned{}.Observe(serving.Observation{Point: serving.Point{Shape: conv, Batch: 10, Rate: at.Rate, ITL: 2 * at.ITL}})
	found := within(r, m).Profiles()
	assert.InEpsilon(t, float64(2*found[0].Base), float64(found[1].Base), 1e-9)
	assert.InEpsilon(t, float64(2*found[0].PerPrefillToken), float64(found[1].PerPrefillToken), 1e-9)
}

// A window of scaleUp begins when the room is lacked, and not when it is there.
func TestAWindowBeginsWhenRoomIsLacked(t *testing.T) {
	for window, want := range map[time.Duration]int{0: 0, time.Minute: 3} {
		policy := DefaultPolicy()
		policy.Limited = true
		r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Current: 2, Ready: 2, Request: request("H100", 1)})
		cluster := &placement.Cluster{Nodes: nodes(1, "H100", 1)}
		cluster.Nodes[0].Free.Devices = 0
		r.Snapshot.Cluster, r.Trial = cluster, placement.NewTrial(cluster)
		v.Policy.Up.Window, m.Need.Want = window, need.WantMore
		found := allocate.Answer{Lacks: map[*limit.Model]allocate.Lack{m: {Short: 1}}, Ideal: map[*limit.Variant]int{}}
		allocate.RememberLacks(r, []*limit.Model{m}, found)
		assert.Equal(t, epoch, v.Next.Lacked)
		assert.Equal(t, want, found.Ideal[v])
	}
}
