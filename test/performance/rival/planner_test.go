package rival

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// The examples are those of ai-dynamo/dynamo, planner/tests/unit: test_state_machine.py,
// test_load_based_scaling.py and test_easy_scaling.py.

// trained is a model of passes whose time is a plane over their tokens.
func trained(a, b, c float64, points ...[2]float64) engineModel {
	var e engineModel
	for _, p := range points {
		e.input.add(p[0])
		e.decoded.add(p[1] / 10)
		e.prefill.add(p[0])
		e.add(enginePass{p[0], p[1], a + b*p[0] + c*p[1]})
	}
	return e
}

// prefillOnly are passes of so many prompt tokens.
func prefillOnly(a, b float64, tokens ...float64) engineModel {
	var points [][2]float64
	for _, x := range tokens {
		points = append(points, [2]float64{x, 0})
	}
	return trained(a, b, 0, points...)
}

func TestPublishedEngineRegression(t *testing.T) {
	var empty engineModel
	_, known := empty.firstToken(0, 0, 2048)
	assert.False(t, known, "too little is known")
	assert.Zero(t, empty.rate(2048, 150, engineBounds{budget: 4096}, 500, 50))

	e := prefillOnly(0, 0.001, 100, 200, 300, 400, 500)
	first, known := e.firstToken(5000, 0, 2048)
	assert.True(t, known)
	assert.InDelta(t, 5300, first, 1e-6, "three passes: 5000 queued tokens and 300 of its own")

	e = prefillOnly(0, 0.001, 1000, 2000, 3000)
	assert.InDelta(t, 2000, e.input.mean(), 1e-9)

	e = prefillOnly(1e-3, 1e-5, 1500, 1750, 2000, 2250, 2500)
	own, _ := e.firstToken(0, 0, 2048)
	with, _ := e.firstToken(2000, 0, 2048)
	assert.InDelta(t, 21, own, 1e-6, "published: about 21 ms")
	assert.InDelta(t, 42, with, 1e-6, "published: about 42 ms")

	e = prefillOnly(1, -1e-5, 100, 200, 300, 400, 500)
	assert.False(t, e.ready(), "published: more work that takes less time is no model")
}

func TestEngineRegressionFindsThePlane(t *testing.T) {
	points := [][2]float64{{100, 5000}, {900, 5000}, {100, 40000}, {500, 20000}, {300, 9000}, {0, 0}}
	e := trained(0.01, 2e-5, 3e-7, points...)
	require.True(t, e.ready())
	assert.InDelta(t, 0.01, e.a, 1e-9)
	assert.InDelta(t, 2e-5, e.b, 1e-12)
	assert.InDelta(t, 3e-7, e.c, 1e-14)

	// Points on a line say one slope alone: the plane is the flattest that has it.
	e = trained(0.001, 0.001, 0.0001, [][2]float64{{100, 1000}, {200, 2000}, {300, 3000}, {400, 4000}, {500, 5000}}...)
	require.True(t, e.ready())
	assert.InDelta(t, 0.002/101, e.b, 1e-9)
	assert.InDelta(t, 0.02/101, e.c, 1e-9)
	assert.InDelta(t, 0.001, e.a, 1e-9)
}

func TestEngineRegressionKeepsAllConditions(t *testing.T) {
	var e engineModel
	for i := range 5 {
		e.add(enginePass{float64(100 * i), float64(1000 * i), 0.01})
	}
	for range 500 {
		e.add(enginePass{100, 1000, 0.02})
	}
	assert.Equal(t, passesKept, e.count)
	assert.Len(t, e.passes(), passesKept)
	assert.Contains(t, e.passes(), enginePass{400, 4000, 0.01}, "what is rare stays")
	e.add(enginePass{800, 8000, 0.03})
	assert.Equal(t, passesKept, e.count)
	assert.Contains(t, e.passes(), enginePass{800, 8000, 0.03})
}

// loadMode is a planner in load mode with one model.
func loadMode(e engineModel, ttft, itl, cache float64) *planner {
	return &planner{
		mode: plannerLoad, target: plannerSLA, sensitivity: 0.8, ttft: []float64{ttft}, itl: []float64{itl},
		models: []plannedModel{{engine: e, bounds: engineBounds{budget: 2048, cache: cache}, floor: 1}},
	}
}

func TestPublishedLoadSteps(t *testing.T) {
	slow := func() engineModel { return prefillOnly(1e-3, 1e-5, 500, 1000, 1500, 2000, 2500) }
	own := func() engineModel { return prefillOnly(1e-3, 1e-5, 1500, 1750, 2000, 2250, 2500) }
	heavy := func() engineModel { return prefillOnly(0.002, 0.001, 500, 1000, 1500, 2000, 2500) }
	mixed := func() engineModel {
		return trained(1e-3, 1e-4, 1e-5, [][2]float64{{100, 5000}, {200, 15000}, {300, 25000}, {400, 35000}, {500, 45000}}...)
	}
	decode := func() engineModel {
		e := trained(1e-3, 0, 1e-5, [][2]float64{{0, 5000}, {0, 10000}, {0, 20000}, {0, 30000}, {0, 40000}}...)
		e.decoded = passMean{[]float64{1000}}
		return e
	}
	none := math.Inf(1)
	for _, c := range []struct {
		name             string
		engine           engineModel
		ttft, itl, cache float64
		engines          int
		has              engineReport
		want             int
	}{
		{"all miss the first token", heavy(), 5, none, 0, 1, engineReport{queued: 10000}, 2},
		{"all miss the further tokens", decode(), none, 5, 0, 1, engineReport{cached: 50000}, 2},
		{"the queue of two is too much for one", slow(), 100, none, 0, 2, engineReport{queued: 30000}, 3},
		{"empty queues are not", slow(), 100, none, 0, 2, engineReport{}, 1},
		{"of ten, only the queue grows", slow(), 100, none, 0, 10, engineReport{queued: 2000}, 9},
		{"the own time counts once", own(), 50, none, 0, 2, engineReport{queued: 1000}, 1},
		{"the own time alone is too long", own(), 15, none, 0, 2, engineReport{}, 3},
		{"the further tokens allow it", decode(), none, 100, 100_000, 2, engineReport{cached: 1500}, 1},
		{"the further tokens forbid it", decode(), none, 100, 100_000, 2, engineReport{cached: 8000}, 2},
		{"the cache forbids it", decode(), none, 10_000, 100_000, 2, engineReport{cached: 60_000}, 2},
		{"without a known cache the latency decides", decode(), none, 100, 0, 2, engineReport{cached: 1500}, 1},
		{"the first token forbids what the further ones allow", mixed(), 500, 1000, 100_000, 2, engineReport{cached: 30_000}, 2},
		{"both allow it", mixed(), 2000, 1000, 100_000, 2, engineReport{cached: 10_000}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := loadMode(c.engine, c.ttft, c.itl, c.cache)
			got, known := p.step(0, slices.Repeat([]engineReport{c.has}, c.engines))
			assert.True(t, known)
			assert.Equal(t, c.want, got)
		})
	}
	_, known := loadMode(engineModel{}, 5, 5, 0).step(0, []engineReport{{queued: 10000}})
	assert.False(t, known, "published: too little is known")
}

func TestPublishedThresholds(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency bool
		reports []engineReport
		want    int
	}{
		{"throughput: above all of the cache", false, []engineReport{{cached: 80000, queued: 30000}}, 1},
		{"throughput: below 60 %", false, []engineReport{{cached: 40000}, {cached: 40000}}, -1},
		{"throughput: in between", false, []engineReport{{cached: 70000}, {cached: 70000}}, 0},
		{"latency: above 40 %", true, []engineReport{{cached: 45000}}, 1},
		{"latency: below 10 %", true, []engineReport{{cached: 5000}, {cached: 5000}}, -1},
		{"any one above is enough", false, []engineReport{{cached: 50000}, {cached: 80000, queued: 30000}}, 1},
		{"all have to be below", false, []engineReport{{cached: 20000}, {cached: 70000}}, 0},
		{"the last one stays", false, []engineReport{{}}, 0},
	} {
		assert.Equal(t, c.want, thresholdStep(c.reports, 100_000, c.latency), c.name)
	}
	assert.Zero(t, thresholdStep([]engineReport{{cached: 80000}}, 0, false), "published: without a known cache nothing")
}

func TestEngineRate(t *testing.T) {
	// A pass with n requests of 1000 and 100 tokens takes 10 + 0.1*n + 1.05*n ms.
	e := trained(0.01, 1e-5, 1e-6, [][2]float64{{0, 0}, {500, 0}, {0, 50000}, {500, 50000}, {100, 9000}}...)
	e.input = passMean{[]float64{1000}}
	none := math.Inf(1)
	rate := func(n float64) float64 { return n / (100 * (0.01 + 0.00115*n)) }
	for _, c := range []struct {
		name      string
		limits    engineBounds
		ttft, itl float64
		want      float64
	}{
		{"up to the time between tokens", engineBounds{budget: 8192}, none, 50, rate(34)},
		{"up to the time to the first token", engineBounds{budget: 8192}, 46, none, rate(22)},
		{"up to the cache", engineBounds{budget: 8192, cache: 21_500}, none, 50, rate(20)},
		{"up to the sequences", engineBounds{budget: 8192, sequences: 8}, none, 50, rate(8)},
		{"up to what can be prefilled", engineBounds{budget: 110}, none, 50, rate(10)},
		{"one, where none keeps the targets", engineBounds{budget: 8192}, none, 5, rate(1)},
	} {
		assert.InDelta(t, c.want, e.rate(1000, 100, c.limits, c.ttft, c.itl), 1e-9, c.name)
	}
	assert.Zero(t, e.rate(0, 100, engineBounds{budget: 8192}, none, 50), "unknown lengths")
}

// profiled is a variant that the autoscalers know.
func profiled(v replay.Variant) replay.Variant {
	v.Given = v.Profile
	return v
}

func TestPlannerPlansWhatItForecasts(t *testing.T) {
	y := newToy([]int{2}, profiled(toyVariant("a", 5, 0, -1)))
	p, err := newPlanner(y.scenario, spec(t, "planner:itl=50,isl=900,osl=200"), []int{0})
	require.NoError(t, err)
	model := &y.view.Models[0]
	_, known := p.plan(seconds(180), 0, model)
	assert.False(t, known, "nothing is known of the load")
	model.Gateway = []replay.GatewayScrape{{At: seconds(1)}, {At: seconds(180), Gateway: simulation.Gateway{Dispatched: 1800}}}
	_, known = p.plan(seconds(180), 0, model)
	assert.False(t, known, "nothing is known of the lengths")
	pod := &model.Variants[0].Pods[0]
	pod.Scrapes = []replay.Scrape{
		{At: seconds(1)}, {At: seconds(180), Metrics: simulation.Metrics{Finished: 10, Input: 9000, Output: 2000}},
	}
	// The toy's profile is 10 ms a pass whatever it holds: ten at a time make ten tokens each.
	each := 10 / (200 * 0.01)
	assert.InDelta(t, each, p.models[0].engine.rate(900, 200, p.models[0].bounds, math.Inf(1), 50), 1e-6)
	got, known := p.plan(seconds(180), 0, model)
	assert.True(t, known)
	assert.Equal(t, int(math.Ceil(float64(1800)/179/each)), got)

	// A window without requests keeps the lengths.
	model.Gateway = []replay.GatewayScrape{{At: seconds(200)}, {At: seconds(360)}}
	pod.Scrapes = []replay.Scrape{{At: seconds(200)}, {At: seconds(360)}}
	got, known = p.plan(seconds(360), 0, model)
	assert.True(t, known)
	assert.Equal(t, 0, got)
	assert.InDelta(t, 900, p.models[0].input.next(), 1e-9)
}

func TestPlannerSettings(t *testing.T) {
	y := newToy([]int{1}, profiled(toyVariant("a", 5, 0, -1)))
	p := baseline(t, "planner", y.scenario, 0)
	assert.Equal(t, 5*time.Second, p.Next(-1))
	assert.Equal(t, 10*time.Second, p.Next(seconds(5)))
	assert.Equal(t, seconds(180), p.Next(seconds(177)))
	assert.Equal(t, seconds(7), baseline(t, "planner:reaction=7s,interval=60s", y.scenario, 0).Next(0))
	assert.Equal(t, seconds(60), baseline(t, "planner:reaction=7s,interval=60s", y.scenario, 0).Next(seconds(56)))
	for _, want := range []replay.Parameter{
		{Name: "mode", Value: "throughput"}, {Name: "target", Value: "sla"}, {Name: "ttftMs", Value: "none"}, {Name: "predictor", Value: "constant"}, {Name: "throughputAdjustmentInterval", Value: "3m0s"}, {Name: "minEndpoint", Value: "1"},
		{Name: "maxReplicas", Value: "1000 (instead of a budget of devices: the variant's bound, else what empty nodes hold)"},
	} {
		assert.Contains(t, p.Parameters(), want)
	}
	for text, says := range map[string]string{
		"planner:target=latency":                 "target has no effect; expected it with mode=load",
		"planner:mode=load,target=latency,itl=9": "itl has no effect; expected it with target=sla",
		"planner:sensitivity=50":                 "sensitivity has no effect; expected it with mode=load or mode=both",
		"planner:mode=load,predictor=kalman":     "predictor has no effect; expected it with mode=throughput or mode=both",
		"planner:noise=3":                        "noise has no effect; expected it with predictor=kalman",
	} {
		_, err := newBaseline(text, y.scenario, []int{0})
		require.ErrorContains(t, err, says, text)
	}
	assert.NoError(t, replay.CheckPolicy("planner:target=sla"))
	assert.Contains(t, baseline(t, "planner:mode=load,target=latency", y.scenario, 0).Parameters(), replay.Parameter{Name: "loadAdjustmentInterval", Value: "5s"})
	assert.Contains(t, baseline(t, "planner:mode=both,predictor=kalman,ttft=400", y.scenario, 0).Parameters(), replay.Parameter{Name: "ttftMs", Value: "400"})
}

func TestPlannerTakesOneStepAtATime(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
	}{
		// Ten of a thousand tokens fill a cache, and what waits is more: one up whenever the
		// last one serves. Below 60 % of it one goes at a time, until one is left.
		{"planner:mode=load,target=throughput", []string{
			"15s [2]", "1m30s [3]", "2m45s [4]", "4m0s [5]", "5m15s [6]", "10m0s [5]", "10m15s [4]", "10m30s [3]", "10m45s [2]", "11m0s [1]",
		}},
	} {
		y := newToy([]int{1}, profiled(toyVariant("a", 5, 0, -1)))
		y.inFlight = until(10*time.Minute, 60, 2)
		got := y.play(baseline(t, c.name, y.scenario, 0), 12*time.Minute)
		assert.Equal(t, c.want, got, c.name)
	}
}
