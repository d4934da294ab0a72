package rival

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// tells is a replica of a toy that says so much of itself.
func tells(m simulation.Metrics) replay.Pod {
	return replay.Pod{
		Replica: simulation.Replica{Stage: simulation.Serving},
		Scrapes: []replay.Scrape{{At: seconds(60), Metrics: m}},
	}
}

// full is a replica with so many requests that run and wait, and the used share of its cache
// in per cent.
func full(running, waiting, cache int) replay.Pod {
	return tells(simulation.Metrics{Running: running, Waiting: waiting, KVUsed: cache, KVCapacity: 100})
}

func gatewayOf(queue int) []replay.GatewayScrape {
	return []replay.GatewayScrape{{At: seconds(60), Gateway: simulation.Gateway{Queue: queue}}}
}

func modelOf(queue int, pods ...replay.Pod) *replay.ModelView {
	return &replay.ModelView{Gateway: gatewayOf(queue), Variants: []replay.VariantView{{Replicas: len(pods), Pods: pods}}}
}

func TestWhatTheRouterSaysOfAPool(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *replay.ModelView
		want  pool
	}{
		// 10/100/0.8 = 0.125 and 30/100/0.8 = 0.375, in the mean 0.25.
		{"half empty: the caches count", modelOf(0, full(4, 0, 10), full(8, 0, 30)), pool{0, 12, 0.25}},
		// 4/5 against 40/80, and nothing waits at the second one.
		{"some wait in the replicas", modelOf(0, full(8, 4, 40), full(8, 0, 40)), pool{0, 20, (0.8 + 0.5) / 2}},
		// 16 wait, of which 10 would be sent on: 6 are held back, of each replica 3/8 of what waits.
		{"more wait than five each", modelOf(0, full(8, 8, 20), full(8, 8, 20)), pool{6, 26, 1}},
		{"the caches are full: all that waits is held back", modelOf(0, full(8, 3, 80), full(8, 1, 90)), pool{4, 16, (1 + 1.125) / 2}},
		{"no replica serves: the gateway's queue, and full", modelOf(7), pool{7, 0, 1}},
		{"both queues", modelOf(2, full(8, 11, 0)), pool{8, 13, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := poolOf(c.model)
			assert.InDelta(t, c.want.queue, got.queue, 1e-9, "queue")
			assert.InDelta(t, c.want.running, got.running, 1e-9, "running")
			assert.InDelta(t, c.want.saturation, got.saturation, 1e-9, "saturation")
		})
	}
}

// asks is what the triggers of a recipe ask for at once, before windows and rates.
func asks(t *testing.T, name string, model *replay.ModelView) []int {
	t.Helper()
	s, ok := baseline(t, name, gatewayToy().scenario, 0).(*signals)
	require.True(t, ok)
	var out []int
	for _, one := range s.all {
		out = append(out, int(math.Ceil(one.value(model)/one.target-1e-9)))
	}
	return out
}

// gatewayToy is a toy with one variant, and with a gateway.
func gatewayToy() *toy {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
	y.scenario.Collection = replay.Collection{Scrape: seconds(15), Window: time.Minute, Gateway: true}
	return y
}

func TestTriggersOfTheRecipes(t *testing.T) {
	prefilling := func(tokens, cache int) replay.Pod {
		return tells(simulation.Metrics{Prefilling: tokens, KVUsed: cache, KVCapacity: 100})
	}
	for _, c := range []struct {
		name, recipe string
		model        *replay.ModelView
		want         []int
	}{
		{"nothing waits, and 33 run: ceil(33/16)", "llmd-queue", modelOf(0, full(33, 0, 50)), []int{0, 3}},
		{"12 wait at one replica, 7 of them held back: ceil(7/1), ceil(13/16)", "llmd-queue", modelOf(0, full(8, 12, 50)), []int{7, 1}},
		{"saturation 0.56/0.8 = 0.7 is one replica, however many there are", "llmd-saturation", modelOf(0, full(4, 0, 56), full(4, 0, 56), full(4, 0, 56)), []int{1, 1}},
		{"0.6/0.8 = 0.75 is two", "llmd-saturation", modelOf(0, full(20, 0, 60)), []int{2, 2}},
		{"47,784 tokens at 15,928 per second are 3 s: ceil(3/1.5), and ceil(0.9/0.8)", "llmd-tokens", modelOf(0, prefilling(40_000, 60), prefilling(7_784, 30)), []int{2, 2}},
		{"calibrated at half the speed it is twice as much", "llmd-tokens:velocity=7964", modelOf(0, prefilling(47_784, 0)), []int{4, 0}},
		{"three full caches", "llmd-tokens", modelOf(0, full(1, 0, 100), full(1, 0, 100), full(1, 0, 100)), []int{0, 4}},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, asks(t, c.recipe, c.model)) })
	}
}

// The published formula, by hand.
func TestTheFormulaOfTheSLORecipe(t *testing.T) {
	for _, c := range []struct {
		name            string
		s               float64
		replicas, ready int
		want            float64
	}{
		{"between the thresholds nothing changes", 0.5, 4, 4, 4},
		{"at the upper one nothing changes", 0.55, 4, 4, 4},
		{"at the lower one nothing changes", 0.40, 4, 4, 4},
		{"twice the upper one: 3 + ceil(3*(1.1/0.55-1))", 1.1, 3, 3, 6},
		{"a little above it: 3 + ceil(3*0.0909)", 0.6, 3, 3, 4},
		{"the clamp: 3 + ceil(3*(2/0.55-1)) = 3 + ceil(7.909)", 2, 3, 3, 11},
		{"half of it is on its way: 6 + ceil(6*(1.2*0.5/0.55-1)) = 6 + ceil(0.545)", 1.2, 6, 3, 7},
		{"the credit may turn it around: 6 + ceil(6*(0.6*0.5/0.55-1)) = 6 + ceil(-2.727)", 0.6, 6, 3, 4},
		{"without a ready one there is no credit: 4 + ceil(4*(0.66/0.55-1))", 0.66, 4, 0, 5},
		{"idle: 8 - floor(8*1)", 0, 8, 8, 0},
		{"half of the lower one: 8 - floor(8*0.5)", 0.2, 8, 8, 4},
		{"a little below it: 8 - floor(8*0.05)", 0.38, 8, 8, 8},
		{"downwards there is no credit: 8 - floor(8*0.25)", 0.3, 8, 4, 6},
	} {
		t.Run(c.name, func(t *testing.T) { assert.InDelta(t, c.want, sloReplicas(c.s, c.replicas, c.ready), 0) })
	}
}

// latenciesAt is what the router has counted so far: so many requests in buckets of 1 s to the
// first token, and of 0.1 s per further one.
func latenciesAt(second int, fast, slow uint64) replay.GatewayScrape {
	return replay.GatewayScrape{At: seconds(second), Latencies: &simulation.Latencies{
		FirstToken: simulation.Histogram{Bounds: []float64{1, 3}, Counts: []uint64{fast, slow, 0}},
		PerToken:   simulation.Histogram{Bounds: []float64{0.05, 0.1}, Counts: []uint64{fast, slow, 0}},
	}}
}

func TestTheSignalOfTheSLORecipe(t *testing.T) {
	y := gatewayToy()
	y.scenario.Models[0].SLO = capacity.SLO{TTFT: 2000, ITL: 100}
	p, ok := baseline(t, "llmd-slo", y.scenario, 0).(*sloRecipe)
	require.True(t, ok)
	scrapes := []replay.GatewayScrape{latenciesAt(0, 0, 0), latenciesAt(5, 1000, 0), latenciesAt(55, 1010, 30), latenciesAt(60, 1010, 40)}
	// Within the minute to second 60, 10 are fast and 40 slow: P90 is 35 of the slow ones,
	// 1 + 2*35/40 = 2.75 s of 2, and 0.05 + 0.05*35/40 = 0.09375 s of 0.1.
	assert.InDelta(t, 1.375, p.raw(0, seconds(60), scrapes), 1e-9)
	p.tpot[0] = 0.05
	assert.InDelta(t, 1.875, p.raw(0, seconds(60), scrapes), 1e-9, "the larger one of both counts")
	assert.Zero(t, p.raw(0, seconds(300), scrapes), "without requests it is 0")
	assert.Zero(t, p.raw(0, seconds(300), nil))

	// Of a mean over 45 s each value is at most 2, and one that is 45 s old counts no more.
	assert.InDelta(t, 2, p.smooth(0, seconds(15), 90), 1e-9)
	assert.InDelta(t, 1, p.smooth(0, seconds(30), 0), 1e-9)
	assert.InDelta(t, 1, p.smooth(0, seconds(45), 1), 1e-9)
	assert.InDelta(t, 0.5, p.smooth(0, seconds(60), 0.5), 1e-9)
}

func TestThePromiseThatShips(t *testing.T) {
	p, ok := baseline(t, "llmd-slo", gatewayToy().scenario, 0).(*sloRecipe)
	require.True(t, ok)
	assert.Equal(t, []float64{3}, p.ttft)
	assert.Equal(t, []float64{0.1}, p.tpot)
}

func TestBoundsOfTheRecipes(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most int
	}{
		{"llmd-queue", 1, 8}, {"llmd-saturation", 1, 10}, {"llmd-tokens", 1, 10}, {"llmd-slo", 3, 8},
		{"llmd-queue:max=20", 1, 20}, {"llmd-slo:min=1", 1, 8}, {"llmd-slo:bounds=lifted", 3, 1000}, {"llmd-slo:min=9", 9, 9},
	} {
		p := baseline(t, c.name, gatewayToy().scenario, 0)
		var r *recipe
		switch p := p.(type) {
		case *signals:
			r = &p.recipe
		case *sloRecipe:
			r = &p.recipe
		}
		assert.Equal(t, []int{c.least}, r.Least, c.name)
		assert.Equal(t, []int{c.most}, r.Most, c.name)
	}
	bounded := gatewayToy()
	bounded.scenario.Models[0].Variants[0].Policy.Min, bounded.scenario.Models[0].Variants[0].Policy.Max = 0, 2
	p, ok := baseline(t, "llmd-slo", bounded.scenario, 0).(*sloRecipe)
	require.True(t, ok)
	assert.Equal(t, []int{2}, p.Least, "the variant's own bound counts")
	assert.Equal(t, []int{2}, p.Most)

	without := gatewayToy()
	without.scenario.Collection.Gateway = false
	_, err := newBaseline("llmd-queue", without.scenario, []int{0})
	require.ErrorContains(t, err, "expected a scenario with a gateway")
}

// 70 requests in flight at one replica that serves ten: 55 are held back, so that 55 replicas
// are asked for. Both windows last 300 s, and the replicas double every 15 s then.
func TestTheQueueRecipeWaitsAndDoubles(t *testing.T) {
	y := gatewayToy()
	y.inFlight = constant(70)
	p := baseline(t, "llmd-queue", y.scenario, 0)
	assert.Equal(t, []string{"5m0s [2 0]", "5m15s [4 0]", "5m30s [8 0]"}, y.play(p, 6*time.Minute))
}

// One pod in 180 s up, and one in 300 s down, 300 s after the last one was needed at 5m45s.
func TestTheTokenRecipeTakesOneStepAtATime(t *testing.T) {
	y := gatewayToy()
	y.inFlight = until(6*time.Minute, 100, 5)
	p := baseline(t, "llmd-tokens", y.scenario, 0)
	assert.Equal(t, []string{"0s [2 1]", "3m0s [3 1]", "5m0s [3 0]", "10m45s [2 0]", "15m45s [1 0]"}, y.play(p, 20*time.Minute))
}
