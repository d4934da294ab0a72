package serving

import (
	"math"
	"math/rand/v2"
	"slices"
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
	seen = Learned{}.Observe(good).Seen
	require.Len(t, seen, 1)
	assert.Equal(t, at.TTFT, seen[0].Point.TTFT, "nobody waited")
	good.Point.Batch = idleBatch
	assert.Len(t, Learned{}.Observe(good).Seen, 1, "it is not idle yet")
}

func TestWhatIsTooOldIsForgotten(t *testing.T) {
	at := func(n float64, when time.Duration) Observation {
		steady := overlapped.Steady(n, conv)
		return Observation{Time: epoch.Add(when), Point: Point{Shape: conv, Batch: n, Rate: steady.Rate, ITL: steady.ITL, TTFT: steady.TTFT}}
	}
	for name, c := range map[string]struct {
		batches []float64
		left    int
	}{
		"larger batches were seen since": {[]float64{40, 80}, 3},
		"smaller ones":                   {[]float64{2, 3}, 3},
		"both":                           {[]float64{2, 40}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := Learned{}.Observe(at(12, 0))
			for _, n := range c.batches {
				l = l.Observe(at(n, learnedAge-1))
			}
			assert.Len(t, l.Seen, 3, "it is not old yet")
			l = Learned{}.Observe(at(12, 0))
			for _, n := range c.batches {
				l = l.Observe(at(n, learnedAge))
			}
			assert.Len(t, l.Seen, c.left)
		})
	}
}

func TestWhatWasSeenAfterAnInstant(t *testing.T) {
	var l Learned
	for i, batch := range []float64{8, 16, 32} {
		l = l.Observe(Observation{Time: epoch.Add(time.Duration(i) * time.Hour), Point: Point{Shape: conv, Batch: batch, Rate: 1, ITL: 10}})
	}
	for after, left := range map[time.Duration]int{-1: 3, 0: 2, time.Hour: 1, 2 * time.Hour: 0} {
		seen := l.After(epoch.Add(after)).Seen
		assert.Len(t, seen, left)
		assert.Equal(t, l.Seen[3-left:], append([]Observation{}, seen...))
	}
}

// What every point says four times counts as it does once, beside what is known before.
func TestAFitCountsPointsByTheirShare(t *testing.T) {
	var points []Point
	for _, n := range []float64{4, 40} {
		at := overlapped.Steady(n, conv)
		points = append(points, Point{Shape: conv, Batch: n, Rate: at.Rate, ITL: 1.3 * at.ITL, TTFT: at.TTFT})
	}
	fitted := func(points []Point) Profile {
		return Fit(overlapped, points, anchor, func(p Profile, i int) At { return p.Steady(points[i].Batch, points[i].Shape) })
	}
	once, often := fitted(points), fitted(slices.Concat(points, points, points, points))
	assert.Greater(t, once.Base, overlapped.Base)
	assert.InEpsilon(t, float64(once.Base), float64(often.Base), 1e-3)
	assert.InEpsilon(t, float64(once.PerPrefillToken), float64(often.PerPrefillToken), 1e-3)
	assert.InEpsilon(t, float64(once.PerPrompt), float64(often.PerPrompt), 1e-3)
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
	assert.Len(t, l.Seen, len(spread)+1, "yesterday is all that is known of smaller batches")
	at = overlapped.Steady(idleBatch, conv)
	l = l.Observe(Observation{Time: epoch.Add(24 * time.Hour), Point: Point{Shape: conv, Batch: idleBatch, Rate: at.Rate, ITL: at.ITL}})
	assert.Len(t, l.Seen, 2, "and now it is gone")
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
	for name, p := range map[string]Profile{"linear": llama8B, "overlapped": overlapped, "four": large} {
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

// Of more neighbourhoods than are kept, the newest stay, in the order of time.
func TestTheNewestPointsStay(t *testing.T) {
	var l Learned
	for i := range 100 {
		shape := capacity.TokenShape{Input: capacity.Tokens(math.Exp2(float64(i % 10))), Output: capacity.Tokens(math.Exp2(float64(i / 10)))}
		l = l.Observe(Observation{Time: epoch.Add(time.Duration(i) * time.Second), Point: Point{Shape: shape, Batch: 8, Rate: 1, ITL: 10}})
	}
	require.Len(t, l.Seen, learnedPoints)
	assert.Equal(t, epoch.Add(36*time.Second), l.Seen[0].Time)
	assert.Equal(t, epoch.Add(99*time.Second), l.Seen[learnedPoints-1].Time)

	// What comes late takes its place in time, and none where a newer point of its
	// neighbourhood is.
	late := l.Seen[10]
	late.Time = late.Time.Add(-time.Minute)
	assert.Equal(t, l, l.Observe(late))
	early := l.Seen[0]
	early.Time, early.Point.Batch = early.Time.Add(time.Millisecond), 100
	assert.Equal(t, early, l.Observe(early).Seen[0], "the oldest of all made room for it")
}

// A point replaces that of its neighbourhood: half a doubling of the batch, one of the
// lengths.
func TestNeighbourhoods(t *testing.T) {
	at := func(batch, in, out float64) [3]int {
		return neighbourhood(Point{Batch: batch, Shape: capacity.TokenShape{Input: capacity.Tokens(in), Output: capacity.Tokens(out)}})
	}
	assert.Equal(t, [3]int{6, 9, 7}, at(8, 512, 128))
	assert.Equal(t, [3]int{6, 9, 7}, at(11.3, 1023, 255))
	assert.Equal(t, [3]int{7, 10, 8}, at(11.4, 1024, 256))
	assert.Equal(t, [3]int{-2, -10, -10}, at(0.5, 0, 0))
}

// A prior that is the truth explains everything. Confidence is then the share of eight
// points times the logarithm of the spread over that of 4.
func TestConfidenceByHand(t *testing.T) {
	for _, c := range []struct {
		want    float64
		batches []float64
	}{
		{3.0 / 8 * 0.5, []float64{8, 12, 16}}, // a spread of 2
		{2.0 / 8, []float64{8, 32}},
		{1, spread},
	} {
		batches := c.batches
		e := watch(overlapped, batches, 0).Estimate(overlapped)
		assert.InDelta(t, c.want, e.Confidence, 0.01, "%v", batches)
		assert.InDelta(t, batches[len(batches)-1], e.Reach, 1e-9)
		assert.InDelta(t, 0, e.Error, 0.003)
	}
	stiff := Profile{Form: Overlapped, Base: 1e-300, KVTokens: 1e6}
	e := watch(overlapped, spread, 0).Estimate(stiff)
	assert.Zero(t, e.Confidence, "it explains nothing")
	assert.False(t, e.Usable())
	assert.Equal(t, Estimate{Profile: overlapped}, Learned{}.Estimate(overlapped))
	assert.True(t, Estimate{Profile: overlapped, Confidence: 0.5}.Usable())
	assert.False(t, Estimate{Profile: overlapped, Confidence: 0.499}.Usable())
	assert.False(t, Estimate{Confidence: 1}.Usable())
}

// A fit of the published form finds the form that made the points, both latencies of it.
func TestAFitFindsTheFormThatMadeThePoints(t *testing.T) {
	truth := FourParameter{Alpha: 14, Beta: 0.09, Gamma: 9, Delta: 0.0005}.Profile()
	var points []Point
	for i, n := range []float64{2, 8, 20, 45, 90} {
		shape := capacity.TokenShape{Input: capacity.Tokens(200 + 300*i), Output: 150}
		at := truth.Steady(n, shape)
		points = append(points, Point{Shape: shape, Rate: at.Rate, Batch: n, TTFT: at.TTFT, ITL: at.ITL})
	}
	start := Guess(FourParameters, points)
	found := Fit(start, points, 0, func(p Profile, i int) At { return p.Steady(points[i].Batch, points[i].Shape) })
	for i, p := range points {
		at := found.Steady(p.Batch, p.Shape)
		assert.InEpsilon(t, float64(p.ITL), float64(at.ITL), 0.01, "point %d", i)
		assert.InEpsilon(t, float64(p.TTFT), float64(at.TTFT), 0.02, "point %d", i)
	}
	assert.Equal(t, start, Fit(start, nil, 0, nil), "nothing to learn from")
	assert.Equal(t, start, Fit(start, []Point{{}}, 0, nil))
	assert.Equal(t, Profile{}, Fit(Profile{}, points, 0, nil))
}

// The proportions of measured dense models, by the shortest time per token that was seen.
func TestWhereAFitStarts(t *testing.T) {
	points := []Point{{Shape: conv, Rate: 1, ITL: 25}, {Shape: conv, Rate: 1, ITL: 16}, {Shape: conv, Rate: 1}}
	assert.Equal(t, Profile{}, Guess(Overlapped, points[2:]))
	assert.Equal(t, Profile{
		Base: 16, PerRequest: 0.04, PerResidentToken: 0.000112, PerPrefillToken: 0.0528,
	}, Guess(Linear, points))
	assert.Equal(t, Profile{
		Form: Overlapped, Base: 16, PerRequest: 0.04, PerResidentToken: 0.000112, PerPrefillToken: 0.0528, PerPrompt: 0.96,
		First: FirstToken{Fixed: 4.8, Iterations: 1, Cold: 16, ColdBelow: 1},
	}, Guess(Overlapped, points))
	assert.Equal(t, Profile{
		Form: FourParameters, Base: 16, PerRequest: 0.096, PerPrefillToken: 0.0048, Gamma: 32,
	}, Guess(FourParameters, points))
}

// An error counts by the logarithm of the ratio, rounded off below a tenth.
func TestTheLossOfAPoint(t *testing.T) {
	for _, c := range []struct{ got, want, loss float64 }{
		{10, 10, 0}, {20, 10, 0.6003237985}, {5, 10, 0.6003237985}, {10.5, 10, 0.0112676}, {7, 0, 0}, {7, -1, 0},
		{0, 10, 10}, {-1, 10, 10}, {math.Inf(1), 10, 10}, {math.NaN(), 10, 10},
	} {
		assert.InDelta(t, c.loss, loss(capacity.Milliseconds(c.got), capacity.Milliseconds(c.want)), 1e-6, "%+v", c)
	}
}

// What was learned is near to what it was while each neighbourhood shows about the same,
// whenever that was, and none came or went.
func TestLearnedIsNear(t *testing.T) {
	learned := func(change func(int, *Observation)) Learned {
		var l Learned
		for i, n := range []float64{5, 10, 20} {
			o := Observation{Time: epoch.Add(time.Duration(i) * time.Minute), Point: Point{Shape: conv, Rate: 1, Batch: n, TTFT: 100, ITL: 10}}
			change(i, &o)
			l = l.Observe(o)
		}
		return l
	}
	first := learned(func(int, *Observation) {})
	for name, c := range map[string]struct {
		change func(int, *Observation)
		near   bool
	}{
		"the same":                         {func(int, *Observation) {}, true},
		"in another order":                 {func(i int, o *Observation) { o.Time = epoch.Add(-time.Duration(i) * time.Minute) }, true},
		"ITL a little longer":              {func(_ int, o *Observation) { o.Point.ITL = 10.19 }, true},
		"ITL of one longer":                {func(i int, o *Observation) { o.Point.ITL += capacity.Milliseconds(i) }, false},
		"ITL of the first shorter":         {func(i int, o *Observation) { o.Point.ITL -= capacity.Milliseconds(1 - min(i, 1)) }, false},
		"TTFT longer":                      {func(_ int, o *Observation) { o.Point.TTFT = 103 }, false},
		"TTFT unknown":                     {func(_ int, o *Observation) { o.Waiting = 1 }, false},
		"batch larger":                     {func(_ int, o *Observation) { o.Point.Batch *= 1.03 }, false},
		"more input":                       {func(_ int, o *Observation) { o.Point.Shape.Input *= 1.03 }, false},
		"more output":                      {func(_ int, o *Observation) { o.Point.Shape.Output *= 1.03 }, false},
		"another rate, which no fit reads": {func(_ int, o *Observation) { o.Point.Rate = 2 }, true},
		"one neighbourhood is another": {func(i int, o *Observation) {
			if i == 1 {
				o.Point.Batch = 40
			}
		}, false},
		"one is missing": {func(i int, o *Observation) { o.Starting = i == 1 }, false},
	} {
		assert.Equal(t, c.near, learned(c.change).Near(first, 0.02), name)
		if name != "the same" && !c.near {
			assert.False(t, first.Near(learned(c.change), 0.02), "%s, the other way round", name)
		}
	}
	assert.True(t, Learned{}.Near(Learned{}, 0))
	untimed := learned(func(_ int, o *Observation) { o.Waiting = 1 })
	assert.True(t, untimed.Near(untimed, 0.02), "neither knows the first token's time")
}

// What only the first token knows is found too, once the rest is.
func TestAFitFindsTheFirstToken(t *testing.T) {
	truth := overlapped
	truth.First = FirstToken{Fixed: 4, Iterations: 2, Cold: 30, ColdBelow: 1.5}
	var points []Point
	for _, n := range []float64{1, 2, 6, 15, 40, 90} {
		at := truth.Steady(n, conv)
		points = append(points, Point{Shape: conv, Rate: at.Rate, Batch: n, TTFT: at.TTFT, ITL: at.ITL})
	}
	found := Fit(overlapped, points, 0, func(p Profile, i int) At { return p.Steady(points[i].Batch, points[i].Shape) })
	for _, p := range points {
		assert.InEpsilon(t, float64(p.TTFT), float64(found.Steady(p.Batch, conv).TTFT), 0.01, "batch %v", p.Batch)
	}
}
