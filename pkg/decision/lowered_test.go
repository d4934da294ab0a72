package decision

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/settle"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// A scale-down is undone where what it left is too few although no more load came than it was
// for, and all of it serves.
func TestAScaleDownIsUndone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *limit.Model, v *limit.Variant, n *need.Need)
		undone bool
	}{
		"too few":            {func(*limit.Model, *limit.Variant, *need.Need) {}, true},
		"they suffice":       {func(_ *limit.Model, _ *limit.Variant, n *need.Need) { n.Want = need.WantLess }, false},
		"more load":          {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Demand.Now = 10.6 }, false},
		"a little more load": {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Demand.Now = 10.4 }, true},
		"less load":          {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Demand.Now = 8 }, true},
		"more replicas":      {func(_ *limit.Model, v *limit.Variant, _ *need.Need) { v.In.Current, v.In.Ready = 5, 5 }, false},
		"fewer replicas":     {func(_ *limit.Model, v *limit.Variant, _ *need.Need) { v.In.Current, v.In.Ready = 3, 3 }, true},
		"one starts": {func(_ *limit.Model, v *limit.Variant, _ *need.Need) {
			v.In.Ready, v.Fleet.Count[fleet.StatePending] = 3, 1
		}, false},
		"one starts beside them": {func(_ *limit.Model, v *limit.Variant, _ *need.Need) { v.Fleet.Count[fleet.StatePending] = 1 }, false},
		"one finds no node": {func(_ *limit.Model, v *limit.Variant, _ *need.Need) {
			v.In.Ready, v.Fleet.Count[fleet.StateUnschedulable] = 3, 1
		}, true},
		"one hangs":            {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Load.Hanging = 1 }, false},
		"half the metrics":     {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Evidence = signal.EvidencePartial }, false},
		"a queue":              {func(m *limit.Model, _ *limit.Variant, n *need.Need) { m.Demand.Backlog, n.Queued = 9, 0.1 }, true},
		"a queue of more load": {func(m *limit.Model, _ *limit.Variant, n *need.Need) { m.Demand.Now, n.Queued = 3, 0.1 }, true},
		"one's own queue beside room": {func(m *limit.Model, _ *limit.Variant, n *need.Need) {
			m.Load.Unsaturated, n.Queued, n.Own = 2, 0.1, 0.1
		}, true},
		"as much more as is the same": {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Old.Lowered.Most = 10 * need.ModelHeadroom }, true},
		"more load came meanwhile":    {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Old.Lowered.Most = 10.6 }, false},
		"replicas just came": {func(m *limit.Model, _ *limit.Variant, _ *need.Need) {
			m.Old.Seen = []Observation{{Time: epoch, Ready: 3}}
		}, false},
		"there was no scale-down":  {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Old.Lowered = Lowered{} }, false},
		"it was short before":      {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Old.Lowered.Short = true }, false},
		"a trigger fires, too":     {func(m *limit.Model, _ *limit.Variant, n *need.Need) { m.Old.Lowered.Short, n.Triggered = true, true }, true},
		"latency decides, as well": {func(m *limit.Model, _ *limit.Variant, _ *need.Need) { m.Sized, m.SizeFor, m.Demand.Now = true, 10, 99 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			m.Evidence, m.Demand.Now = signal.EvidenceFull, 10
			m.Old.Lowered, v.Old.Lowered = Lowered{Load: 10, Most: 9}, 4
			n := need.Need{Want: need.WantMore, Supply: 10}
			c.change(m, v, &n)
			load := m.Carried()
			within(r, m).JudgeLowered(&n)
			if !c.undone {
				assert.Zero(t, m.Next.TooFew)
				assert.Equal(t, max(load, m.Old.Lowered.Most), m.Next.Lowered.Most)
				return
			}
			if n.Queued > 0 {
				load = max(load, m.Old.Lowered.Most)
			}
			assert.Equal(t, TooFew{At: epoch, Pause: need.LeastBelieved, Load: load, SLO: m.Promise.SLO}, m.Next.TooFew)
			assert.Zero(t, m.Next.Lowered)
			assert.Equal(t, 4, v.Next.TooFew)
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
			m.Evidence, m.Demand.Now = signal.EvidenceFull, 20
			m.Old.Lowered, v.Old.Lowered = Lowered{Load: 10, InFlight: c.before}, 4
			within(r, m).JudgeLowered(&need.Need{Want: need.WantMore, Supply: 10})
			if !c.undone {
				assert.Zero(t, m.Next.TooFew)
				assert.Equal(t, capacity.Rate(20), m.Next.Lowered.Most)
				return
			}
			assert.Equal(t, capacity.Rate(10), m.Next.TooFew.Load, "for what it was left for")
			assert.Equal(t, 4, v.Next.TooFew)
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
	tries := 1 + int(math.Log2(float64(rate.Repeats/need.LeastBelieved)))
	assert.LessOrEqual(t, len(f.writes), 4*tries, "%v", f.writes)
	first := len(f.writes)
	f.run(72 * time.Hour)
	assert.LessOrEqual(t, len(f.writes)-first, 2*4, "%v", f.writes[first:])
}

// What was too few is known for a day at least, whatever goes meanwhile, and believed for its pause.
func TestHowLongItIsKnownThatReplicasWereTooFew(t *testing.T) {
	for age, known := range map[time.Duration]bool{2*rate.Repeats - 1: true, 2 * rate.Repeats: false} {
		r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
		few := TooFew{At: epoch.Add(-age), Pause: rate.Repeats, Load: 10}
		m.Old.TooFew, v.Old.TooFew, v.Target = few, 2, 3
		within(r, m).JudgeLowered(&need.Need{})
		m.Need.Want = need.WantLess
		settle.NoteLowered(within(r, m), nil)
		assert.Equal(t, known, m.Next.TooFew == few)
		assert.True(t, m.Retries, "its pause is over")
		assert.Equal(t, 2, v.Next.TooFew)
		assert.Equal(t, 3, v.Next.Lowered)
	}
}

// Other servers, another promise and other requests make it another question.
func TestWhatWasTooFewMaySufficeLater(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*limit.Model, *limit.Variant)
		tooFew bool
	}{
		"nothing changed":  {func(*limit.Model, *limit.Variant) {}, true},
		"a new version":    {func(_ *limit.Model, v *limit.Variant) { v.In.Rolling = true }, false},
		"another promise":  {func(m *limit.Model, _ *limit.Variant) { m.Promise.SLO.ITL = 50 }, false},
		"shorter requests": {func(m *limit.Model, _ *limit.Variant) { m.Demand.Tokens = capacity.TokenShape{Input: 50, Output: 50} }, false},
		"longer requests":  {func(m *limit.Model, _ *limit.Variant) { m.Demand.Tokens = capacity.TokenShape{Input: 150, Output: 150} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			usual := capacity.TokenShape{Input: 100, Output: 100}
			m.Demand.Now, m.Demand.Tokens, m.Demand.Forecast = 10, usual, &forecast.Belief{Shape: usual}
			m.Old.TooFew, v.Old.TooFew = TooFew{At: epoch, Pause: rate.Repeats, Load: 10}, 3
			c.change(m, v)
			within(r, m).JudgeLowered(&need.Need{})
			assert.Equal(t, c.tooFew, allocate.TooFewLeft(m, func(*limit.Variant) int { return 3 }))
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
		"as much less as is the same":    {true, 10 / need.ModelHeadroom, []int{2, 3}, true},
		"more load":                      {true, 20, []int{2, 3}, true},
		"a little less load":             {true, 9.6, []int{2, 3}, true},
		"less load":                      {true, 9.5, []int{2, 3}, false},
		"a scale-down that is all right": {false, 10, []int{2, 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 9, Ready: 9})
			w := variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "w", Current: 9, Ready: 9} })
			m.Variants = append(m.Variants, w)
			m.Stack()
			m.Demand.Now = c.load
			v.Next.TooFew, w.Next.TooFew = 2, 3
			if c.known {
				m.Next.TooFew = TooFew{At: epoch, Load: 10}
			}
			left := map[*limit.Variant]int{v: c.left[0], w: c.left[1]}
			v.Target, w.Target = c.left[0]+1, c.left[1]
			m.Need.Least = 1
			if says := allocate.StaysFor(m, v); c.tooFew {
				assert.Equal(t, "no scale-down: fewer replicas did not suffice for 10.00 req/s before", textOf(says))
			} else {
				assert.Equal(t, "no scale-down: it would have to leave 1.00 req/s of capacity", textOf(says))
			}
			assert.Equal(t, c.tooFew, allocate.TooFewLeft(m, func(v *limit.Variant) int { return left[v] }))
		})
	}
}

// Only replicas that serve and go because less suffices are a scale-down.
func TestWhatIsAScaleDown(t *testing.T) {
	for name, c := range map[string]struct {
		want          need.Want
		target, ready int
		down          bool
	}{
		"one goes":                   {need.WantLess, 3, 4, true},
		"all stay":                   {need.WantLess, 4, 4, false},
		"one goes that never served": {need.WantLess, 3, 3, false},
		"one goes beside more":       {need.WantMore, 3, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: c.ready})
			v.Target, m.Need.Want, m.Demand.Now = c.target, c.want, 10
			m.Next.Lowered.Load = 7
			settle.NoteLowered(within(r, m), nil)
			if c.down {
				assert.Equal(t, Lowered{Load: 10, Short: c.want == need.WantMore}, m.Next.Lowered)
				assert.Equal(t, c.target, v.Next.Lowered)
				return
			}
			assert.Equal(t, Lowered{Load: 7}, m.Next.Lowered)
		})
	}
}

// A scale-down beside a replica that hangs is not judged, nor one for another model's sake; one
// beside a queue is, which is reckoned with.
func TestAScaleDownBesideAHangingReplicaIsNotJudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*limit.Model)
		gives  []string
		judged Lowered
	}{
		"hangs":        {func(m *limit.Model) { m.Load.Hanging = 1 }, nil, Lowered{}},
		"gives one":    {func(*limit.Model) {}, []string{"v-0"}, Lowered{}},
		"a queue":      {func(m *limit.Model) { m.Demand.Backlog = 9 }, nil, Lowered{Load: 10}},
		"nothing else": {func(*limit.Model) {}, nil, Lowered{Load: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			v.Target, m.Need.Want, m.Demand.Now, m.Next.Lowered = 3, need.WantLess, 10, Lowered{Load: 7}
			c.change(m)
			settle.NoteLowered(within(r, m), map[*limit.Variant][]string{v: c.gives})
			assert.Equal(t, c.judged, m.Next.Lowered)
		})
	}
}

// Replicas that go one by one stop above what was too few.
func TestReplicasStayAboveWhatWasTooFew(t *testing.T) {
	for known, left := range map[bool]int{false: 1, true: 3} {
		_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
		v.Load = fleet.Load{Unsaturated: 4}
		m.Load, m.Need.Least, m.Demand.Now = v.Load, 1, 1
		v.Next.TooFew = 2
		if known {
			m.Next.TooFew = TooFew{At: epoch, Load: 1}
		}
		now := allocate.StandingOf(m, func(v *limit.Variant) int { return v.Target })
		assert.Equal(t, left, allocate.OneByOne(m, now, nil, false)[v])
		assert.Equal(t, !known, allocate.ReachesMix(m, now, map[*limit.Variant]int{v: 2}))
	}
}

// A model's hanging replicas are those of all its variants.
func TestHangingReplicasAreAdded(t *testing.T) {
	_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
	m.Variants = append(m.Variants, variantOf(func(it *limit.Variant) { it.In, it.Load = &Variant{}, fleet.Load{Hanging: 2} }))
	m.Stack()
	v.Load.Hanging = 1
	assert.Equal(t, 3, m.LoadOfAll().Hanging)
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
	m.Demand.Forecast, m.Demand.Known = &belief, true
	_, variance := belief.Moments()
	chance := 3 * math.Sqrt(variance)
	assert.InDelta(t, 0.105, float64(m.About(0.1)), 1e-9)
	m.Rated = false
	assert.Greater(t, chance, 0.02)
	assert.InDelta(t, 0.1+chance, float64(m.About(0.1)), 1e-9)
	assert.InDelta(t, 105, float64(m.About(100)), 1e-9)
	m.Demand.Known = false
	assert.InDelta(t, 0.105, float64(m.About(0.1)), 1e-9)
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
