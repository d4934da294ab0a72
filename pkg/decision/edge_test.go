package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Where a variant serves no more when more may miss the promise, nobody knows how the misses
// grow with the rate.
func TestWhoseMissesGrow(t *testing.T) {
	for name, c := range map[string]struct {
		sizing Sizing
		rate   rate.Rate
		found  bool
	}{
		"more may miss it at a higher rate": {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}, rate.Rate{Promised: 4, Bound: true}, true},
		"at the same rate":                  {Sizing{Rate: 4, PeakRate: 4, Share: 0.99, PeakShare: 0.9}, rate.Rate{Promised: 4, Bound: true}, false},
		"no more may miss it":               {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.99}, rate.Rate{Promised: 4, Bound: true}, false},
		"the promise does not decide":       {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}, rate.Rate{Promised: 4}, false},
		"it cannot keep the promise":        {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}, rate.Rate{Bound: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1})
			v.Rate, v.Next.Sizing = c.rate, c.sizing
			assert.Equal(t, c.found, m.CheapestSized() != nil)
		})
	}
}

// The triggers fire by what is seen: the caches or batches, the queues, or neither.
func TestTheTriggersFireByWhatIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		load  fleet.Load
		fires bool
		says  string
	}{
		"nothing is seen":                            {fleet.Load{}, false, "no load metrics of the replicas"},
		"all that are seen are saturated":            {fleet.Load{Saturated: 1}, true, "all serving replicas are saturated"},
		"caches alone, with room":                    {fleet.Load{Saturated: 1, SawSaturation: 1, Saturation: 0.5}, false, "replicas are 50 % full, 0.0 requests wait per replica, beside 1 that is saturated"},
		"caches alone, at the trigger":               {fleet.Load{SawSaturation: 1, Saturation: 0.75}, true, "replicas are 75 % full, above 70 %"},
		"queues alone, with room":                    {fleet.Load{Saturated: 1, SawQueue: 1, Queue: 1}, false, "replicas are 0 % full, 1.0 requests wait per replica, beside 1 that is saturated"},
		"queues alone, at the trigger":               {fleet.Load{SawQueue: 1, Queue: 3}, true, "3.0 requests wait per replica, more than 2.0"},
		"queues alone, as many as the trigger spare": {fleet.Load{SawQueue: 1, Queue: 2}, false, "replicas are 0 % full, 2.0 requests wait per replica"},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 2, Current: 2})
			m.Load = c.load
			fires, says := m.Trigger(0)
			assert.Equal(t, c.fires, fires)
			assert.Equal(t, c.says, textOf(says))
			// What is not seen has no spare to fall short.
			m.Saturation.KVSpareTrigger, m.Saturation.QueueSpareTrigger = 2, 20
			fires, _ = m.Trigger(0)
			assert.Equal(t, c.load.SawSaturation+c.load.SawQueue+c.load.Saturated > 0, fires)
		})
	}
}

// Of what ended as long ago as the span, the last shows that the span is covered.
func TestHistoryGoesBackAsFarAsItsSpan(t *testing.T) {
	ended := func(ago time.Duration) HistoryEntry {
		return HistoryEntry{From: epoch.Add(-ago), Until: epoch.Add(-ago), Replicas: int(ago / time.Second)}
	}
	history := []HistoryEntry{ended(time.Hour + time.Second), ended(time.Hour), ended(time.Hour - time.Second)}
	got := contract.Record(history, ended(0), time.Hour)
	assert.Equal(t, []HistoryEntry{history[1], history[2], ended(0)}, got)
}

// A number that is just as far off as it may be is near.
func TestNear(t *testing.T) {
	assert.True(t, signal.Near(105, 100, 0.05))
	assert.True(t, signal.Near(95, 100, 0.05))
	assert.False(t, signal.Near(105.1, 100, 0.05))
	assert.False(t, signal.Near(94.9, 100, 0.05))
}

// A replica that completed nothing shows no time in service.
func TestNothingIsLearnedOfWhatWasNotServed(t *testing.T) {
	w := newWorld(10)
	for served, learns := range map[float64]bool{0: false, 2: true} {
		s := w.snapshot()
		v := &s.Models[0].Variants[0]
		v.Profile = serving.Profile{}
		p := &v.Replicas[0]
		p.Running, p.Served, p.InService = w.sample(3), w.sample(served), w.sample(1.5)
		_, memory := Decide(s, demoPolicy(), Memory{}, RoundFull)
		assert.Equal(t, learns, memory.Variants[Key{Namespace: "ns", Name: v.Name}].Curve.Known())
	}
}

// A rolling update none of whose pods comes up waits for its user, whatever keeps them.
func TestWhichRollingUpdateMovesOn(t *testing.T) {
	for name, c := range map[string]struct {
		count map[fleet.State]int
		moves bool
	}{
		"none starts":                           {nil, true},
		"one starts":                            {map[fleet.State]int{fleet.StatePending: 1}, true},
		"one starts beside one that fails":      {map[fleet.State]int{fleet.StatePending: 1, fleet.StateCrashLooping: 1}, true},
		"one fails":                             {map[fleet.State]int{fleet.StateCrashLooping: 1}, false},
		"one is overdue":                        {map[fleet.State]int{fleet.StateOverdue: 1}, false},
		"one finds no node":                     {map[fleet.State]int{fleet.StateUnschedulable: 1}, false},
		"one fails and another is overdue":      {map[fleet.State]int{fleet.StateCrashLooping: 1, fleet.StateOverdue: 1}, false},
		"one finds no node and another one has": {map[fleet.State]int{fleet.StateUnschedulable: 1, fleet.StateCrashLooping: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := variantOf(func(it *limit.Variant) { it.In = &Variant{Rolling: true} })
			for s, n := range c.count {
				v.Fleet.Count[s] = n
			}
			assert.Equal(t, c.moves, v.Rolling())
			v.In.Rolling = false
			assert.False(t, v.Rolling())
		})
	}
}

// A start was given up once the oldest that starts is younger than the oldest before; one
// that is looked at twice at one instant was not.
func TestWhenAStartWasGivenUp(t *testing.T) {
	const before = 7 * time.Minute
	for name, c := range map[string]struct {
		now, given time.Duration
	}{
		"it goes on":              {now: before + time.Minute},
		"it is looked at again":   {now: before},
		"another one has begun":   {now: time.Minute, given: before},
		"none starts any more":    {given: before},
		"another one just begins": {now: before - time.Second, given: before},
	} {
		t.Run(name, func(t *testing.T) {
			in := &Variant{Name: "v", Current: 1}
			if c.now > 0 {
				in.Starting = []Starting{{Since: epoch.Add(-c.now), Placed: true}}
			}
			r, _, v := bare(DefaultPolicy(), Memory{}, in)
			v.Old.StartupWait = StartupWait{Now: before}
			deadline, unseen := within(r, v).StartupDeadline(v.In.Startup)
			assert.Equal(t, StartupWait{Now: c.now, Before: c.given}, unseen)
			assert.Equal(t, max(r.Policy.StartupDeadline, 2*c.given), deadline)
		})
	}
}

// A misfit goes as long as those that stay serve as much more than is missing as a scale-down
// leaves everywhere; just so much suffices.
func TestAsManyMisfitsStayAsWhatIsMissingNeeds(t *testing.T) {
	for missing, stay := range map[float64]int{0.5: 1, 1: 1, 1.01: 2} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
		v.Rate = rate.Rate{Trigger: need.LowerHeadroom, Max: need.LowerHeadroom, Bound: true}
		m.Demand.IsCertain = true
		allocate.RelieveMisfits(r, within(r, m), capacity.Rate(missing))
		assert.Equal(t, stay, v.Target, "%v req/s are missing", missing)
		assert.Len(t, v.Plan.Steps, 2-stay)
	}
}

// A change that is just a window ago still counts, and one at the instant at which a backoff ended
// does not.
func TestWhichChangesAreAFight(t *testing.T) {
	const window = 5 * time.Minute
	for name, c := range map[string]struct {
		ago   time.Duration
		until time.Duration
		fight bool
	}{
		"within the window":            {ago: window - time.Second, until: time.Hour, fight: true},
		"just a window ago":            {ago: window, until: time.Hour, fight: true},
		"longer ago":                   {ago: window + time.Second, until: time.Hour},
		"as the last backoff ended":    {ago: time.Minute, until: time.Minute},
		"after the last backoff ended": {ago: time.Minute, until: time.Minute + time.Second, fight: true},
	} {
		t.Run(name, func(t *testing.T) {
			past := Conflict{Until: epoch.Add(-c.until), Changes: []Change{{Time: epoch.Add(-c.ago), Writer: "a", Replicas: 3}}}
			assert.Equal(t, c.fight, fleet.Fights(past, Change{Time: epoch, Writer: "b", Replicas: 4}, window))
		})
	}
}

// Of variants that serve for the same the first is asked how misses grow.
func TestTheFirstOfEqualVariantsIsAsked(t *testing.T) {
	_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1})
	v.Rate, v.Price, v.Next.Sizing = rate.Rate{Promised: 4, Bound: true}, 8, Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}
	again := *v
	m.Variants = append(m.Variants, &again)
	m.Stack()
	assert.Same(t, &v.Variant, m.CheapestSized())
	again.Price = 7
	assert.Same(t, &again.Variant, m.CheapestSized())
}

// Sums of rates are exact to a part in a billion: what is missing of that is nothing.
func TestWhatIsMissing(t *testing.T) {
	for missing, want := range map[capacity.Rate]capacity.Rate{-1: 0, 0: 0, 5e-8: 0, 0.5: 0.5} {
		got := (modelOf(nil)).Beyond(&need.Need{Required: 100, Supply: 100 - missing})
		assert.InDelta(t, float64(want), float64(got), 1e-12, "%v of 100", missing)
	}
}

// Where any replica serves what must stay, the number of it is told from there on.
func TestWhatBindsAModelThatIsHardlyAsked(t *testing.T) {
	for least, want := range map[capacity.Rate]string{
		rate.OneMore:     "demand: a scale-down must leave 0.001 req/s of capacity; a replica serves 2.50",
		rate.OneMore / 2: "requirement: nothing is asked",
	} {
		_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1})
		m.Need = need.Need{Want: need.WantLess, Least: least, Detail: Words("nothing is asked")}
		assert.Equal(t, want, textOf(bindsOf(m, v)))
	}
}
