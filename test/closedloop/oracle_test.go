package closedloop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// puppet is a decision that wants what a test says for each variant at each time.
func puppet(want func(at time.Duration, v *decision.Variant, round decision.Round) int) Decider {
	return func(s decision.Snapshot, p decision.Policy, m decision.Memory, round decision.Round) (decision.Plan, decision.Memory) {
		plan := decision.Plan{Time: s.Time, Round: round}
		for i := range s.Models {
			planned := decision.ModelPlan{Namespace: s.Models[i].Namespace, ID: s.Models[i].ID}
			for j := range s.Models[i].Variants {
				v := &s.Models[i].Variants[j]
				desired := want(s.Time.Sub(epoch), v, round)
				planned.Variants = append(planned.Variants, decision.VariantPlan{
					Key: decision.Key{Namespace: planned.Namespace, Name: v.Name}, Current: v.Current, Desired: &desired,
				})
			}
			plan.Models = append(plan.Models, planned)
		}
		return plan, m
	}
}

// always wants one number.
func always(n int) Decider {
	return puppet(func(time.Duration, *decision.Variant, decision.Round) int { return n })
}

// only wants one number of one variant and what there is of the others.
func only(name string, n int) Decider {
	return puppet(func(_ time.Duration, v *decision.Variant, _ decision.Round) int {
		if v.Name == name {
			return n
		}
		return v.Current
	})
}

// at wants one number from a time on, and before that what there is.
func at(when time.Duration, n int) Decider {
	return puppet(func(now time.Duration, v *decision.Variant, _ decision.Round) int {
		if now >= when {
			return n
		}
		return v.Current
	})
}

// four is a scenario whose load takes four replicas of ten that it has room for.
func four(change func(s *Scenario)) *Scenario {
	s := constant(0, variant("a", fast, 10, 4))
	s.Models[0].Load = []Point{{Rate: 3.5 * s.each(0)}}
	if change != nil {
		change(s)
	}
	return s
}

// refused are five minutes and more in which the scheduler refuses what is asked for.
func refused(limited bool) func(s *Scenario) {
	return func(s *Scenario) {
		s.Limited = limited
		s.Faults = []Fault{{Kind: FaultRefused, From: 2 * time.Minute, To: 9 * time.Minute}}
	}
}

// again gives a fifth replica back every two minutes and asks for it 20 s later, until some time.
func again(until time.Duration) Decider {
	const every, rest = 2 * time.Minute, 20 * time.Second
	return puppet(func(now time.Duration, _ *decision.Variant, _ decision.Round) int {
		if now >= every && now < until && now%every >= rest {
			return 5
		}
		return 4
	})
}

func TestTheOracleIsContentWithARightDecision(t *testing.T) {
	t.Parallel()
	assert.Empty(t, run(four(nil), always(4), "").story.failures)
	assert.Empty(t, run(four(nil), always(5), "").story.failures, "one replica more is allowed")
	assert.Empty(t, run(four(refused(false)), again(5*time.Minute), "").story.failures, "who grows may ask once more")
	assert.Empty(t, run(four(func(s *Scenario) { s.Models[0].Variants[0].Replicas = 0 }), always(4), "").story.failures)
}

func TestTheOracleSees(t *testing.T) {
	t.Parallel()
	first := func(s *Scenario) *Variant { return &s.Models[0].Variants[0] }
	fault := func(kind FaultKind, count int) func(s *Scenario) {
		return func(s *Scenario) {
			s.Faults = []Fault{{Kind: kind, From: 2 * time.Minute, To: 9 * time.Minute, Count: count}}
		}
	}
	for name, c := range map[string]struct {
		scenario *Scenario
		decide   Decider
		check    Check
	}{
		"an input that is altered": {four(nil), func(s decision.Snapshot, p decision.Policy, m decision.Memory, r decision.Round) (decision.Plan, decision.Memory) {
			p.Variants[decision.Key{Namespace: namespace, Name: s.Time.String()}] = decision.VariantPolicy{}
			return always(4)(s, p, m, r)
		}, CheckPure},
		"two answers to one question": {four(nil), fickle(), CheckPure},
		"no answer": {four(nil), func(s decision.Snapshot, _ decision.Policy, m decision.Memory, _ decision.Round) (decision.Plan, decision.Memory) {
			return decision.Plan{Time: s.Time}, m
		}, CheckWhole},
		"less than minReplicas": {four(func(s *Scenario) { first(s).Policy.Min = 5 }), always(4), CheckBounds},
		"more than maxReplicas": {four(func(s *Scenario) { first(s).Policy.Max = 4 }), always(5), CheckBounds},
		"a maximum that is lowered and never kept": {four(func(s *Scenario) {
			s.Faults = []Fault{{Kind: FaultMax, From: 2 * time.Minute, To: s.Calm, Count: 3}}
		}), always(4), CheckBounds},
		"a step above the default": {four(func(s *Scenario) { first(s).Replicas = 1 }), at(5*time.Minute, 42), CheckGrowth},
		"two steps before the first serves": {four(func(s *Scenario) { first(s).Replicas = 0 }), puppet(func(now time.Duration, _ *decision.Variant, _ decision.Round) int {
			return min(50, max(0, 25*int(now/(10*time.Second))-125))
		}), CheckGrowth},
		"a step above a policy": {four(func(s *Scenario) {
			first(s).Replicas, first(s).OwnUp = 2, true
			first(s).Policy.Up.Policies = []decision.RatePolicy{{Pods: 1, Period: time.Minute}}
		}), always(4), CheckGrowth},
		"growth that is disabled": {four(func(s *Scenario) {
			first(s).Replicas = 3
			first(s).Policy.Up.Select = decision.SelectDisabled
		}), always(4), CheckGrowth},
		"shrinking that is disabled": {four(func(s *Scenario) {
			first(s).Policy.Down.Select = decision.SelectDisabled
		}), at(5*time.Minute, 3), CheckShrink},
		"shrinking above a policy": {four(func(s *Scenario) {
			first(s).Replicas, first(s).OwnDown = 8, true
			first(s).Policy.Down.Policies = []decision.RatePolicy{{Pods: 1, Period: time.Minute}}
		}), at(5*time.Minute, 4), CheckShrink},
		"a fast round that lowers": {four(nil), puppet(func(_ time.Duration, v *decision.Variant, r decision.Round) int {
			if r == decision.RoundFast {
				return 3
			}
			return v.Current
		}), CheckRound},
		"lowering on no metrics":            {four(fault(FaultGone, 1)), at(5*time.Minute, 3), CheckUnknown},
		"lowering on old metrics":           {four(fault(FaultFrozen, 1)), at(5*time.Minute, 3), CheckUnknown},
		"lowering on half the metrics":      {four(fault(FaultHalf, 1)), at(5*time.Minute, 3), CheckUnknown},
		"lowering on metrics of the future": {four(fault(FaultFuture, 1)), at(5*time.Minute, 3), CheckUnknown},
		"a new leader that lowers":          {four(fault(FaultLeader, 1)), at(5*time.Minute, 3), CheckLeader},
		"victims that are too few":          {four(nil), oneVictim(at(5*time.Minute, 2)), CheckVictims},
		"more than fits": {four(func(s *Scenario) {
			s.Limited = true
			s.Nodes = []NodeGroup{{"H100", 1, 4}}
		}), at(5*time.Minute, 5), CheckLimited},
		"asking at once for what was refused": {four(refused(true)), again(5 * time.Minute), CheckRetry},
		"asking again and again for it":       {four(refused(false)), again(8 * time.Minute), CheckRetry},
		"giving back what waits for its turn": {four(func(s *Scenario) {
			first(s).Replicas, first(s).Ordered, first(s).Kubernetes = 2, true, true
			s.Faults = []Fault{{Kind: FaultGone, From: 2 * time.Minute, To: 9 * time.Minute, Count: 1}}
		}), puppet(func(now time.Duration, _ *decision.Variant, _ decision.Round) int {
			if now < 2*time.Minute || now >= 3*time.Minute {
				return 4
			}
			return 6
		}), CheckUnknown},
		"the room of what waits for its turn": {four(func(s *Scenario) {
			s.Limited = true
			s.Nodes = []NodeGroup{{"H100", 1, 4}}
			ordered := variant("b", fast, 10, 0)
			ordered.Ordered, ordered.Kubernetes = true, true
			first(s).Replicas = 1
			s.Models[0].Variants = append(s.Models[0].Variants, ordered)
		}), puppet(func(now time.Duration, v *decision.Variant, _ decision.Round) int {
			switch {
			case v.Ordered && now >= 2*time.Minute:
				return 3
			case !v.Ordered && now >= 2*time.Minute+30*time.Second:
				return 2
			}
			return v.Current
		}), CheckLimited},
		"a minimum that fits in limited mode": {four(func(s *Scenario) {
			s.Limited = true
			first(s).Policy.Min = 5
		}), always(4), CheckBounds},
		"a cycle": {four(nil), puppet(func(now time.Duration, _ *decision.Variant, _ decision.Round) int {
			return 4 + int(now/(7*time.Minute))%2
		}), CheckCycle},
		"too few":                  {four(nil), always(3), CheckShort},
		"too few within a promise": {four(func(s *Scenario) { s.hybrid(tight(s)) }), always(4), CheckShort},
		"none":                     {four(nil), always(0), CheckShort},
		"sleeping with a load":     {four(nil), always(0), CheckSleep},
		"a queue that stays": {four(func(s *Scenario) {
			s.Calm = time.Hour
			s.Faults = []Fault{{Kind: FaultHang, From: 2 * time.Minute, To: s.Calm, Count: 4}}
		}), always(4), CheckShort},
		"two too many": {four(nil), always(9), CheckSpare},
		"too many without a load for a tolerance": {four(func(s *Scenario) {
			s.Models[0].Load = []Point{{Rate: 0}}
			first(s).Policy.Down.Tolerance = 0.1
		}), always(10), CheckSpare},
		"too many without a load":   {four(func(s *Scenario) { s.Models[0].Load = []Point{{Rate: 0}} }), always(4), CheckSpare},
		"the dear one of two":       {withDear(), only("model-dear", 4), CheckDear},
		"a model that stays awake":  {sleeper(), always(1), CheckSleep},
		"a model that has to sleep": {four(func(s *Scenario) { s.Models[0].Load = []Point{{Rate: 0}} }), always(0), CheckSleep},
		"a priority that is upside": {upside(), always(4), CheckPriority},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := run(c.scenario, c.decide, "")
			assert.True(t, w.failed(c.check), w.tell())
		})
	}
}

// fickle gives another answer every time.
func fickle() Decider {
	asked := 0
	return func(s decision.Snapshot, p decision.Policy, m decision.Memory, r decision.Round) (decision.Plan, decision.Memory) {
		asked++
		return always(4+asked%2)(s, p, m, r)
	}
}

// oneVictim names one replica of those that go.
func oneVictim(decide Decider) Decider {
	return func(s decision.Snapshot, p decision.Policy, m decision.Memory, r decision.Round) (decision.Plan, decision.Memory) {
		plan, next := decide(s, p, m, r)
		v := &plan.Models[0].Variants[0]
		if *v.Desired < v.Current {
			v.Victims = []string{s.Models[0].Variants[0].Replicas[0].Name}
		}
		return plan, next
	}
}

// tight is a promise that a replica keeps only at half of its load.
func tight(s *Scenario) capacity.SLO {
	return capacity.SLO{ITL: fast.Steady(fast.Concurrency(s.Models[0].Shape)/2, s.Models[0].Shape).ITL}
}

// withDear has a cheap and a dear variant of one kind.
func withDear() *Scenario {
	s := four(nil)
	s.Models[0].Variants = []Variant{variant("cheap", fast, 4, 0), variant("dear", fast, 10, 4)}
	return s
}

// sleeper is a model that may sleep, and nothing is asked of it.
func sleeper() *Scenario {
	return four(func(s *Scenario) {
		s.Models[0].Load = []Point{{Rate: 0}}
		s.Models[0].Gateway, s.Models[0].Sleeps = true, 5*time.Minute
	})
}

// upside is a full cluster that a less important model holds.
func upside() *Scenario {
	return four(func(s *Scenario) {
		s.Limited = true
		s.Nodes = []NodeGroup{{"H100", 1, 4}}
		important := s.Models[0]
		important.Name, important.Priority, important.Gateway = "important", 1, true
		important.Variants = []Variant{variant("a", fast, 10, 0)}
		s.Models = append(s.Models, important)
	})
}

func TestTheDefaultGrowthIsWideAndTight(t *testing.T) {
	t.Parallel()
	growth := decision.DefaultPolicy().Growth
	most := 1 + max(growth.Pods, share(1, growth.Percent))
	assert.GreaterOrEqual(t, most, 20, "a step from one to twenty replicas is asked for at once")
	assert.LessOrEqual(t, most, 64, "no wrong estimate asks for hundreds")
}

// The world's own laws, on which the oracle stands.

func TestAReplicaCompletesWhatArrives(t *testing.T) {
	t.Parallel()
	c := newCurve(fast, &Model{Shape: chat}, 0)
	var q queue
	arrived := 0.0
	for range 600 {
		q.serve(c, 0.8*c.max*step.Seconds())
		arrived += 0.8 * c.max * step.Seconds()
	}
	assert.InDelta(t, arrived, q.completed+q.inFlight(), 1e-6)
	assert.InEpsilon(t, c.inService(0.8*c.max), q.running, 0.01)
	assert.Zero(t, q.waiting)
	for range 60 {
		q.serve(c, 2*c.max*step.Seconds())
	}
	assert.InEpsilon(t, c.limit, q.running, 1e-9)
	assert.InEpsilon(t, 300*c.max, q.waiting, 0.05, "what arrives above the most waits")

	// By turns, as from a router that sees who has less to do.
	long := fast
	long.PerPrefillToken, long.BatchLimit = 0.12, 54
	c = newCurve(long, &Model{Shape: capacity.TokenShape{Input: 2445, Output: 43}}, 0)
	q = queue{}
	for range 600 {
		for _, share := range []float64{1.34, 0.88} {
			q.serve(c, share*c.max*step.Seconds())
		}
	}
	assert.InEpsilon(t, 1200*step.Seconds()*c.max, q.completed, 0.01, "no more is completed than at the most")
}

func TestTheLeastLoadedReplicaIsNext(t *testing.T) {
	t.Parallel()
	m := &modelState{Model: &Model{Shape: chat}}
	quick, late := newCurve(fast, m.Model, 0), newCurve(slow, m.Model, 0)
	serving := []server{{&pod{}, quick, nil}, {&pod{}, late, nil}, {&pod{hung: true}, quick, nil}}
	load := 0.5 * (quick.max + late.max) * step.Seconds()
	for range 600 {
		m.spread(serving, load)
		for i, s := range serving[:2] {
			s.pod.serve(s.curve, m.shares[i])
		}
		serving[2].pod.waiting += m.shares[2]
	}
	share := func(s server) float64 { return s.pod.inFlight() / s.curve.limit }
	assert.InEpsilon(t, share(serving[0]), share(serving[1]), 0.02)
	assert.InEpsilon(t, share(serving[0]), share(serving[2]), 0.05, "the one that hangs gets no more than the others have")
	assert.InEpsilon(t, load, m.shares[0]+m.shares[1]+m.shares[2], 1e-6)
}

// A StatefulSet makes one pod after the other, each once those before it have served for a
// while, and takes them away in the other order.
func TestAStatefulSetTakesTurns(t *testing.T) {
	t.Parallel()
	s := four(func(s *Scenario) {
		v := &s.Models[0].Variants[0]
		v.Replicas, v.Ordered, v.Kubernetes, v.Settling, v.Grace = 1, true, true, 20*time.Second, 30*time.Second
	})
	w := newWorld(s, always(1))
	v := w.models[0].variants[0]
	// until counts the seconds that it takes until so many serve and none is on its way.
	until := func(want int) (seconds float64) {
		began := w.now
		for v.ready() != want || len(v.pods) != want || len(v.leaving) > 0 {
			w.advance()
			require.LessOrEqual(t, len(v.pods)-v.ready()+len(v.leaving), 1, "one at a time")
			require.Less(t, w.now-began, time.Hour)
			for i, p := range v.pods {
				require.Equal(t, fmt.Sprintf("model-a-%d", i), p.name)
			}
		}
		return (w.now - began).Seconds()
	}
	w.scale(v, 4, nil, false)
	assert.InDelta(t, 3*30+2*20, until(4), 3*step.Seconds(), "three start-ups, and between them two settle")
	w.scale(v, 1, []string{"model-a-0"}, false)
	assert.InDelta(t, 3*30, until(1), 3*step.Seconds(), "each is gone before the next goes")

	w.scale(v, 3, nil, false)
	w.scenario.Faults = []Fault{{Kind: FaultCrash, To: w.now + time.Hour}}
	for range 60 {
		w.advance()
	}
	assert.Len(t, v.pods, 2, "none comes behind one that fails")
	assert.Zero(t, v.waitTheirTurn(w))
	w.scenario.Faults = nil
	v.pods[1].crashes, v.pods[1].created = false, w.now
	assert.Equal(t, 1, v.waitTheirTurn(w))
	until(3)
}

// The cheapest mix is found by trying every one.
func TestTheCheapestMixIsTheCheapest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		s := drawScenario(seeded(seed))
		w := newWorld(s, always(1))
		for _, m := range w.models {
			if m.final() == 0 {
				continue
			}
			rates := m.saturations(leastOf)
			found, ok := w.cheapest(m, rates)
			best, possible := slowCheapest(w, m, rates)
			require.Equal(t, possible, ok, "seed %d", seed)
			if ok {
				require.InDelta(t, best, found.cost+found.start, 1e-9, "seed %d", seed)
			}
		}
	}
}

// slowCheapest tries every number up to ten of every variant.
func slowCheapest(w *world, m *modelState, rates []float64) (best float64, ok bool) {
	const most = 10
	s := &search{world: w, model: m, rates: rates}
	for i, v := range m.variants {
		if _, high := s.limits(v, rates[i]); high > most {
			found, ok := w.cheapest(m, rates)
			return found.cost + found.start, ok
		}
	}
	counts := make([]int, len(rates))
	for {
		left, cost, total := m.final(), 0.0, 0
		more := map[*variantState]int{}
		inside := true
		for i, v := range m.variants {
			low, high := s.limits(v, rates[i])
			inside = inside && low <= counts[i] && counts[i] <= high
			left -= float64(counts[i]) * rates[i]
			added := max(0, counts[i]-v.placed())
			cost += float64(v.Cost) * (float64(counts[i]) + float64(added)*v.Startup.Seconds()/w.policy.Horizon.Seconds())
			total += counts[i]
			if added > 0 {
				more[v] = added
			}
		}
		if inside && left <= 1e-9 && total > 0 && w.fits(more) && (!ok || cost < best) {
			best, ok = cost, true
		}
		i := slices.IndexFunc(counts, func(n int) bool { return n < most })
		if i < 0 {
			return best, ok
		}
		counts[i]++
		for j := range i {
			counts[j] = 0
		}
	}
}
