package decision

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// A scale-down is undone where what it left is too few although no more load came than it was
// for, and all of it serves.
func TestAScaleDownIsUndone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *model, v *variant, n *need)
		undone bool
	}{
		"too few":                     {func(*model, *variant, *need) {}, true},
		"they suffice":                {func(_ *model, _ *variant, n *need) { n.want = wantLess }, false},
		"more load":                   {func(m *model, _ *variant, _ *need) { m.demand.now = 10.6 }, false},
		"a little more load":          {func(m *model, _ *variant, _ *need) { m.demand.now = 10.4 }, true},
		"less load":                   {func(m *model, _ *variant, _ *need) { m.demand.now = 8 }, true},
		"more replicas":               {func(_ *model, v *variant, _ *need) { v.in.Current, v.in.Ready = 5, 5 }, false},
		"fewer replicas":              {func(_ *model, v *variant, _ *need) { v.in.Current, v.in.Ready = 3, 3 }, true},
		"one starts":                  {func(_ *model, v *variant, _ *need) { v.in.Ready, v.fleet.count[statePending] = 3, 1 }, false},
		"one starts beside them":      {func(_ *model, v *variant, _ *need) { v.fleet.count[statePending] = 1 }, false},
		"one finds no node":           {func(_ *model, v *variant, _ *need) { v.in.Ready, v.fleet.count[stateUnschedulable] = 3, 1 }, true},
		"one hangs":                   {func(m *model, _ *variant, _ *need) { m.load.hanging = 1 }, false},
		"half the metrics":            {func(m *model, _ *variant, _ *need) { m.evidence = evidencePartial }, false},
		"a queue":                     {func(m *model, _ *variant, n *need) { m.demand.backlog, n.queued = 9, 0.1 }, true},
		"a queue of more load":        {func(m *model, _ *variant, n *need) { m.demand.now, n.queued = 3, 0.1 }, true},
		"one's own queue beside room": {func(m *model, _ *variant, n *need) { m.load.unsaturated, n.queued, n.own = 2, 0.1, 0.1 }, true},
		"as much more as is the same": {func(m *model, _ *variant, _ *need) { m.old.Lowered.Most = 10 * modelHeadroom }, true},
		"more load came meanwhile":    {func(m *model, _ *variant, _ *need) { m.old.Lowered.Most = 10.6 }, false},
		"replicas just came":          {func(m *model, _ *variant, _ *need) { m.old.Seen = []Observation{{Time: epoch, Ready: 3}} }, false},
		"there was no scale-down":     {func(m *model, _ *variant, _ *need) { m.old.Lowered = Lowered{} }, false},
		"it was short before":         {func(m *model, _ *variant, _ *need) { m.old.Lowered.Short = true }, false},
		"a trigger fires, too":        {func(m *model, _ *variant, n *need) { m.old.Lowered.Short, n.triggered = true, true }, true},
		"latency decides, as well":    {func(m *model, _ *variant, _ *need) { m.sized, m.sizeFor, m.demand.now = true, 10, 99 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			m.evidence, m.demand.now = evidenceFull, 10
			m.old.Lowered, v.old.Lowered = Lowered{Load: 10, Most: 9}, 4
			n := need{want: wantMore, supply: 10}
			c.change(m, v, &n)
			load := m.carried()
			r.judgeLowered(m, &n)
			if !c.undone {
				assert.Zero(t, m.next.TooFew)
				assert.Equal(t, max(load, m.old.Lowered.Most), m.next.Lowered.Most)
				return
			}
			if n.queued > 0 {
				load = max(load, m.old.Lowered.Most)
			}
			assert.Equal(t, TooFew{epoch, leastBelieved, load, m.promise.SLO}, m.next.TooFew)
			assert.Zero(t, m.next.Lowered)
			assert.Equal(t, 4, v.next.TooFew)
		})
	}
}

// Twice the rate with no more requests in flight is no more load: clients have their answers sooner.
func TestWhatIsAskedSoonerIsNoMoreLoad(t *testing.T) {
	for name, c := range map[string]struct {
		before, now float64
		undone      bool
	}{
		"as many are in flight": {100, 100, true},
		"fewer are in flight":   {100, 60, true},
		"a little more":         {100, 104, true},
		"more are in flight":    {100, 106, false},
		"nobody knew how many":  {0, 100, false},
		"nobody knows how many": {100, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			running := Sample{}
			if c.now > 0 {
				running = Sample{Value: c.now, Time: epoch, Present: true}
			}
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4, Replicas: []Replica{{Running: running}}})
			m.evidence, m.demand.now = evidenceFull, 20
			m.old.Lowered, v.old.Lowered = Lowered{Load: 10, InFlight: c.before}, 4
			r.judgeLowered(m, &need{want: wantMore, supply: 10})
			if !c.undone {
				assert.Zero(t, m.next.TooFew)
				assert.Equal(t, capacity.Rate(20), m.next.Lowered.Most)
				return
			}
			assert.Equal(t, capacity.Rate(10), m.next.TooFew.Load, "for what it was left for")
			assert.Equal(t, 4, v.next.TooFew)
		})
	}
}

// What was seen at a load that a replica cannot carry is forgotten within an hour; that it
// could not is tried again, each time after twice as long, until once in a day. The prompts weigh
// more than the first guess of a curve has it.
func TestAScaleDownIsTriedEverMoreSeldom(t *testing.T) {
	web := vesselOf("web", 2)
	web.profile = serving.Profile{Base: 5.577, PerRequest: 0.1684, PerResidentToken: 6.463e-6, PerPrefillToken: 0.05892, BatchLimit: 239, KVTokens: 487142}
	web.unstated = true
	f := newFluid(machines(8), DefaultPolicy(), &flow{id: "m", arrivals: constant(1.4 * allowed(web.profile)), variants: []*vessel{web}})
	f.run(24 * time.Hour)
	// Each try takes up to four writes: down, and up again twice, and down to what suffices. There are as
	// many as the time of the first pause doubles in a day.
	tries := 1 + int(math.Log2(float64(repeats/leastBelieved)))
	assert.LessOrEqual(t, len(f.writes), 4*tries, "%v", f.writes)
	first := len(f.writes)
	f.run(72 * time.Hour)
	assert.LessOrEqual(t, len(f.writes)-first, 2*4, "%v", f.writes[first:])
}

// What was too few is known for a day at least, whatever goes meanwhile, and believed for its pause.
func TestHowLongItIsKnownThatReplicasWereTooFew(t *testing.T) {
	for age, known := range map[time.Duration]bool{2*repeats - 1: true, 2 * repeats: false} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
		few := TooFew{At: epoch.Add(-age), Pause: repeats, Load: 10}
		m.old.TooFew, v.old.TooFew, v.target = few, 2, 3
		r.judgeLowered(m, &need{})
		m.need.want = wantLess
		r.lower(m, nil)
		assert.Equal(t, known, m.next.TooFew == few)
		assert.True(t, m.retries, "its pause is over")
		assert.Equal(t, 2, v.next.TooFew)
		assert.Equal(t, 3, v.next.Lowered)
	}
}

// Other servers, another promise and other requests make it another question.
func TestWhatWasTooFewMaySufficeLater(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model, *variant)
		tooFew bool
	}{
		"nothing changed":  {func(*model, *variant) {}, true},
		"a new version":    {func(_ *model, v *variant) { v.in.Rolling = true }, false},
		"another promise":  {func(m *model, _ *variant) { m.promise.SLO.ITL = 50 }, false},
		"shorter requests": {func(m *model, _ *variant) { m.demand.tokens = capacity.TokenShape{Input: 50, Output: 50} }, false},
		"longer requests":  {func(m *model, _ *variant) { m.demand.tokens = capacity.TokenShape{Input: 150, Output: 150} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			usual := capacity.TokenShape{Input: 100, Output: 100}
			m.demand.now, m.demand.tokens, m.demand.forecast = 10, usual, &forecast.Belief{Shape: usual}
			m.old.TooFew, v.old.TooFew = TooFew{At: epoch, Pause: repeats, Load: 10}, 3
			c.change(m, v)
			r.judgeLowered(m, &need{})
			assert.Equal(t, c.tooFew, m.tooFew(func(*variant) int { return 3 }))
		})
	}
}

// What a scale-down left in vain is not gone to again for about that load, nor is anything
// that is no more in any variant.
func TestAnUndoneScaleDownIsNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		known  bool
		load   capacity.Rate
		left   []int
		tooFew bool
	}{
		"the same":                       {true, 10, []int{2, 3}, true},
		"fewer of one":                   {true, 10, []int{2, 1}, true},
		"none":                           {true, 10, []int{0, 0}, true},
		"another mix":                    {true, 10, []int{3, 0}, false},
		"as much less as is the same":    {true, 10 / modelHeadroom, []int{2, 3}, true},
		"more load":                      {true, 20, []int{2, 3}, true},
		"a little less load":             {true, 9.6, []int{2, 3}, true},
		"less load":                      {true, 9.5, []int{2, 3}, false},
		"a scale-down that is all right": {false, 10, []int{2, 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 9, Ready: 9})
			w := variantOf(variant{in: &Variant{Name: "w", Current: 9, Ready: 9}})
			m.variants = append(m.variants, w)
			m.demand.now = c.load
			v.next.TooFew, w.next.TooFew = 2, 3
			if c.known {
				m.next.TooFew = TooFew{At: epoch, Load: 10}
			}
			left := map[*variant]int{v: c.left[0], w: c.left[1]}
			v.target, w.target = c.left[0]+1, c.left[1]
			m.need.least = 1
			if says := m.staysFor(v); c.tooFew {
				assert.Equal(t, "no scale-down: fewer replicas did not suffice for 10.00 req/s before", says)
			} else {
				assert.Equal(t, "no scale-down: 1.00 req/s of capacity are required", says)
			}
			assert.Equal(t, c.tooFew, m.tooFew(func(v *variant) int { return left[v] }))
		})
	}
}

// Only replicas that serve and go because less suffices are a scale-down.
func TestWhatIsAScaleDown(t *testing.T) {
	for name, c := range map[string]struct {
		want          want
		target, ready int
		down          bool
	}{
		"one goes":                   {wantLess, 3, 4, true},
		"all stay":                   {wantLess, 4, 4, false},
		"one goes that never served": {wantLess, 3, 3, false},
		"one goes beside more":       {wantMore, 3, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: c.ready})
			v.target, m.need.want, m.demand.now = c.target, c.want, 10
			m.next.Lowered.Load = 7
			r.lower(m, nil)
			if c.down {
				assert.Equal(t, Lowered{Load: 10, Short: c.want == wantMore}, m.next.Lowered)
				assert.Equal(t, c.target, v.next.Lowered)
				return
			}
			assert.Equal(t, Lowered{Load: 7}, m.next.Lowered)
		})
	}
}

// A scale-down beside a replica that hangs is not judged, nor one for another model's sake; one
// beside a queue is, which is reckoned with.
func TestAScaleDownBesideAHangingReplicaIsNotJudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model)
		gives  []string
		judged Lowered
	}{
		"hangs":        {func(m *model) { m.load.hanging = 1 }, nil, Lowered{}},
		"gives one":    {func(*model) {}, []string{"v-0"}, Lowered{}},
		"a queue":      {func(m *model) { m.demand.backlog = 9 }, nil, Lowered{Load: 10}},
		"nothing else": {func(*model) {}, nil, Lowered{Load: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			v.target, m.need.want, m.demand.now, m.next.Lowered = 3, wantLess, 10, Lowered{Load: 7}
			c.change(m)
			r.lower(m, map[*variant][]string{v: c.gives})
			assert.Equal(t, c.judged, m.next.Lowered)
		})
	}
}

// Replicas that go one by one stop above what was too few.
func TestReplicasStayAboveWhatWasTooFew(t *testing.T) {
	for known, left := range map[bool]int{false: 1, true: 3} {
		_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
		v.load = load{unsaturated: 4}
		m.load, m.need.least, m.demand.now = v.load, 1, 1
		v.next.TooFew = 2
		if known {
			m.next.TooFew = TooFew{At: epoch, Load: 1}
		}
		now := m.standing(func(v *variant) int { return v.target })
		assert.Equal(t, left, m.oneByOne(now, nil, false)[v])
		assert.Equal(t, !known, m.reaches(now, map[*variant]int{v: 2}))
	}
}

// A model's hanging replicas are those of all its variants.
func TestHangingReplicasAreAdded(t *testing.T) {
	_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
	m.variants = append(m.variants, variantOf(variant{in: &Variant{}, load: load{hanging: 2}}))
	v.load.hanging = 1
	assert.Equal(t, 3, m.loadOfAll().hanging)
}

// A twentieth more is the same load; and where nobody knows what a replica serves, so is what
// three standard deviations of the forecast explain.
func TestTheSameLoad(t *testing.T) {
	_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
	at := epoch
	belief := forecast.Belief{}
	for range 20 {
		at = at.Add(time.Minute)
		belief = belief.Observe(at, forecast.Count{Rate: 0.1, Span: time.Minute}, nil)
	}
	m.demand.forecast, m.demand.known = &belief, true
	_, variance := belief.Moments()
	chance := 3 * math.Sqrt(variance)
	assert.InDelta(t, 0.105, float64(m.about(0.1)), 1e-9)
	m.rated = false
	assert.Greater(t, chance, 0.02)
	assert.InDelta(t, 0.1+chance, float64(m.about(0.1)), 1e-9)
	assert.InDelta(t, 105, float64(m.about(100)), 1e-9)
	m.demand.known = false
	assert.InDelta(t, 0.105, float64(m.about(0.1)), 1e-9)
}

// Servers that are slow for some minutes right after a scale-down make it look like too few. It is tried
// again before long, and is no more than that.
func TestASlowdownAfterAScaleDownPasses(t *testing.T) {
	for _, slow := range []time.Duration{100 * time.Second, 400 * time.Second} {
		for _, factor := range []float64{1.5, 2} {
			t.Run(fmt.Sprintf("%v, %v times", slow, factor), func(t *testing.T) {
				web := vesselOf("web", 12)
				f := newFluid(machines(8), DefaultPolicy(), &flow{id: "m", direct: true, arrivals: step(30*time.Minute, 24, 8), variants: []*vessel{web}})
				for len(f.writes) == 0 || f.elapsed() < 30*time.Minute {
					f.step()
				}
				begun, needs := f.elapsed(), web.replicas
				web.profile = plain.Paced(factor)
				f.run(begun + slow)
				web.profile = plain
				f.run(begun + 3*time.Hour)
				assert.LessOrEqual(t, web.replicas, needs+1, "%v", f.writes)
			})
		}
	}
}
