package decision

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/demand"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/settle"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

func TestOnlyAFullRoundLowers(t *testing.T) {
	for _, kind := range []Round{RoundFast, RoundEvent} {
		w, memory := newWorld(1), Memory{}
		w.setReplicas(0, 5)
		w.now = w.now.Add(time.Hour)
		for range 20 {
			var plan Plan
			plan, memory = Decide(w.snapshot(), demoPolicy(), memory, kind)
			require.False(t, w.apply(plan))
			w.now = w.now.Add(10 * time.Second)
		}
		plan, _ := Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
		assert.True(t, w.apply(plan), "what the %s rounds saw covers the window", kind)
	}
}

func TestSomebodyElsesChangeIsTheNewStartingPoint(t *testing.T) {
	w, memory := newWorld(1), Memory{}
	policy := demoPolicy()
	var plan Plan
	round := func() {
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
		w.apply(plan)
		w.now = w.now.Add(15 * time.Second)
	}
	for range 4 {
		round()
	}
	w.setReplicas(0, 4)
	round()
	assert.Equal(t, 4, w.variants[0].replicas)
	assert.Contains(t, reasons(plan.Models[0].Variants[0].Facts), ReasonReplicasChanged)
	round()
	assert.Equal(t, 4, w.variants[0].replicas, "held for one window")
	for range 4 {
		round()
		assert.NotContains(t, reasons(plan.Models[0].Variants[0].Facts), ReasonReplicasChanged, "its own changes are its own")
	}
	assert.Equal(t, 1, w.variants[0].replicas)
}

func TestBehavior(t *testing.T) {
	pods := func(n int) []RatePolicy { return []RatePolicy{{Pods: n, Period: time.Minute}} }
	percent := func(n int) []RatePolicy { return []RatePolicy{{Percent: n, Period: time.Minute}} }
	ago := func(seconds, replicas, wanted int) HistoryEntry {
		at := epoch.Add(-time.Duration(seconds) * time.Second)
		return HistoryEntry{From: at, Until: at, Replicas: replicas, Wanted: wanted, Needed: wanted, Decided: true}
	}
	past := func(all ...HistoryEntry) []HistoryEntry { return all }
	for name, tc := range map[string]struct {
		up, down        Behavior
		current, wanted int
		past            []HistoryEntry
		want            int
		reason          Reason
	}{
		"free to go up":                                 {current: 2, wanted: 9, want: 9},
		"free to go down":                               {current: 9, wanted: 2, want: 2},
		"pods per minute":                               {up: Behavior{Policies: pods(3)}, current: 2, wanted: 9, want: 5, reason: ReasonRateLimited},
		"pods already added count":                      {up: Behavior{Policies: pods(3)}, current: 4, wanted: 9, past: past(ago(30, 2, 9)), want: 5, reason: ReasonRateLimited},
		"changes older than the period":                 {up: Behavior{Policies: pods(3)}, current: 4, wanted: 9, past: past(ago(180, 2, 9), ago(120, 4, 9)), want: 7, reason: ReasonRateLimited},
		"a change counts from its write, not its sight": {up: Behavior{Policies: pods(3)}, current: 4, wanted: 9, past: past(ago(60, 2, 9), ago(50, 4, 9)), want: 7, reason: ReasonRateLimited},
		"what was taken before the period is gone":      {up: Behavior{Policies: pods(3)}, current: 2, wanted: 9, past: past(ago(70, 2, 9), ago(50, 1, 9)), want: 4, reason: ReasonRateLimited},
		"removed ones count back, as for the HPA":       {up: Behavior{Policies: pods(4)}, current: 10, wanted: 30, past: past(ago(30, 16, 30)), want: 20, reason: ReasonRateLimited},
		"added ones count back on the way down":         {down: Behavior{Policies: percent(50)}, current: 10, wanted: 1, past: past(ago(30, 4, 1)), want: 2, reason: ReasonRateLimited},
		"a share of nothing lets one begin":             {up: Behavior{Policies: percent(50)}, current: 0, wanted: 5, want: 1, reason: ReasonRateLimited},
		"percent rounds up":                             {up: Behavior{Policies: percent(50)}, current: 3, wanted: 9, want: 5, reason: ReasonRateLimited},
		"down by percent":                               {down: Behavior{Policies: percent(50)}, current: 8, wanted: 1, want: 4, reason: ReasonRateLimited},
		"down by pods":                                  {down: Behavior{Policies: pods(1)}, current: 8, wanted: 1, want: 7, reason: ReasonRateLimited},
		"the larger change by default":                  {up: Behavior{Policies: append(pods(1), percent(100)...)}, current: 4, wanted: 20, want: 8, reason: ReasonRateLimited},
		"the smaller change when asked":                 {up: Behavior{Select: SelectMin, Policies: append(pods(1), percent(100)...)}, current: 4, wanted: 20, want: 5, reason: ReasonRateLimited},
		"the larger way down by default":                {down: Behavior{Policies: append(pods(1), percent(50)...)}, current: 8, wanted: 1, want: 4, reason: ReasonRateLimited},
		"the smaller way down when asked":               {down: Behavior{Select: SelectMin, Policies: append(pods(1), percent(50)...)}, current: 8, wanted: 1, want: 7, reason: ReasonRateLimited},
		"up is disabled":                                {up: Behavior{Select: SelectDisabled}, current: 4, wanted: 20, want: 4, reason: ReasonRateLimited},
		"down is disabled":                              {down: Behavior{Select: SelectDisabled}, current: 4, wanted: 1, want: 4, reason: ReasonRateLimited},
		"within the tolerance":                          {up: Behavior{Tolerance: 0.1}, current: 20, wanted: 22, want: 20, reason: ReasonWithinTolerance},
		"beyond the tolerance":                          {up: Behavior{Tolerance: 0.1}, current: 20, wanted: 23, want: 23},
		"an uncovered window holds":                     {down: Behavior{Window: time.Minute}, current: 5, wanted: 1, want: 5, reason: ReasonStabilized},
		"the highest of the window holds":               {down: Behavior{Window: time.Minute}, current: 5, wanted: 1, past: past(ago(70, 5, 9), ago(30, 5, 3)), want: 3, reason: ReasonStabilized},
		"never up while stabilising down":               {down: Behavior{Window: time.Minute}, current: 5, wanted: 1, past: past(ago(70, 5, 1), ago(30, 5, 8)), want: 5, reason: ReasonStabilized},
		"the lowest of the window on the way up":        {up: Behavior{Window: time.Minute}, current: 2, wanted: 9, past: past(ago(30, 2, 4)), want: 4, reason: ReasonStabilized},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key{Namespace: "ns", Name: "v"}
			policy := DefaultPolicy()
			policy.Growth = Growth{}
			r := &limit.Round{Round: signal.Round{Snapshot: &Snapshot{Time: epoch}, Policy: &policy, Kind: RoundFull}}
			v := variantOf(func(it *limit.Variant) {
				it.In, it.Key, it.Managed, it.Target = &Variant{Name: "v", Current: tc.current}, key, true, tc.wanted
			})
			v.Old.History = tc.past
			v.Policy = VariantPolicy{Max: -1, Up: tc.up, Down: tc.down}
			if tc.wanted > tc.current {
				most, why := r.MayReach(within(r, v))
				assert.Equal(t, tc.want, r.HeldUp(within(r, v), min(tc.wanted, most), min(tc.wanted, most)), "what may be bought")
				assert.Equal(t, tc.reason == ReasonRateLimited, tc.wanted > most)
				assert.Equal(t, tc.reason == ReasonRateLimited, textOf(why) != "")
				return
			}
			settle.ApplyBehavior(r, within(r, modelOf(func(it *limit.Model) { it.Variants = []*limit.Variant{v} })), nil, nil, false)
			assert.Equal(t, tc.want, v.Target)
			assert.Equal(t, tc.reason, v.Plan.Reason)
		})
	}
}

// While replicas find no node, policies allow no more beyond those that serve than the growth limit.
func TestGrowthOfReplicasThatFindNoNode(t *testing.T) {
	policies := []RatePolicy{{Pods: 100, Period: time.Minute}}
	for name, tc := range map[string]struct {
		up              Behavior
		ready, unplaced int
		growth          Growth
		want            int
		why             string
	}{
		"all find one":           {up: Behavior{Policies: policies}, ready: 2, growth: Growth{Pods: 4, Percent: 300}, want: 110, why: "scaleUp.policies allow 110 now"},
		"one finds none":         {up: Behavior{Policies: policies}, ready: 2, unplaced: 1, growth: Growth{Pods: 4, Percent: 300}, want: 10, why: "the growth limit allows 10 while 2 serve"},
		"many serve":             {up: Behavior{Policies: policies}, ready: 9, unplaced: 1, growth: Growth{Pods: 4, Percent: 300}, want: 36, why: "the growth limit allows 36 while 9 serve"},
		"policies allow less":    {up: Behavior{Policies: []RatePolicy{{Pods: 2, Period: time.Minute}}}, ready: 9, unplaced: 1, growth: Growth{Pods: 4, Percent: 300}, want: 12, why: "scaleUp.policies allow 12 now"},
		"there is no such limit": {up: Behavior{Policies: policies}, ready: 2, unplaced: 1, want: 110, why: "scaleUp.policies allow 110 now"},
		"without policies":       {ready: 9, unplaced: 1, growth: Growth{Pods: 4, Percent: 300}, want: 36, why: "the growth limit allows 36 while 9 serve"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: tc.ready, Current: 10})
			r.Policy.Growth, v.Policy.Up, v.Target = tc.growth, tc.up, 200
			v.Fleet.Count[fleet.StateUnschedulable] = tc.unplaced
			most, why := r.MayReach(within(r, v))
			assert.Equal(t, tc.want, most)
			assert.Equal(t, tc.why, textOf(why))
		})
	}
}

func TestBehaviorSlowsNoBound(t *testing.T) {
	percent := []RatePolicy{{Percent: 50, Period: time.Minute}}
	for name, tc := range map[string]struct {
		policy          VariantPolicy
		current, wanted int
		want            int
	}{
		"a minimum passes the policies":             {VariantPolicy{Min: 4, Max: -1, Up: Behavior{Policies: percent}}, 0, 2, 4},
		"a minimum passes a disabled direction":     {VariantPolicy{Min: 2, Max: -1, Up: Behavior{Select: SelectDisabled}}, 0, 0, 2},
		"a maximum passes an uncovered window":      {VariantPolicy{Max: 2, Down: Behavior{Window: time.Hour}}, 5, 4, 2},
		"a maximum passes a disabled direction too": {VariantPolicy{Max: 2, Down: Behavior{Select: SelectDisabled}}, 5, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			policy := DefaultPolicy()
			r := &limit.Round{Round: signal.Round{Snapshot: &Snapshot{Time: epoch}, Policy: &policy, Kind: RoundFull}}
			v := variantOf(func(it *limit.Variant) {
				it.In, it.Managed, it.Target, it.Policy = &Variant{Name: "v", Current: tc.current, Request: request("H100", 1)}, true, tc.wanted, tc.policy
			})
			m := modelOf(func(it *limit.Model) { it.Variants = []*limit.Variant{v} })
			r.Minimum(within(r, v))
			r.Bounds(within(r, m))
			settle.ApplyBehavior(r, within(r, m), nil, nil, false)
			assert.Equal(t, tc.want, v.Target)
		})
	}
}

// What scaleUp holds back is not asked for beyond what fits either, where the cluster grows.
func TestScaleUpHoldsInAClusterThatGrows(t *testing.T) {
	for name, c := range map[string]struct {
		up     Behavior
		first  int
		reason Reason
	}{
		"a window":    {Behavior{Window: time.Minute}, 2, ReasonStabilized},
		"a tolerance": {Behavior{Tolerance: 1}, 2, ReasonWithinTolerance},
		"neither":     {Behavior{}, 3, ReasonSaturated},
	} {
		t.Run(name, func(t *testing.T) {
			policy := demoPolicy()
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Up = c.up
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a-h100"}: own}
			w, memory := newWorld(5), Memory{}
			w.variants = w.variants[:1]
			w.setReplicas(0, 2)
			w.now = w.now.Add(time.Hour)
			w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", 2)}
			var plan Plan
			round := func() int {
				plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
				w.now = w.now.Add(15 * time.Second)
				return *plan.Models[0].Variants[0].Desired
			}
			round()
			w.arrival = 60
			assert.Equal(t, c.first, round())
			assert.Equal(t, c.reason, plan.Models[0].Variants[0].Reason)
			for range 6 {
				round()
			}
			assert.Equal(t, c.up.Tolerance == 0, *plan.Models[0].Variants[0].Desired > 2, "the window is over")
		})
	}
}

// What was wanted for a forecast stays for one start-up, and for as long as that is taken to
// be where none was seen; what was needed stays for the window.
func TestAForecastIsGivenOneStartup(t *testing.T) {
	for name, c := range map[string]struct {
		startup, ago, window time.Duration
		want                 int
	}{
		"within its start-up":              {30 * time.Second, 20 * time.Second, 5 * time.Minute, 6},
		"a start-up later":                 {30 * time.Second, 31 * time.Second, 5 * time.Minute, 4},
		"none was seen":                    {0, allocate.DefaultLead, 5 * time.Minute, 6},
		"none was seen for as long":        {0, allocate.DefaultLead + 1, 5 * time.Minute, 4},
		"the start-up exceeds the window":  {time.Hour, time.Minute, time.Minute, 6},
		"and so does the time since":       {time.Hour, time.Minute + 1, time.Minute, 2},
		"beyond the window nothing counts": {30 * time.Second, 5 * time.Minute, 5 * time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 6, Ready: 2, Startup: c.startup})
			m.Lead, v.Target = allocate.LeadOf(r, m.Variants), 2
			past := []HistoryEntry{{Until: epoch.Add(-c.ago), Wanted: 6, Needed: 4}}
			v.Policy.Down.Window = c.window
			highest, _, _ := settle.HighestNeeded(r, within(r, m), within(r, v), past)
			assert.Equal(t, c.want, highest)
		})
	}
}

// The window that nobody chose holds what a load needed that may jump back to there, and where
// nothing says whether it does. Else what the forecast asked for is given its start-up.
func TestTheDefaultWindowIsForLoadsThatJump(t *testing.T) {
	calm := forecast.Lately{Seconds: 1200, Mean: 10}
	jumps := func(n float64) forecast.Lately { return forecast.Lately{Seconds: 1200, Mean: 10, Jumps: n} }
	// So many let it return within the five minutes with one in ten.
	enough := -math.Log(0.9) / 300 * 2400
	for name, c := range map[string]struct {
		lately         forecast.Lately
		chose          time.Duration
		unknown, plain bool
		want           int
		held           time.Duration
	}{
		"a calm load":               {lately: calm, want: 2, held: time.Minute},
		"a load that jumps":         {lately: jumps(2), want: 4, held: 5 * time.Minute},
		"hardly":                    {lately: jumps(enough * 0.99), want: 2, held: time.Minute},
		"just enough":               {lately: jumps(enough * 1.01), want: 4, held: 5 * time.Minute},
		"the user chose the window": {lately: calm, chose: 3 * time.Minute, want: 4, held: 3 * time.Minute},
		"and a short one":           {lately: jumps(2), chose: 30 * time.Second, want: 2, held: 30 * time.Second},
		"the demand is unknown":     {lately: calm, unknown: true, want: 4, held: 5 * time.Minute},
		"saturation alone sizes":    {lately: calm, plain: true, want: 4, held: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 6, Ready: 6, Startup: time.Minute})
			m.Sized, v.Target = !c.plain, 2
			m.Demand = demand.Demand{Known: !c.unknown, Risk: 0.9, Forecast: &forecast.Belief{Lately: c.lately}}
			v.Policy = DefaultVariantPolicy()
			if c.chose != 0 {
				v.Policy.Down = Behavior{Window: c.chose}
			}
			highest, started, held := settle.HighestNeeded(r, within(r, m), within(r, v), []HistoryEntry{{Until: epoch.Add(-2 * time.Minute), Wanted: 6, Needed: 4}})
			assert.Equal(t, c.want, highest)
			assert.Equal(t, c.held, max(started, held))
		})
	}
}

// Of what is wanted, the present load needs its part; the rest is headroom and forecast.
func TestThePresentLoadNeedsItsPartOfWhatIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		now, queued, each capacity.Rate
		plain, unknown    bool
		evidence          signal.Evidence
		want              int
	}{
		"half of it":                {now: 5, each: 2.5, want: 2},
		"a little more":             {now: 5.1, each: 2.5, want: 3},
		"what waits is needed, too": {now: 5, queued: 2.5, each: 2.5, want: 3},
		"more than there is":        {now: 50, each: 2.5, want: 4},
		"nothing arrives":           {each: 2.5},
		"they serve nothing":        {now: 5, want: 4},
		"nor does anything arrive":  {want: 4},
		"saturation alone sizes":    {now: 5, each: 2.5, plain: true, want: 4},
		"the demand is unknown":     {now: 5, each: 2.5, unknown: true, want: 4},
		"a part of it is not heard": {now: 5, each: 2.5, evidence: signal.EvidencePartial, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 4, Current: 4})
			v.Rate.Trigger, v.Wanted, m.Demand.Now, m.Need.Queued = c.each, 4, c.now, c.queued
			m.Sized, m.Demand.Known, m.Evidence = !c.plain, !c.unknown, c.evidence
			assert.Equal(t, c.want, settle.NeededOf(m, v))
		})
	}
}

// Where one replica more of a purchase would leave it within the tolerance, that is why there
// is none.
func TestOneMoreWithinTheToleranceIsTheObstacle(t *testing.T) {
	r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 10, Current: 10, Request: request("H100", 1)})
	v.Policy.Up.Tolerance = 0.2
	for target, want := range map[int]Reason{10: ReasonWithinTolerance, 11: ReasonWithinTolerance, 12: ReasonNoSlots} {
		v.Target = target
		reason, _ := r.Obstacle(within(r, v), 20)
		assert.Equal(t, want, reason, "of ten the %dth", target+1)
	}
}

// Of a purchase one part fits and the rest waits for nodes. Together they are beyond the
// tolerance, also where the rest alone is not.
func TestTheToleranceIsOfTheWholePurchase(t *testing.T) {
	bought := func(arrival, tolerance float64) int {
		w := newWorld(arrival)
		w.variants = w.variants[:1]
		w.setReplicas(0, 10)
		w.now = w.now.Add(time.Hour)
		w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", 2)}
		policy := demoPolicy()
		own := DefaultVariantPolicy()
		own.Up.Tolerance = tolerance
		policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a-h100"}: own}
		plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
		return *plan.Models[0].Variants[0].Desired - 10
	}
	each := newWorld(0).eachServes(0)
	for more := 1.5; more < 6; more++ {
		want := bought((10+more)*each, 0)
		assert.Greater(t, want, 1)
		assert.Equal(t, want, bought((10+more)*each, 0.1), "%v", more)
	}
}

// Rounds that were missing, as of a manager that hung, are no time in which nothing more was
// wanted: the window begins anew.
func TestMissingRoundsCoverNoWindow(t *testing.T) {
	policy := DefaultPolicy()
	for gap, missed := range map[time.Duration]bool{policy.Freshness.Ageing - 1: false, policy.Freshness.Ageing: true} {
		r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Current: 8, Ready: 8})
		v.Old.History = []HistoryEntry{{From: epoch.Add(-2 * time.Hour), Until: epoch.Add(-gap), Replicas: 8, Wanted: 2, Needed: 2, Decided: true}}
		within(r, v).Admit()
		v.Target, v.Wanted = 2, 2
		settle.SlowDown(r, within(r, m), within(r, v), 8)
		assert.Equal(t, missed, v.Target == 8, "%v", v.Plan.Steps)
		assert.Equal(t, missed, settle.HistoryOf(r, within(r, v))[0].From.Equal(epoch))
	}
}

// What one variant keeps for its window serves none of the load that the others are remembered
// to have been needed for, whatever their names are.
func TestWhatIsNeededDependsOnNoName(t *testing.T) {
	for _, first := range []bool{true, false} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "a", Ready: 6, Current: 6})
		other := *v
		in := *v.In
		in.Name, other.In, other.Key = "b", &in, Key{Namespace: "ns", Name: "b"}
		other.Old, other.Next = &VariantMemory{}, &VariantMemory{}
		m.Variants = append(m.Variants, &other)
		m.Stack()
		m.Sized, m.Demand.Known, m.Demand.Now, m.Demand.Forecast = true, true, 9, &forecast.Belief{}
		held := m.Variants[0]
		if !first {
			held = m.Variants[1]
		}
		for _, w := range m.Variants {
			w.Target = 2
			past := HistoryEntry{From: epoch.Add(-time.Hour), Until: epoch.Add(-time.Second), Replicas: 6, Wanted: 2, Needed: 2, Desired: 6, Decided: true}
			if w == held {
				past.Wanted, past.Needed = 6, 6
			}
			w.Old.History = []HistoryEntry{past}
		}
		settle.ApplyBehavior(r, within(r, m), nil, nil, false)
		assert.Equal(t, []int{2, 2}, []int{m.Variants[0].Needed, m.Variants[1].Needed})
		assert.Equal(t, 6, held.Target, "it is held")
	}
}

// A window says that it keeps replicas only where it does.
func TestWhatKeepsReplicasIsNamed(t *testing.T) {
	for want, chosen := range map[string]bool{"one start-up (1m0s) keeps 5": false, "stabilization window (5m0s) keeps 5": true} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 6, Ready: 6, Startup: time.Minute})
		v.Policy, v.Target, m.Sized = DefaultVariantPolicy(), 2, true
		m.Demand = demand.Demand{Known: true, Risk: 0.9, Forecast: &forecast.Belief{}}
		if chosen {
			v.Policy.Down = Behavior{Window: 5 * time.Minute}
		}
		v.Old.History = []HistoryEntry{{From: epoch.Add(-10 * time.Minute), Until: epoch.Add(-30 * time.Second), Replicas: 6, Wanted: 5, Needed: 5, Decided: true}}
		settle.SlowDown(r, within(r, m), within(r, v), 6)
		assert.Equal(t, 5, v.Target)
		assert.Equal(t, want, textOf(v.Plan.Message))
	}
}
