package decision

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
func remembering(random *rand.Rand, n int, history []History, rate func(time.Duration) float64) Forecast {
	var f Forecast
	for i := range n {
		at := time.Duration(i+1) * countedEvery
		count := poisson(random, rate(at-countedEvery/2)*countedEvery.Seconds())
		f = f.observe(epoch.Add(at), counted{capacity.Rate(count / countedEvery.Seconds()), countedEvery}, conv, false, history)
	}
	return f
}

// morning is a load that triples within ten minutes, an hour after the epoch.
func morning(at time.Duration) float64 {
	return 20 + 40*min(1, max(0, (at-time.Hour).Minutes()/10))
}

func TestARiseOfYesterdayIsExpectedToday(t *testing.T) {
	const lead = 5 * time.Minute
	before := int((time.Hour + 30*time.Second) / countedEvery)
	for _, ago := range HistoryAgo {
		random := rand.New(rand.NewPCG(1, 2))
		history := []History{rememberedAs(random, ago, morning)}
		knows := remembering(random, before, history, morning)
		without := remembering(rand.New(rand.NewPCG(1, 3)), before, nil, morning)
		will := morning(time.Hour + 30*time.Second + lead)
		assert.Greater(t, knows.quantile(DefaultRisk, lead, history), will*0.95, "%s ago", ago)
		assert.Less(t, without.quantile(DefaultRisk, lead, nil), will*0.9, "the load of today does not say it")
		assert.InEpsilon(t, 20, knows.mean(), 0.15, "and what is there now is what was counted")
	}
}

func TestADayThatIsOtherThanYesterdayIsBelieved(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	history := []History{rememberedAs(random, HistoryAgo[0], morning)}
	after := int(80 * time.Minute / countedEvery)
	today := remembering(random, after, history, steadily(20))
	assert.InEpsilon(t, 20, today.mean(), 0.1)
	assert.Less(t, today.quantile(DefaultRisk, time.Minute, history), 1.3*20)
	// A day of twice the size moves alike.
	twice := remembering(random, int((time.Hour+30*time.Second)/countedEvery), history, func(at time.Duration) float64 { return 2 * morning(at) })
	assert.Greater(t, twice.quantile(DefaultRisk, 5*time.Minute, history), 2*0.95*morning(time.Hour+330*time.Second))
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
		require.InDelta(t, want.quantile(DefaultRisk, time.Minute, nil), got.quantile(DefaultRisk, time.Minute, history), 0)
	}
}

// What was known and no longer is, as when the manager cannot read it, leaves a belief that
// goes on as one without.
func TestAHistoryThatEndsIsLetGo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	history := []History{rememberedAs(random, HistoryAgo[0], morning)}
	f := remembering(random, 80, history, morning)
	require.Positive(t, f.likeEarlier())
	f = f.observe(f.Sampled.Add(countedEvery), counted{20, countedEvery}, conv, false, nil)
	assert.Zero(t, f.likeEarlier())
	sum := 0.0
	for _, m := range f.Modes {
		sum += m.Probability
	}
	assert.InDelta(t, 1, sum, 1e-9)
	assert.InEpsilon(t, 20, f.quantile(0.5, time.Minute, nil), 0.3)
}

func TestCourseOfAHistory(t *testing.T) {
	nan := math.NaN()
	busy := []float64{100, 200, 100, 100, 0, 0, 100, nan, 100, 100}
	quiet := []float64{1, 1, 1, 3, 3, 3}
	cases := []struct {
		name         string
		rates        []float64
		from, during time.Duration
		want         course
	}{
		{"from one count to the next", busy, time.Minute, 2 * time.Minute, course{growth: 2, variance: 1.0/12000 + 1.0/24000, known: true}},
		{"parts of two counts", busy, 2 * time.Minute, time.Minute, course{growth: 200.0 / 150, variance: (1.0/18000 + 1.0/24000) / 4, known: true}},
		{"few requests are counted for longer than is known", quiet, 6 * time.Minute, 0, course{}},
		{"before the middle of the first", busy, 59 * time.Second, time.Minute, course{}},
		{"to nothing", busy, 7 * time.Minute, 3 * time.Minute, course{}},
		{"to what is unknown", busy, 13 * time.Minute, 2 * time.Minute, course{}},
		{"from what is unknown", busy, 15 * time.Minute, 2 * time.Minute, course{}},
		{"beyond the last", busy, 19 * time.Minute, time.Second, course{}},
		{"too short for so few requests", quiet, 2 * time.Minute, time.Minute, course{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := History{From: epoch, Step: HistoryStep, Rates: c.rates}
			got := h.course(epoch.Add(c.from), c.during)
			assert.Equal(t, c.want.known, got.known)
			assert.InDelta(t, c.want.growth, got.growth, 1e-9)
			assert.InDelta(t, c.want.variance, got.variance, 1e-9)
		})
	}
	// What is known of a load so small is counted over twenty minutes.
	slow := History{From: epoch, Step: HistoryStep, Rates: []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1.5}}
	got := slow.course(epoch.Add(10*time.Minute), 2*time.Minute)
	require.True(t, got.known)
	assert.InDelta(t, 1.05, got.growth, 1e-9)
	assert.InDelta(t, (1.0/1200+1.0/1260)/100, got.variance, 1e-9)
}
