package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Where a variant serves no more when more may miss the promise, nobody knows how the misses
// grow with the rate.
func TestWhoseMissesGrow(t *testing.T) {
	for name, c := range map[string]struct {
		sizing Sizing
		rate   rate
		found  bool
	}{
		"more may miss it at a higher rate": {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}, rate{promised: 4, bound: true}, true},
		"at the same rate":                  {Sizing{Rate: 4, PeakRate: 4, Share: 0.99, PeakShare: 0.9}, rate{promised: 4, bound: true}, false},
		"no more may miss it":               {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.99}, rate{promised: 4, bound: true}, false},
		"the promise does not decide":       {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}, rate{promised: 4}, false},
		"it cannot keep the promise":        {Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}, rate{bound: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1})
			v.rate, v.next.Sizing = c.rate, c.sizing
			assert.Equal(t, c.found, m.cheapestSized() != nil)
		})
	}
}

// The triggers fire by what is seen: the caches or batches, the queues, or neither.
func TestTheTriggersFireByWhatIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		load  load
		fires bool
		says  string
	}{
		"nothing is seen":                            {load{}, false, "no load metrics of the replicas"},
		"all that are seen are saturated":            {load{saturated: 1}, true, "all serving replicas are saturated"},
		"caches alone, with room":                    {load{saturated: 1, sawSaturation: 1, saturation: 0.5}, false, "replicas are 50 % full, 0.0 requests wait per replica, beside 1 that is saturated"},
		"caches alone, at the trigger":               {load{sawSaturation: 1, saturation: 0.75}, true, "replicas are 75 % full, above 70 %"},
		"queues alone, with room":                    {load{saturated: 1, sawQueue: 1, queue: 1}, false, "replicas are 0 % full, 1.0 requests wait per replica, beside 1 that is saturated"},
		"queues alone, at the trigger":               {load{sawQueue: 1, queue: 3}, true, "3.0 requests wait per replica, more than 2.0"},
		"queues alone, as many as the trigger spare": {load{sawQueue: 1, queue: 2}, false, "replicas are 0 % full, 2.0 requests wait per replica"},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 2, Current: 2})
			m.load = c.load
			fires, says := m.trigger(0)
			assert.Equal(t, c.fires, fires)
			assert.Equal(t, c.says, says)
			// What is not seen has no spare to fall short.
			m.saturation.KVSpareTrigger, m.saturation.QueueSpareTrigger = 2, 20
			fires, _ = m.trigger(0)
			assert.Equal(t, c.load.sawSaturation+c.load.sawQueue+c.load.saturated > 0, fires)
		})
	}
}

// Of what ended as long ago as the span, the last shows that the span is covered.
func TestHistoryGoesBackAsFarAsItsSpan(t *testing.T) {
	ended := func(ago time.Duration) Stretch {
		return Stretch{From: epoch.Add(-ago), Until: epoch.Add(-ago), Replicas: int(ago / time.Second)}
	}
	history := []Stretch{ended(time.Hour + time.Second), ended(time.Hour), ended(time.Hour - time.Second)}
	got := record(history, ended(0), time.Hour)
	assert.Equal(t, []Stretch{history[1], history[2], ended(0)}, got)
}

// A number that is just as far off as it may be is near.
func TestNear(t *testing.T) {
	assert.True(t, near(105, 100, 0.05))
	assert.True(t, near(95, 100, 0.05))
	assert.False(t, near(105.1, 100, 0.05))
	assert.False(t, near(94.9, 100, 0.05))
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
		assert.Equal(t, learns, memory.Variants[Key{"ns", v.Name}].Curve.Known())
	}
}

// A rolling update none of whose pods comes up waits for its user, whatever keeps them.
func TestWhichRollingUpdateMovesOn(t *testing.T) {
	for name, c := range map[string]struct {
		count map[state]int
		moves bool
	}{
		"none starts":                           {nil, true},
		"one starts":                            {map[state]int{statePending: 1}, true},
		"one starts beside one that fails":      {map[state]int{statePending: 1, stateCrashLooping: 1}, true},
		"one fails":                             {map[state]int{stateCrashLooping: 1}, false},
		"one is overdue":                        {map[state]int{stateOverdue: 1}, false},
		"one finds no node":                     {map[state]int{stateUnschedulable: 1}, false},
		"one fails and another is overdue":      {map[state]int{stateCrashLooping: 1, stateOverdue: 1}, false},
		"one finds no node and another one has": {map[state]int{stateUnschedulable: 1, stateCrashLooping: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := variantOf(variant{in: &Variant{Rolling: true}})
			for s, n := range c.count {
				v.fleet.count[s] = n
			}
			assert.Equal(t, c.moves, v.rolling())
			v.in.Rolling = false
			assert.False(t, v.rolling())
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
			v.old.Unseen = Unseen{Now: before}
			deadline, unseen := r.startupDeadline(v, v.in.Startup)
			assert.Equal(t, Unseen{Now: c.now, Before: c.given}, unseen)
			assert.Equal(t, max(r.policy.StartupDeadline, 2*c.given), deadline)
		})
	}
}

// A misfit goes as long as those that stay serve as much more than is missing as a scale-down
// leaves everywhere; just so much suffices.
func TestAsManyMisfitsStayAsWhatIsMissingNeeds(t *testing.T) {
	for missing, stay := range map[float64]int{0.5: 1, 1: 1, 1.01: 2} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
		v.rate = rate{trigger: lowerHeadroom, max: lowerHeadroom, bound: true}
		m.demand.isCertain = true
		r.relieve(m, capacity.Rate(missing))
		assert.Equal(t, stay, v.target, "%v req/s are missing", missing)
		assert.Len(t, v.plan.Steps, 2-stay)
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
			assert.Equal(t, c.fight, past.fights(Change{Time: epoch, Writer: "b", Replicas: 4}, window))
		})
	}
}

// Of variants that serve for the same the first is asked how misses grow.
func TestTheFirstOfEqualVariantsIsAsked(t *testing.T) {
	_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1})
	v.rate, v.price, v.next.Sizing = rate{promised: 4, bound: true}, 8, Sizing{Rate: 4, PeakRate: 5, Share: 0.99, PeakShare: 0.9}
	again := *v
	m.variants = append(m.variants, &again)
	assert.Same(t, v, m.cheapestSized())
	again.price = 7
	assert.Same(t, &again, m.cheapestSized())
}

// Sums of rates are exact to a part in a billion: what is missing of that is nothing.
func TestWhatIsMissing(t *testing.T) {
	for missing, want := range map[capacity.Rate]capacity.Rate{-1: 0, 0: 0, 5e-8: 0, 0.5: 0.5} {
		got := (modelOf(model{})).beyond(&need{required: 100, supply: 100 - missing})
		assert.InDelta(t, float64(want), float64(got), 1e-12, "%v of 100", missing)
	}
}

// Where any replica serves what must stay, the number of it is told from there on.
func TestWhatBindsAModelThatIsHardlyAsked(t *testing.T) {
	for least, want := range map[capacity.Rate]string{
		oneMore:     "demand: 0.001 req/s of capacity must stay; a replica serves 2.50",
		oneMore / 2: "requirement: nothing is asked",
	} {
		_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1})
		m.need = need{want: wantLess, least: least, detail: "nothing is asked"}
		assert.Equal(t, want, m.binds(v))
	}
}
