package serving

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

var (
	small      = FourParameter{Alpha: 20.58, Beta: 0.41, Gamma: 5.2, Delta: 0.1, MaxBatchSize: 4}.Profile()
	large      = FourParameter{Alpha: 7.47, Beta: 0.044, Gamma: 15.415, Delta: 0.000337, MaxBatchSize: 512}.Profile()
	square     = capacity.TokenShape{Input: 128, Output: 128}
	overlapped = Profile{Form: Overlapped, Base: 6.9, PerRequest: 0.0184, PerResidentToken: 4.7e-5, PerPrefillToken: 0.0232,
		PerPrompt: 0.44, First: FirstToken{Fixed: 1, Iterations: 1.3, Cold: 12, ColdBelow: 0.7}, BatchLimit: 256, KVTokens: 447936}
)

func queueOf(t *testing.T, p Profile, shape capacity.TokenShape, waiting int) Queue {
	t.Helper()
	q, ok := NewQueue(p, shape, Arrivals{Waiting: waiting})
	require.True(t, ok)
	return q
}

// The published means, to the relative tolerance that their single precision has.
func TestMeansOfThePublishedForm(t *testing.T) {
	for name, tc := range map[string]struct {
		profile                                   Profile
		shape                                     capacity.TokenShape
		waiting                                   int
		rate                                      capacity.Rate
		wait, prefill, itl, ttft, served, service float64
	}{
		"four, half loaded": {small, square, 40, 0.5, 69.331, 34.936, 21.532, 104.267, 0.5, 1.3848},
		"four, nearly full": {small, square, 40, 1.2, 3677.63, 52.852, 22.106, 3730.49, 1.19967, 3.43149},
	} {
		t.Run(name, func(t *testing.T) {
			s := queueOf(t, tc.profile, tc.shape, tc.waiting).At(tc.rate)
			assert.InEpsilon(t, tc.wait, float64(s.Wait), 1e-3)
			assert.InEpsilon(t, tc.prefill, float64(s.Prefill), 1e-3)
			assert.InEpsilon(t, tc.itl, float64(s.ITL), 1e-3)
			assert.InEpsilon(t, tc.ttft, float64(s.TTFT), 1e-3)
			assert.InEpsilon(t, tc.served, float64(s.Served), 1e-3)
			assert.InEpsilon(t, tc.service, s.InService, 1e-3)
		})
	}
}

func TestSizesOfThePublishedForm(t *testing.T) {
	for name, tc := range map[string]struct {
		profile Profile
		shape   capacity.TokenShape
		waiting int
		slo     capacity.SLO
		want    float64
	}{
		"TTFT binds":          {small, square, 40, capacity.SLO{TTFT: 500, ITL: 24}, 0.81560},
		"ITL is always kept":  {small, square, 40, capacity.SLO{ITL: 24}, 1.38830},
		"ITL binds":           {large, capacity.TokenShape{Input: 512, Output: 256}, 5120, capacity.SLO{TTFT: 1000, ITL: 10}, 21.9389},
		"its TTFT alone":      {large, capacity.TokenShape{Input: 512, Output: 256}, 5120, capacity.SLO{TTFT: 1000}, 65.404},
		"nothing can keep it": {small, square, 40, capacity.SLO{ITL: 20}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := queueOf(t, tc.profile, tc.shape, tc.waiting).MaxRate(tc.slo, MeanShare)
			assert.InDelta(t, tc.want, float64(got), 1.5e-3*tc.want)
		})
	}
}

func TestPromiseAndMaxRateAreInverse(t *testing.T) {
	for _, share := range []float64{MeanShare, 0.5, 0.9, 0.99} {
		q := queueOf(t, overlapped, conv, 0)
		top := q.MaxRate(capacity.SLO{}, share)
		for _, part := range []float64{0.3, 0.6, 0.9, 0.97} {
			rate := top * capacity.Rate(part)
			slo := q.Promise(rate, share)
			assert.GreaterOrEqual(t, float64(q.MaxRate(slo, share)), float64(rate)*(1-1e-6), "share %v, part %v", share, part)
			tighter := capacity.SLO{TTFT: slo.TTFT * 0.98, ITL: slo.ITL * 0.98}
			assert.Less(t, float64(q.MaxRate(tighter, share)), float64(rate), "share %v, part %v", share, part)
		}
	}
}

func TestAHigherQuantileOrMoreBurstsLeaveLess(t *testing.T) {
	slo := capacity.SLO{TTFT: 300, ITL: 200}
	last := math.Inf(1)
	for _, share := range []float64{0.5, 0.9, 0.99, 0.999} {
		rate := float64(queueOf(t, overlapped, conv, 0).MaxRate(slo, share))
		assert.LessOrEqual(t, rate, last, "share %v", share)
		assert.Positive(t, rate)
		last = rate
	}
	bursts, ok := NewQueue(small, square, Arrivals{Burst: 4, Waiting: 40})
	require.True(t, ok)
	calm := queueOf(t, small, square, 40)
	assert.Less(t, bursts.MaxRate(capacity.SLO{TTFT: 2000}, 0.9), calm.MaxRate(capacity.SLO{TTFT: 2000}, 0.9))
	// Kingman's factor (4+1)/2 is that of a queue that hardly ever runs empty.
	heavy := capacity.Rate(0.98) * calm.MaxRate(capacity.SLO{}, MeanShare)
	endless := func(burst float64) Queueing {
		q, ok := NewQueue(small, square, Arrivals{Burst: burst, Waiting: 100_000})
		require.True(t, ok)
		return q.At(heavy)
	}
	assert.InEpsilon(t, 2.5, float64(endless(4).Wait/endless(1).Wait), 0.05)
}

// A chain of three places, worked out by another program: what is in service takes
// 12.05, 14.1 and 16.15 ms per token and 6.4 ms more for the first one. Of 0.9 independent
// requests/s, 18.67 % find nobody, 44.59 % at most one and 65.63 % at most two others, so
// that 18 % find at most 0.4641 and 44 % at most 1.4774, and 65 % fill the third place.
func TestQuantilesByHand(t *testing.T) {
	p := Profile{Base: 10, PerRequest: 2, PerPrefillToken: 0.05, BatchLimit: 3}
	q := func(burst float64) Queue {
		q, ok := NewQueue(p, square, Arrivals{Burst: burst, Waiting: 4000})
		require.True(t, ok)
		return q
	}
	calm, bursts := q(1).At(0.9), q(4).At(1.3)
	for _, c := range []struct {
		s                      Queueing
		wait, inService, mean  float64
		share, first, perToken float64
	}{
		{calm, 623.42185, 1.711094808, 643.3295943, 0.18, 19.401464721, 13.001464721},
		{calm, 623.42185, 1.711094808, 643.3295943, 0.44, 21.478629414, 15.078629414},
		{calm, 623.42185, 1.711094808, 643.3295943, 0.65, 22.55, 16.15},
		{calm, 623.42185, 1.711094808, 643.3295943, 0.9, 2261.990029866, 16.15},
		{calm, 623.42185, 1.711094808, 643.3295943, 0.99, 6439.103116286, 16.15},
		{bursts, 14849.31427, 2.65711108, 14871.16135, 0.3, 3030.484323433, 16.15},
		{bursts, 14849.31427, 2.65711108, 14871.16135, 0.9, 35196.757514060, 16.15},
	} {
		assert.InEpsilon(t, c.wait, float64(c.s.Wait), 1e-6)
		assert.InEpsilon(t, c.inService, c.s.InService, 1e-6)
		assert.InEpsilon(t, c.mean, float64(c.s.TTFT), 1e-6)
		got := c.s.Quantile(c.share)
		assert.InEpsilon(t, c.first, float64(got.TTFT), 1e-7, "share %v", c.share)
		assert.InEpsilon(t, c.perToken, float64(got.ITL), 1e-9, "share %v", c.share)
	}
	for name, never := range map[string]capacity.SLO{"it cannot keep up": q(1).At(5).Quantile(0.5), "all of them": calm.Quantile(1)} {
		assert.True(t, math.IsInf(float64(never.TTFT), 1) && math.IsInf(float64(never.ITL), 1), name)
	}
}

// A device that is a little slower serves a little less, also where one state more or less
// in service is within the promise.
func TestTheGreatestRateHasNoSteps(t *testing.T) {
	rateOf := func(base capacity.Milliseconds) float64 {
		p := Profile{Base: base, PerRequest: 0.35, PerPrefillToken: 0.14, BatchLimit: 43}
		q, ok := NewQueue(p, capacity.TokenShape{Input: 689, Output: 168}, Arrivals{})
		require.True(t, ok)
		return float64(q.MaxRate(capacity.SLO{ITL: 48.6}, 0.99))
	}
	before := rateOf(30)
	require.Positive(t, before)
	for base := capacity.Milliseconds(30.01); base < 46; base += 0.01 {
		now := rateOf(base)
		require.LessOrEqual(t, now, before, "base %v ms", base)
		require.Greater(t, now, before-0.004, "base %v ms", base)
		before = now
	}
}

// A request after a long pause misses what a warm replica keeps at a higher rate.
func TestAColdFirstTokenDoesNotDecideTheSize(t *testing.T) {
	short := capacity.TokenShape{Input: 256, Output: 256}
	slo := capacity.SLO{TTFT: 24}
	require.Greater(t, float64(queueOf(t, overlapped, short, 0).Promise(0.1, MeanShare).TTFT), 24.0)
	assert.Greater(t, float64(overlapped.MaxRate(short, slo, 1)), 1.0)
	for _, share := range []float64{MeanShare, 0.9} {
		assert.Greater(t, float64(queueOf(t, overlapped, short, 0).MaxRate(slo, share)), 1.0, "share %v", share)
	}
}

// The deeper the overload, the more is turned away; nothing becomes no number.
func TestAnOverloadedQueueStillAnswers(t *testing.T) {
	q := queueOf(t, overlapped, conv, 0)
	top := q.MaxRate(capacity.SLO{}, MeanShare)
	last := 0.0
	for _, factor := range []float64{0.5, 0.99, 1, 1.001, 1.1, 2, 50, 1e6} {
		s := q.At(top * capacity.Rate(factor))
		assert.GreaterOrEqual(t, float64(s.TTFT), last, "factor %v", factor)
		assert.LessOrEqual(t, float64(s.Served), float64(top)*1.002, "factor %v", factor)
		assert.LessOrEqual(t, s.InService, 256+1e-9)
		last = float64(s.TTFT) * (1 - 1e-6)
	}
}

func TestTheCacheLimitsTheQueue(t *testing.T) {
	long := capacity.TokenShape{Input: 8000, Output: 400}
	q := queueOf(t, overlapped, long, 0)
	assert.Equal(t, 54, q.batch(), "447,936 tokens hold 54 requests of 8,200")
	_, ok := NewQueue(Profile{}, long, Arrivals{})
	assert.False(t, ok)
	assert.Zero(t, Queue{}.MaxRate(capacity.SLO{}, 0.99))
	_, ok = NewQueue(overlapped, capacity.TokenShape{Input: 1, Output: capacity.Tokens(math.Inf(1))}, Arrivals{})
	assert.False(t, ok)
	_, ok = NewQueue(Profile{Base: capacity.Milliseconds(math.Inf(1))}, conv, Arrivals{})
	assert.False(t, ok)
	assert.Zero(t, q.At(capacity.Rate(math.NaN())).Served)
}

// A round sizes every variant once, so a size must cost far less than a millisecond.
func BenchmarkMaxRate(b *testing.B) {
	for b.Loop() {
		q, _ := NewQueue(overlapped, conv, Arrivals{})
		q.MaxRate(capacity.SLO{TTFT: 500, ITL: 20}, 0.99)
	}
}

func BenchmarkEstimate(b *testing.B) {
	l := watch(overlapped, spread, 0.05)
	for b.Loop() {
		l.Estimate(Profile{})
	}
}

// What is reckoned with where nothing is said: vLLM's batch on large devices, and ten
// places to wait for each in the batch.
func TestWhatAQueueTakesForGranted(t *testing.T) {
	q := queueOf(t, Profile{Base: 10, PerRequest: 0.01}, square, 0)
	assert.Equal(t, 1024, q.batch())
	assert.Equal(t, 10240, q.waiting)
	assert.Equal(t, 7, queueOf(t, small, square, 7).waiting)
	endless := Profile{Base: 10, KVTokens: 1e15, BatchLimit: 1 << 30}
	assert.Equal(t, 65536, queueOf(t, endless, square, 0).batch(), "no server has more, and each takes memory here")
}

// One server whose requests may not wait at all: with a share of 0.995 it may be busy for
// half a per cent of the time, a hundred times less than what one in service would serve.
func TestARateThatIsNextToNothingIsFound(t *testing.T) {
	q := queueOf(t, Profile{Base: 10, BatchLimit: 1}, square, 100)
	alone := q.At(1e-9)
	got := q.MaxRate(capacity.SLO{TTFT: alone.TTFT}, 0.995)
	assert.InEpsilon(t, 0.005*1000*q.service[1], float64(got), 0.05)
}

// Rates from a thousandth of what one in service serves to 999 thousandths of what all
// do are asked about, and no others.
func TestTheEndsOfTheRatesThatAreAskedAbout(t *testing.T) {
	q := queueOf(t, Profile{Base: 10, BatchLimit: 1}, square, 100)
	full := 1000 * q.service[1]
	assert.InEpsilon(t, 0.999*full, float64(q.MaxRate(capacity.SLO{}, MeanShare)), 1e-9)

	// Of one server without a place to wait, the share that finds it busy is its load.
	alone := capacity.SLO{TTFT: q.At(1e-9).TTFT}
	assert.InEpsilon(t, 0.0011*full, float64(q.MaxRate(alone, 1-0.0011)), 1e-3)
	assert.Zero(t, q.MaxRate(alone, 1-0.0009))
}

// A replica that is as fast whatever it serves takes 5 + 127*10 ms for each.
func TestAPublishedFormWithoutSlopes(t *testing.T) {
	flat := FourParameter{Alpha: 10, Gamma: 5, MaxBatchSize: 4}.Profile()
	s := queueOf(t, flat, square, 40).At(0.5)
	assert.InDelta(t, 10, float64(s.ITL), 1e-9)
	assert.InDelta(t, 5, float64(s.Prefill), 1e-9)
}

func TestAQueueToWhichNobodyComes(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN()} {
		s := queueOf(t, small, square, 40).At(capacity.Rate(rate))
		assert.Zero(t, s.ITL, "%v", rate)
		assert.Zero(t, s.TTFT, "%v", rate)
		assert.Zero(t, s.Served, "%v", rate)
	}
}

// Who is alone finds the replica as one request does.
func TestMeansOfAQueueThatIsNearlyEmpty(t *testing.T) {
	for name, p := range map[string]Profile{"linear": llama8B, "overlapped": overlapped} {
		s, alone := queueOf(t, p, conv, 0).At(1e-4), p.Steady(1, conv)
		assert.InEpsilon(t, float64(alone.ITL), float64(s.ITL), 1e-3, name)
		assert.InDelta(t, 0, float64(s.Wait), 1e-6, name)
	}
}

func TestNoQueueOfWhatIsNoNumber(t *testing.T) {
	for name, p := range map[string]Profile{
		"no number":     {Base: 1, PerRequest: capacity.Milliseconds(math.NaN()), BatchLimit: 4},
		"in no time":    {Base: 1, PerRequest: -1, BatchLimit: 4},
		"before it was": {Base: 1, PerRequest: -2, BatchLimit: 4},
	} {
		_, ok := NewQueue(p, square, Arrivals{})
		assert.False(t, ok, name)
	}
}

// Both ways to a quantile come to the same: through the means, and without them.
func TestAPromiseIsTheQuantileOfTheSteadyState(t *testing.T) {
	for _, burst := range []float64{1, 4} {
		q, ok := NewQueue(small, square, Arrivals{Burst: burst, Waiting: 400})
		require.True(t, ok)
		for _, part := range []float64{0, 0.3, 0.7, 0.9} {
			rate := capacity.Rate(1000 * part * q.service[q.batch()])
			for _, share := range []float64{0.5, 0.9, 0.99} {
				want, got := q.At(rate).Quantile(share), q.Promise(rate, share)
				assert.InEpsilon(t, float64(want.TTFT), float64(got.TTFT), 1e-9, "burst %v, load %v, share %v", burst, part, share)
				assert.InEpsilon(t, float64(want.ITL), float64(got.ITL), 1e-9, "burst %v, load %v, share %v", burst, part, share)
			}
		}
	}
}

// Without arrivals nobody is served and nobody waits.
func TestAQueueWithoutArrivals(t *testing.T) {
	for _, burst := range []float64{1, 4} {
		q, ok := NewQueue(small, square, Arrivals{Burst: burst})
		require.True(t, ok)
		assert.Equal(t, Queueing{queue: q, share: []float64{1, 0, 0, 0, 0}}, q.At(0), "burst %v", burst)
	}
}

// At the very rate that a replica can serve it never catches up.
func TestAQueueAtItsLimitHasNoQuantile(t *testing.T) {
	q := queueOf(t, small, square, 0)
	s := q.At(capacity.Rate(1000 * q.service[q.batch()]))
	require.InDelta(t, 1, s.load, 0)
	got := s.Quantile(0.5)
	assert.True(t, math.IsInf(float64(got.TTFT), 1) && math.IsInf(float64(got.ITL), 1), "%+v", got)
}

// The share that finds nobody there is met up to the end of that state.
func TestAQuantileOfAnExactShare(t *testing.T) {
	s := Queueing{queue: queueOf(t, small, square, 0), share: []float64{0.5, 0.25, 0.125, 0.0625, 0.03125}}
	first, itl := s.latencies(0.5)
	assert.Equal(t, capacity.SLO{TTFT: capacity.Milliseconds(first), ITL: capacity.Milliseconds(itl)}, s.Quantile(0.5))
}

func TestNothingIsKnownOfAnUnknownProfile(t *testing.T) {
	for _, p := range []Profile{{}, {PerRequest: 1}, {Form: FourParameters, PerRequest: 1, Gamma: 3}} {
		_, ok := NewQueue(p, square, Arrivals{})
		assert.False(t, ok, "%+v", p)
	}
	_, ok := NewQueue(small, capacity.TokenShape{Input: 5}, Arrivals{})
	assert.False(t, ok)
}
