package rival

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// direct fulfils the wishes of a rule at once, every 30 s.
type direct struct {
	rule saturationRule
	s    *replay.Scenario
}

func (direct) Parameters() []replay.Parameter { return nil }

func (direct) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + saturationPeriod
}

func (d direct) Decide(view *replay.View) replay.Answer {
	wanted := view.Asked()
	d.rule.wish(view, wanted)
	for m := range wanted {
		for i := range wanted[m] {
			wanted[m][i] = d.s.Models[m].Variants[i].Bounded(wanted[m][i])
		}
	}
	return replay.Answer{Replicas: wanted}
}

// rule is a policy with such a rule, or without one the published policy of that name.
func rule(t *testing.T, name string, s *replay.Scenario) replay.Policy {
	switch name {
	case "rule of saturation-v1":
		return direct{newSaturationV1(s, replay.Spec{}), s}
	case "rule of saturation-v2":
		return direct{newSaturationV2(s, replay.Spec{}), s}
	}
	return baseline(t, name, s, 0)
}

func TestSaturationFollowsALoad(t *testing.T) {
	// 60 requests in flight for ten minutes, and then 12. Ten fit on a replica, so six
	// serve the one and two serve the other.
	for _, c := range []struct {
		name string
		want []string
	}{
		// One step whenever the last one is done, until a replica uses 0.7. Less, step by
		// step, when the maxima of a minute show it, until a second step would not be safe.
		{"rule of saturation-v1", []string{
			"0s [2 0]", "1m30s [3 0]", "3m0s [4 0]", "4m30s [5 0]", "6m0s [6 0]", "7m30s [7 0]", "9m0s [8 0]",
			"11m0s [7 0]", "11m30s [6 0]", "12m0s [5 0]", "12m30s [4 0]", "13m0s [3 0]", "13m30s [2 0]",
		}},
		// 10,000 tokens in a cache of which 8,000 count, at first without lengths: two. Then 50
		// waiting prompts of 900 tokens beside: 55,000/0.85 are nine replicas. What waited a
		// minute ago still counts, and then no more. At last 10 hold 1,000 tokens each, and
		// of 80,000 tokens 10,000/0.7 are in need: eight go.
		{"rule of saturation-v2", []string{"0s [2 0]", "30s [9 0]", "1m30s [13 0]", "2m0s [15 0]", "3m30s [11 0]", "4m0s [10 0]", "11m0s [2 0]"}},
		// The same wishes, but each must last for 240 s. The second step is wished for when
		// the first one reports, at 5m30s, and taking it back at 11m30s.
		{"saturation-v1", []string{"4m0s [2 0]", "9m15s [3 0]"}},
		// All at once, but as late. What was wished for at 11m is done at 14m45s.
		{"saturation-v2", []string{"4m0s [2 0]", "4m15s [9 0]", "14m45s [2 0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play := func() []string {
				y := newToy([]int{1, 0}, toyVariant("cheap", 5, 0, -1), toyVariant("dear", 9, 0, -1))
				y.inFlight = until(10*time.Minute, 60, 12)
				return y.play(rule(t, c.name, y.scenario), 15*time.Minute)
			}
			got := play()
			assert.Equal(t, c.want, got)
			assert.Equal(t, got, play(), "the same again")
		})
	}
}

func TestSaturationWithoutReplicas(t *testing.T) {
	// The enforcer of the saturation policies keeps one, the cheapest.
	for _, name := range []string{"saturation-v1", "saturation-v2"} {
		y := newToy([]int{0, 0, 0}, toyVariant("c", 9, 0, -1), toyVariant("b", 5, 0, -1), toyVariant("a", 5, 0, -1))
		assert.Equal(t, [][]int{{0, 0, 1}}, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, name)
	}
}

func TestKeepOne(t *testing.T) {
	for _, c := range []struct {
		name     string
		variants []replay.Variant
		wanted   []int
		want     []int
	}{
		{"the cheapest, whatever its name", []replay.Variant{toyVariant("b", 5, 0, -1), toyVariant("a", 9, 0, -1)}, []int{0, 0}, []int{1, 0}},
		{"the cheapest, wherever it stands", []replay.Variant{toyVariant("a", 9, 0, -1), toyVariant("b", 5, 0, -1)}, []int{0, 0}, []int{0, 1}},
		{"of equals the first name", []replay.Variant{toyVariant("a", 5, 0, -1), toyVariant("b", 5, 0, -1)}, []int{0, 0}, []int{1, 0}},
		{"one is there already", []replay.Variant{toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1)}, []int{0, 1}, []int{0, 1}},
	} {
		keepOne(c.variants, c.wanted)
		assert.Equal(t, c.want, c.wanted, c.name)
	}
}

func TestPendingReplicaFreezesSaturationV1(t *testing.T) {
	// As published: with room for two of three, the third one is pending for ever, and
	// nothing grows or shrinks any more, not even when the load has gone.
	y := newToy([]int{1, 1}, toyVariant("cheap", 5, 0, -1), toyVariant("dear", 9, 0, -1))
	y.room, y.inFlight = 2, until(5*time.Minute, 60, 2)
	assert.Equal(t, []string{"4m0s [2 1]"}, y.play(baseline(t, "saturation-v1", y.scenario, 0), 20*time.Minute))
}

func TestPendingReplicasAreCapacityForSaturationV2(t *testing.T) {
	// As published: what never starts counts as capacity to come, so nothing else grows.
	y := newToy([]int{1, 1}, toyVariant("cheap", 5, 0, -1), toyVariant("dear", 9, 0, -1))
	y.room, y.inFlight = 2, constant(30)
	got := y.play(baseline(t, "saturation-v2", y.scenario, 0), 20*time.Minute)
	// 2*(10,000 + 5*900) = 29,000 tokens; /0.85 are five replicas of 8,000 tokens each, of
	// both variants together.
	assert.Equal(t, []string{"4m0s [2 1]", "4m15s [4 1]"}, got)
}

func TestBoundsOfSaturation(t *testing.T) {
	for _, name := range []string{"saturation-v1", "saturation-v2"} {
		y := newToy([]int{1}, toyVariant("a", 5, 0, 2))
		y.inFlight = constant(200)
		assert.Equal(t, []string{"4m0s [2]"}, y.play(baseline(t, name, y.scenario, 0), 10*time.Minute), "%s: not above its maximum", name)
		y = newToy([]int{4}, toyVariant("a", 5, 3, -1))
		y.inFlight = constant(0)
		assert.Equal(t, []string{"4m0s [3]"}, y.play(baseline(t, name, y.scenario, 0), 10*time.Minute), "%s: not below its minimum", name)
	}
}

func TestSaturationDoesNothingWithoutMetrics(t *testing.T) {
	for _, name := range []string{"saturation-v1", "saturation-v2"} {
		y := newToy([]int{3, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 5, 0, -1))
		assert.Equal(t, [][]int{{3, 1}}, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, "%s: no scrape at all", name)
		y.inFlight = constant(0)
		y.beat(0)
		y.view.Now = 2 * time.Minute
		assert.Equal(t, [][]int{{3, 1}}, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, "%s: only an old one", name)
	}
}

func TestSaturationKeepsItsWishWithoutMetrics(t *testing.T) {
	for _, name := range []string{"saturation-v1", "saturation-v2"} {
		y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
		y.inFlight = constant(60)
		p := baseline(t, name, y.scenario, 0)
		y.beat(0)
		for now := time.Duration(0); now < 4*time.Minute; now += horizontal.Period {
			y.view.Now = now
			assert.Equal(t, [][]int{{1}}, p.Decide(y.view).Replicas, "%s at %s", name, now)
			if now == 0 {
				y.view.Models[0].Variants[0].Pods[0].Scrapes = nil
			}
		}
		y.view.Now = 4 * time.Minute
		assert.Equal(t, [][]int{{2}}, p.Decide(y.view).Replicas, name)
	}
}

func TestSaturationStepsOfTenPods(t *testing.T) {
	// Ten per 150 s, whatever is wished for.
	y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
	y.inFlight = constant(5000)
	got := y.play(baseline(t, "saturation-v2", y.scenario, 0), 7*time.Minute)
	assert.Equal(t, []string{"4m0s [2]", "4m15s [11]", "6m30s [12]", "6m45s [21]"}, got)
}

func TestSaturationV2LeavesSleepingVariantsAlone(t *testing.T) {
	// The cheaper variant has no replicas, so it does not take part.
	y := newToy([]int{0, 1}, toyVariant("cheap", 1, 0, -1), toyVariant("dear", 9, 0, -1))
	y.inFlight = constant(40)
	for _, step := range y.play(baseline(t, "saturation-v2", y.scenario, 0), 10*time.Minute) {
		assert.Contains(t, step, " [0 ", step)
	}
}

func TestSaturationV2WithoutReportsOfAVariant(t *testing.T) {
	// What starts has the cost that was written down, and the capacity of its arguments.
	for _, c := range []struct {
		cost float64
		want []int
	}{{6.2, []int{1, 3}}, {6.3, []int{3, 1}}} {
		y := newToy([]int{1, 0}, toyVariant("a", 5, 0, -1), elsewhere(toyVariant("b", c.cost, 0, -1)))
		y.inFlight = constant(30)
		y.beat(0)
		y.beat(15 * time.Second)
		y.scale(0, 1, 1, 15*time.Second)
		// 10,000 + 20*900 tokens are 32,941 at 0.85; 8,000 and 10,000 are there or to come. Each
		// of a's replicas holds 8,000, each of b's 10,000.
		assert.Equal(t, [][]int{c.want}, rule(t, "rule of saturation-v2", y.scenario).Decide(y.view).Replicas, c.cost)
	}
}

func TestStoredTokenCapacity(t *testing.T) {
	y := newToy([]int{1, 1, 1}, toyVariant("a", 5, 0, -1), toyVariant("same", 9, 0, -1), elsewhere(toyVariant("other", 9, 0, -1)))
	p := newSaturationV2(y.scenario, replay.Spec{})
	// B = 2048, S = 10: min(2048*200/1100, 10) = 10 requests of 1000 tokens.
	assert.Equal(t, 10000, p.stored(0, 1, 900, 200), "from the arguments")
	assert.Equal(t, simulation.DefaultTokenBudget, p.stored(0, 1, 900, 0), "batched tokens, without lengths")
	p.live[0][0] = 7000
	assert.Equal(t, 7000, p.stored(0, 1, 900, 200), "not more than the same variant was seen to hold")
	assert.Equal(t, 10000, p.stored(0, 2, 900, 200), "another accelerator says nothing")
	p.live[0][1] = 6000
	assert.Equal(t, 6000, p.stored(0, 1, 900, 200), "its own")

	assert.Equal(t, engineLimits{simulation.DefaultTokenBudget, defaultMaxNumSeqs}, limitsOf(&replay.Variant{}))
	assert.Equal(t, engineLimits{512, 7}, limitsOf(&replay.Variant{TokenBudget: 512, Profile: serving.Profile{BatchLimit: 7}}))
}

func TestSaturationV2CountsTheGatewaysQueue(t *testing.T) {
	for queue, want := range map[int]int{0: 1, 10: 3} {
		y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
		y.inFlight = constant(6)
		y.beat(0)
		y.beat(15 * time.Second)
		y.view.Models[0].Gateway = []replay.GatewayScrape{{Gateway: simulation.Gateway{Queue: 99}}, {Gateway: simulation.Gateway{Queue: queue}}}
		// 6,000 tokens in use; ten requests of 900 + 200 tokens beside: 17,000/0.85 = 20,000.
		assert.Equal(t, [][]int{{want}}, rule(t, "rule of saturation-v2", y.scenario).Decide(y.view).Replicas)
	}
}

func TestParametersOfSaturation(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, 8), toyVariant("b", 9, 0, -1))
	saturation := func(rule ...replay.Parameter) []replay.Parameter {
		all := append([]replay.Parameter{{Name: "interval", Value: "30s"}, {Name: "window", Value: "1m0s"}, {Name: "kvCacheThreshold", Value: "0.8"}, {Name: "queueLengthThreshold", Value: "5"}}, rule...)
		return append(all, replay.Parameter{Name: "actuation", Value: "HPA of the chart"},
			replay.Parameter{Name: "replicas", Value: "a: 0 to 8; b: 0 to 1000 (the chart's bounds of 1 to 10 are lifted)"}, replay.Parameter{Name: "syncPeriod", Value: "15s"}, replay.Parameter{Name: "tolerance", Value: "0"},
			replay.Parameter{Name: "scaleUp", Value: "window 4m0s, 10 pods per 2m30s"}, replay.Parameter{Name: "scaleDown", Value: "window 4m0s, 10 pods per 2m30s"})
	}
	for name, want := range map[string][]replay.Parameter{
		"saturation-v1": saturation(replay.Parameter{Name: "kvSpareTrigger", Value: "0.1"}, replay.Parameter{Name: "queueSpareTrigger", Value: "3"}),
		"saturation-v2": saturation(replay.Parameter{Name: "scaleUpThreshold", Value: "0.85"}, replay.Parameter{Name: "scaleDownBoundary", Value: "0.7"},
			replay.Parameter{Name: "lengthWindow", Value: "5m0s"}, replay.Parameter{Name: "capacityHistory", Value: "10"}, replay.Parameter{Name: "optimizer", Value: "cost-aware, unlimited"}),
	} {
		assert.Equal(t, want, baseline(t, name, y.scenario, 0).Parameters(), name)
	}
}

func TestSaturationThresholds(t *testing.T) {
	for name, want := range map[string][][]int{
		// Ten of a thousand tokens in a cache of ten thousand; nobody waits.
		"saturation-v1:kvCacheThreshold=0.5":    {{2}},
		"saturation-v1:kvSpareTrigger=0.1":      {{1}},
		"saturation-v2:kvCacheThreshold=0.2":    {{4}},
		"saturation-v2:scaleUpThreshold=0.6":    {{2}},
		"saturation-v2:scaleUpThreshold=0.75":   {{1}},
		"saturation-v2:queueLengthThreshold=99": {{1}},
	} {
		y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
		y.inFlight = constant(6)
		y.beat(0)
		s := spec(t, name)
		var rule saturationRule = newSaturationV1(y.scenario, s)
		if s.Family == "saturation-v2" {
			rule = newSaturationV2(y.scenario, s)
		}
		assert.Equal(t, want, direct{rule, y.scenario}.Decide(y.view).Replicas, name)
	}
	y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
	y.inFlight = constant(60)
	assert.Equal(t, "0s [2]", y.play(baseline(t, "saturation-v1:up=0s", y.scenario, 0), time.Minute)[0], "its HPA waits for nothing")
	p := baseline(t, "saturation-v2:kvCacheThreshold=0.7,scaleUpThreshold=0.8,down=60s", y.scenario, 0)
	for _, want := range []replay.Parameter{{Name: "kvCacheThreshold", Value: "0.7"}, {Name: "scaleUpThreshold", Value: "0.8"}, {Name: "scaleDown", Value: "window 1m0s, 10 pods per 2m30s"}} {
		assert.Contains(t, p.Parameters(), want)
	}
}
