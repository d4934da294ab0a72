package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// rememberedAs is what a Prometheus would say of a load that went so: independent arrivals
// from an hour before the epoch's time of day on.
func rememberedAs(random *rand.Rand, ago time.Duration, rate func(time.Duration) float64) History {
	h := History{Ago: ago, From: epoch.Add(-ago - time.Hour), Step: HistoryStep}
	for at := -time.Hour; at < 3*time.Hour; at += HistoryStep {
		arrived := 0.0
		for second := at; second < at+HistoryStep; second += time.Second {
			arrived += poisson(random, rate(second))
		}
		h.Rates = append(h.Rates, arrived/HistoryStep.Seconds())
	}
	return h
}

// remembering is the belief after n counts of a rate that changes with time, beside what is
// known of earlier days.
func remembering(random *rand.Rand, n int, history []History, rate func(time.Duration) float64) Belief {
	var f Belief
	for i := range n {
		at := time.Duration(i+1) * countedEvery
		count := poisson(random, rate(at-countedEvery/2)*countedEvery.Seconds())
		f = f.Observe(epoch.Add(at), Count{Rate: capacity.Rate(count / countedEvery.Seconds()), Span: countedEvery, Shape: conv}, history)
	}
	return f
}

// morning is a load that triples within ten minutes, an hour after the epoch.
func morning(at time.Duration) float64 {
	return 20 + 40*min(1, max(0, (at-time.Hour).Minutes()/10))
}

func TestARiseOfYesterdayIsExpectedToday(t *testing.T) {
	const lead = 5 * time.Minute
	const at = 57 * time.Minute
	before := int(at / countedEvery)
	for _, ago := range HistoryAgo {
		random := rand.New(rand.NewPCG(1, 2))
		history := []History{rememberedAs(random, ago, morning)}
		knows := remembering(random, before, history, morning)
		without := remembering(rand.New(rand.NewPCG(1, 3)), before, nil, morning)
		assert.Greater(t, knows.Quantile(risk, lead, history), morning(at+lead), "%s ago", ago)
		assert.Less(t, without.Quantile(risk, lead, nil), 0.8*morning(at+lead), "the load of today does not say it")
		assert.InEpsilon(t, 20, knows.mean(), 0.15, "and what is there now is what was counted")
	}
}

func TestADayThatIsOtherThanYesterdayIsBelieved(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	history := []History{rememberedAs(random, HistoryAgo[0], morning)}
	after := int(80 * time.Minute / countedEvery)
	today := remembering(random, after, history, steadily(20))
	assert.InEpsilon(t, 20, today.mean(), 0.1)
	assert.Less(t, today.Quantile(risk, time.Minute, history), 1.3*20)
	// A day of twice the size moves alike.
	twice := remembering(random, int(57*time.Minute/countedEvery), history, func(at time.Duration) float64 { return 2 * morning(at) })
	assert.Greater(t, twice.Quantile(risk, 5*time.Minute, history), 2*morning(62*time.Minute))
}

func TestAHistoryThatNobodyKnowsChangesNothing(t *testing.T) {
	unknown := rememberedAs(rand.New(rand.NewPCG(1, 2)), HistoryAgo[0], morning)
	for i := range unknown.Rates {
		unknown.Rates[i] = math.NaN()
	}
	gone := rememberedAs(rand.New(rand.NewPCG(1, 2)), HistoryAgo[0], morning)
	gone.From = gone.From.Add(-6 * time.Hour)
	idle := rememberedAs(rand.New(rand.NewPCG(1, 2)), HistoryAgo[0], steadily(0))
	other := rememberedAs(rand.New(rand.NewPCG(1, 2)), 48*time.Hour, morning)
	want := remembering(rand.New(rand.NewPCG(1, 3)), 80, nil, morning)
	for _, history := range [][]History{{unknown}, {gone}, {idle}, {other}, {{Ago: HistoryAgo[0], From: epoch, Step: HistoryStep}}} {
		got := remembering(rand.New(rand.NewPCG(1, 3)), 80, history, morning)
		require.Equal(t, want, got)
		require.InDelta(t, want.Quantile(risk, time.Minute, nil), got.Quantile(risk, time.Minute, history), 0)
	}
}

// What was known and no longer is, as when the manager cannot read it, leaves a belief that
// goes on as one without.
func TestAHistoryThatEndsIsLetGo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	history := []History{rememberedAs(random, HistoryAgo[0], morning)}
	f := remembering(random, 80, history, morning)
	require.Positive(t, f.LikeEarlier())
	f = f.Observe(f.Sampled.Add(countedEvery), Count{Rate: 20, Span: countedEvery, Shape: conv}, nil)
	assert.Zero(t, f.LikeEarlier())
	sum := 0.0
	for _, m := range f.Modes {
		sum += m.Probability
	}
	assert.InDelta(t, 1, sum, 1e-9)
	assert.InEpsilon(t, 20, f.Quantile(0.5, time.Minute, nil), 0.3)
}

func TestCourseOfAHistory(t *testing.T) {
	rates := []float64{100, 200, 100, 100, 0, 0, 100, math.NaN(), 100, 100}
	step := 100 * time.Second
	cases := []struct {
		name         string
		from, during time.Duration
		want         course
	}{
		{"from one count to the next", 50 * time.Second, step, course{before: 100, change: 100, variance: 3 * (100 + 200) / 100.0, known: true}},
		{"parts of two counts", 100 * time.Second, step / 2, course{before: 150, change: 50, variance: 3 * (150 + 200) / 100.0 / 4, known: true}},
		{"further on", 50 * time.Second, 2 * step, course{before: 100, variance: 3 * (100 + 100) / 100.0, known: true}},
		{"before the middle of the first", 49 * time.Second, step, course{}},
		{"from nothing", 450 * time.Second, step, course{}},
		{"to nothing", 350 * time.Second, step, course{}},
		{"to what is unknown", 650 * time.Second, step, course{}},
		{"from what is unknown", 750 * time.Second, step, course{}},
		{"beyond the last", 940 * time.Second, 11 * time.Second, course{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := History{From: epoch, Step: step, Rates: rates}
			got := h.course(epoch.Add(c.from), c.during, 3)
			assert.Equal(t, c.want.known, got.known)
			assert.InDelta(t, c.want.before, got.before, 1e-9)
			assert.InDelta(t, c.want.change, got.change, 1e-9)
			assert.InDelta(t, c.want.variance, got.variance, 1e-9)
		})
	}
}

func TestALoadGoesAlongWithADayOfItsSize(t *testing.T) {
	c := course{before: 10, change: 20, variance: 4, known: true}
	for _, want := range []struct{ level, later, variance float64 }{
		{5, 15, 9*2 + 1}, {10, 30, 9*2 + 4}, {19, 57, 9*2 + 4*1.9*1.9},
		// It is more than twice as large: the rest of it had no part in what was seen then.
		{30, 70, 2 + 16}, {1000, 1040, 2 + 16}, {0, 0, 9 * 2}, {-1, -1, 9 * 2},
	} {
		m := Mode{Level: want.level, Variance: 2}.along(c)
		assert.InDelta(t, want.later, m.Level, 1e-9)
		assert.InDelta(t, want.variance, m.Variance, 1e-9)
	}
	m := Mode{Level: 3, Variance: 2}
	assert.Equal(t, m, m.along(course{known: true}), "nothing is known of any other way to move")
	assert.InDelta(t, 80, Mode{Level: 100}.along(course{before: 15, change: -10, known: true}).Level, 1e-9)
}

// A job that once ran at this time for nobody but itself asks for what it was, and not for as
// many times the load of today.
func TestWhatWasNextToNothingThenBuysNoHundreds(t *testing.T) {
	spike := func(at time.Duration) float64 {
		if at >= time.Hour && at < 70*time.Minute {
			return 100
		}
		return 0.05
	}
	random := rand.New(rand.NewPCG(1, 2))
	history := []History{rememberedAs(random, HistoryAgo[0], spike), rememberedAs(random, HistoryAgo[1], spike)}
	for i := range history {
		for j, rate := range history[i].Rates {
			history[i].Rates[j] = max(rate, 0.003)
		}
	}
	for n := 200; n < 300; n++ {
		today := remembering(rand.New(rand.NewPCG(1, 3)), n, history, steadily(50))
		require.Less(t, today.Quantile(0.99, 5*time.Minute, history), 50+2*100*1.2)
	}
}

// A yesterday that says the contrary all the time asks for hardly anything.
func TestAWrongYesterdayCostsHardlyAnything(t *testing.T) {
	swings := func(at time.Duration) float64 { return 40 + 20*math.Sin(2*math.Pi*at.Hours()) }
	for name, today := range map[string]func(time.Duration) float64{
		"steady": steadily(20), "the other way": func(at time.Duration) float64 { return 80 - swings(at) },
	} {
		t.Run(name, func(t *testing.T) {
			history := []History{rememberedAs(rand.New(rand.NewPCG(1, 2)), HistoryAgo[0], swings)}
			random := rand.New(rand.NewPCG(1, 3))
			var misled, plain Belief
			with, without := 0.0, 0.0
			for at := countedEvery; at < 150*time.Minute; at += countedEvery {
				seen := Count{Rate: capacity.Rate(poisson(random, today(at-countedEvery/2)*countedEvery.Seconds()) / countedEvery.Seconds()), Span: countedEvery, Shape: conv}
				misled = misled.Observe(epoch.Add(at), seen, history)
				plain = plain.Observe(epoch.Add(at), seen, nil)
				with += misled.Quantile(risk, 5*time.Minute, history)
				without += plain.Quantile(risk, 5*time.Minute, nil)
			}
			assert.Less(t, with, 1.02*without)
		})
	}
}

// A load that is the same all day, and was yesterday, but for five minutes of yesterday of which
// Prometheus says a thousand times as much, as where two of them count in turns, or somebody tried
// what the servers bear.
func TestOneCountOfYesterdayIsNoRise(t *testing.T) {
	const lead = 5 * time.Minute
	for _, times := range []float64{1, 8, 30, 1000} {
		random := rand.New(rand.NewPCG(1, 2))
		history := []History{rememberedAs(random, HistoryAgo[0], steadily(20)), rememberedAs(random, HistoryAgo[1], steadily(20))}
		for i := range history[0].Rates {
			if history[0].From.Add(HistoryAgo[0] + time.Duration(i)*HistoryStep).Equal(epoch.Add(time.Hour)) {
				history[0].Rates[i] *= times
			}
		}
		f := remembering(random, int(57*time.Minute/countedEvery), history, steadily(20))
		q := f.Quantile(risk, lead, history)
		if times >= 30 {
			assert.Less(t, q, 10*20., "%v times: a constant load of 20 requests/s is taken to be %.0f within five minutes", times, q)
		}
	}
}
