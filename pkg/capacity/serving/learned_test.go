package serving

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// watch is what a replica with the true profile shows at some batches, with noise.
func watch(truth Profile, batches []float64, noise float64) Learned {
	random := rand.New(rand.NewPCG(3, 4))
	var l Learned
	for i, n := range batches {
		at := truth.Steady(n, conv)
		jitter := func() float64 { return 1 + noise*random.NormFloat64() }
		l = l.Observe(Observation{Time: epoch.Add(time.Duration(i) * time.Minute), Point: Point{
			Shape: conv, Batch: n, Rate: at.Rate * capacity.Rate(jitter()),
			ITL: at.ITL * capacity.Milliseconds(jitter()), TTFT: at.TTFT * capacity.Milliseconds(jitter()),
		}})
	}
	return l
}

var spread = []float64{2, 3, 4.5, 7, 11, 16, 24, 40, 90}

func TestALearnedProfilePredictsWhatWasNotSeen(t *testing.T) {
	for name, noise := range map[string]float64{"exact": 0, "noisy": 0.03} {
		t.Run(name, func(t *testing.T) {
			e := watch(overlapped, spread, noise).Estimate(Profile{BatchLimit: 256})
			require.True(t, e.Usable(), "%+v", e)
			assert.Equal(t, 256, e.Profile.BatchLimit, "the limits are the prior's")
			assert.InDelta(t, 90, e.Reach, 1e-9)
			for _, n := range []float64{30, 120, 150} {
				assert.InEpsilon(t, float64(overlapped.Steady(n, conv).Rate), float64(e.Profile.Steady(n, conv).Rate), 0.07, "n=%v", n)
			}
		})
	}
}

func TestNothingIsLearnedFromStartingIdleOrBroken(t *testing.T) {
	at := overlapped.Steady(20, conv)
	good := Observation{Time: epoch, Point: Point{Shape: conv, Batch: 20, Rate: at.Rate, ITL: at.ITL, TTFT: at.TTFT}}
	for name, spoil := range map[string]func(*Observation){
		"starting":     func(o *Observation) { o.Starting = true },
		"idle":         func(o *Observation) { o.Point.Batch = 0.2 },
		"no batch":     func(o *Observation) { o.Point.Batch = 0 },
		"no ITL":       func(o *Observation) { o.Point.ITL = 0 },
		"NaN ITL":      func(o *Observation) { o.Point.ITL = capacity.Milliseconds(math.NaN()) },
		"endless rate": func(o *Observation) { o.Point.Rate = capacity.Rate(math.Inf(1)) },
		"no lengths":   func(o *Observation) { o.Point.Shape = capacity.TokenShape{} },
		"NaN waiting":  func(o *Observation) { o.Waiting = math.NaN() },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			spoil(&bad)
			assert.Empty(t, Learned{}.Observe(bad).Seen)
		})
	}
	queued := good
	queued.Waiting = 3
	seen := Learned{}.Observe(queued).Seen
	require.Len(t, seen, 1)
	assert.Zero(t, seen[0].Point.TTFT, "its TTFT is that of the queue")
}

func TestConfidenceIsEarned(t *testing.T) {
	assert.False(t, Learned{}.Estimate(Profile{}).Usable(), "nothing seen")
	assert.False(t, watch(overlapped, []float64{20, 20.1, 20.2, 20.3}, 0).Estimate(Profile{}).Usable(), "one batch says nothing of others")
	noise := watch(overlapped, spread, 0)
	for i := range noise.Seen {
		noise.Seen[i].Point.ITL = []capacity.Milliseconds{80, 7, 25}[i%3]
	}
	assert.False(t, noise.Estimate(Profile{}).Usable(), "numbers that no batch explains")
	assert.True(t, watch(overlapped, spread, 0.02).Estimate(Profile{}).Usable())
}

func TestOneLiarDoesNotTurnTheFit(t *testing.T) {
	l := watch(overlapped, spread, 0.01)
	honest := l.Estimate(Profile{}).Profile.Steady(100, conv).Rate
	l = l.Observe(Observation{Time: epoch.Add(time.Hour), Point: Point{Shape: conv, Batch: 50, Rate: 1, ITL: 900}})
	require.Len(t, l.Seen, len(spread)+1)
	assert.InEpsilon(t, float64(honest), float64(l.Estimate(Profile{}).Profile.Steady(100, conv).Rate), 0.08)
}

func TestParametersStayBounded(t *testing.T) {
	l := watch(Profile{Form: Overlapped, Base: 5000, PerPrefillToken: 1}, spread, 0)
	got := l.Estimate(overlapped).Profile
	assert.LessOrEqual(t, float64(got.Base/overlapped.Base), math.Exp(fitFactor)*(1+1e-9))
}

func TestLearnedForgetsAndIsBounded(t *testing.T) {
	l := watch(overlapped, spread, 0)
	at := overlapped.Steady(300, conv)
	l = l.Observe(Observation{Time: epoch.Add(24 * time.Hour), Point: Point{Shape: conv, Batch: 300, Rate: at.Rate, ITL: at.ITL}})
	assert.Len(t, l.Seen, 1, "yesterday is gone")
	for i := range 500 {
		shape := capacity.TokenShape{Input: capacity.Tokens(1 + i*37), Output: capacity.Tokens(1 + i*11)}
		l = l.Observe(Observation{Time: epoch.Add(24 * time.Hour), Point: Point{Shape: shape, Batch: float64(1 + i), Rate: 1, ITL: 10}})
	}
	assert.LessOrEqual(t, len(l.Seen), learnedPoints)
}

func TestFittingTwiceGivesTheSame(t *testing.T) {
	first := watch(overlapped, spread, 0.05).Estimate(Profile{})
	second := watch(overlapped, spread, 0.05).Estimate(Profile{})
	assert.Equal(t, first, second)
}

func TestUnderIsTheInverseOfSteady(t *testing.T) {
	for name, p := range map[string]Profile{"linear": llama8B, "overlapped": overlapped, "four": large, "three": middle} {
		for _, n := range []float64{0.3, 5, 30, 60} {
			at := p.Steady(n, conv)
			got, same := p.Under(at.Rate, conv)
			assert.InEpsilon(t, n, got, 1e-6, "%s, n=%v", name, n)
			assert.InEpsilon(t, float64(at.ITL), float64(same.ITL), 1e-6, "%s, n=%v", name, n)
		}
		n, at := p.Under(1e6, conv)
		assert.InDelta(t, p.Concurrency(conv), n, 1e-9, name)
		assert.Less(t, float64(at.Rate), 1e6, name)
	}
}

// What a point must have to be one: lengths, a rate or a batch, and a time per token, all of
// them numbers.
func TestPointsThatAreOfUse(t *testing.T) {
	good := Point{Shape: conv, Rate: 1, Batch: 5, TTFT: 10, ITL: 10}
	with := func(change func(*Point)) Point {
		p := good
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		point Point
		use   bool
	}{
		"all":             {good, true},
		"without a rate":  {with(func(p *Point) { p.Rate = 0 }), true},
		"without a batch": {with(func(p *Point) { p.Batch = 0 }), true},
		"without either":  {with(func(p *Point) { p.Rate, p.Batch = 0, 0 }), false},
		"without a TTFT":  {with(func(p *Point) { p.TTFT = 0 }), true},
		"without an ITL":  {with(func(p *Point) { p.ITL = 0 }), false},
		"without input":   {with(func(p *Point) { p.Shape.Input = 0 }), false},
		"endless input":   {with(func(p *Point) { p.Shape.Input = capacity.Tokens(math.Inf(1)) }), false},
		"endless output":  {with(func(p *Point) { p.Shape.Output = capacity.Tokens(math.Inf(1)) }), false},
		"an endless rate": {with(func(p *Point) { p.Rate = capacity.Rate(math.Inf(1)) }), false},
		"no number":       {with(func(p *Point) { p.Batch = math.NaN() }), false},
		"a negative TTFT": {with(func(p *Point) { p.TTFT = -1 }), false},
		"an endless ITL":  {with(func(p *Point) { p.ITL = capacity.Milliseconds(math.Inf(1)) }), false},
	} {
		assert.Equal(t, c.use, c.point.usable(), name)
	}
}
