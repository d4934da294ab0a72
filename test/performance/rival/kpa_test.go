package rival

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// tenfold is the rule of the published examples.
func tenfold() knativeRule {
	return knativeRule{stable: time.Minute, threshold: 2, upRate: 10, downRate: 10}
}

// The examples are those of knative/serving, pkg/autoscaler/scaling/autoscaler_test.go: the
// value in the stable and in the panic window, and the target of one replica.
func TestPublishedKnativeDecisions(t *testing.T) {
	for _, c := range []struct {
		name                   string
		target, stable, panics float64
		ready                  int
		state                  knativeState
		change                 func(*knativeRule)
		want                   int
	}{
		{"no data at one", 10, 0, 0, 1, knativeState{}, nil, 0},
		{"little for one", 181, 21, 26, 1, knativeState{}, nil, 1},
		{"up", 10, 50, 50, 1, knativeState{}, nil, 5},
		{"already there", 10, 50, 50, 5, knativeState{}, nil, 5},
		{"in panic, the stable window has more", 1, 50, 30, 5, knativeState{panicking: true, since: seconds(95), most: 5}, nil, 50},
		{"in panic, the panic window has more", 1, 20, 30, 5, knativeState{panicking: true, since: seconds(95), most: 5}, nil, 30},
		{"a small rate of scaling up", 1, 3, 3.1, 2, knativeState{}, func(r *knativeRule) { r.upRate = 1.1 }, 3},
		{"a small rate of scaling down", 10, 1, 1, 100, knativeState{}, func(r *knativeRule) { r.downRate = 1.1 }, 90},
		{"panic takes precedence", 10, 50, 100, 1, knativeState{}, nil, 10},
		{"nobody is ready", 10, 1000, 888, 0, knativeState{}, nil, 10},
		{"the rate limits scaling up", 10, 1000, 1001, 1, knativeState{}, nil, 10},
		{"and again", 10, 1000, 1001, 10, knativeState{}, nil, 100},
		{"the rate limits scaling down", 10, 1, 1, 100, knativeState{}, nil, 10},
		{"and again", 10, 1, 1, 10, knativeState{}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := tenfold()
			if c.change != nil {
				c.change(&rule)
			}
			c.state.started = true
			assert.Equal(t, c.want, c.state.decide(rule, seconds(100), c.ready, c.stable/c.target, c.panics/c.target))
		})
	}
}

func TestPublishedKnativePanics(t *testing.T) {
	type look struct {
		after          time.Duration
		ready          int
		stable, panics float64
		want           int
		panicking      bool
	}
	for name, looks := range map[string][]look{
		"panic ends after a slow increase": {
			{0, 10, 11, 25, 25, true}, {30 * time.Second, 40, 30, 41, 41, true}, {32 * time.Second, 55, 50, 56, 50, false},
		},
		"a surge that goes on extends it": {{0, 10, 11, 25, 25, true}, {30 * time.Second, 40, 30, 80, 80, true}, {59 * time.Second, 80, 30, 30, 80, true}, {2 * time.Second, 80, 30, 30, 30, false}},
		"nothing goes while it lasts":     {{0, 10, 10, 100, 100, true}, {30 * time.Second, 10, 0.1, 0.1, 100, true}, {31 * time.Second, 10, 0.1, 0.1, 1, false}},
		"exponential growth":              {{0, 1, 6, 6, 6, true}, {time.Second, 6, 36, 36, 36, true}, {time.Second, 36, 216, 216, 216, true}, {time.Second, 216, 1296, 1296, 1296, true}, {time.Second, 1296, 1296, 1296, 1296, true}},
		"a decrease without panic":        {{0, 8, 10, 10, 10, false}, {time.Second, 8, 5, 5, 5, false}},
	} {
		t.Run(name, func(t *testing.T) {
			state, now := knativeState{started: true}, seconds(1000)
			for i, l := range looks {
				now += l.after
				assert.Equal(t, l.want, state.decide(tenfold(), now, l.ready, l.stable, l.panics), i)
				assert.Equal(t, l.panicking, state.panicking, i)
			}
		})
	}
	for ready, panicking := range map[int]bool{0: false, 1: false, 2: true} {
		var state knativeState
		state.decide(tenfold(), 0, ready, 0, 0)
		assert.Equal(t, panicking, state.panicking, "published: it begins in panic at more than one")
	}
}

func TestPublishedKnativeScaleDownDelay(t *testing.T) {
	rule := tenfold()
	rule.threshold, rule.delay = 100, 5*time.Minute
	state := knativeState{started: true}
	for _, c := range []struct {
		at     time.Duration
		wanted float64
		want   int
	}{
		{2 * time.Second, 4, 4}, {5 * time.Minute, 0, 4}, {5*time.Minute + 2*time.Second, 0, 0},
		{9 * time.Minute, 4, 4}, {10 * time.Minute, 3, 4}, {11 * time.Minute, 0, 4}, {14 * time.Minute, 0, 3}, {15 * time.Minute, 0, 0},
	} {
		assert.Equal(t, c.want, state.decide(rule, c.at, 0, c.wanted, c.wanted), c.at)
	}
}

func TestKnativeObservesEverySecond(t *testing.T) {
	y := newToy([]int{2}, toyVariant("a", 5, 0, -1))
	p, err := newKPA(y.scenario, spec(t, "kpa:inflight=10,window=10s,panic=0.3"), []int{0})
	require.NoError(t, err)
	every, back := p.Looks()
	assert.Equal(t, []time.Duration{time.Second, 10 * time.Second}, []time.Duration{every, back})
	assert.Equal(t, 2*time.Second, p.Next(0))
	model := &y.view.Models[0]
	_, _, known := p.observe(0, 0, model)
	assert.False(t, known, "before the first scrape")
	for second := 2; second <= 20; second += 2 {
		for at := second - 1; at <= second; at++ {
			for i := range model.Variants[0].Pods {
				pod := &model.Variants[0].Pods[i]
				pod.Scrapes = append(pod.Scrapes, said(at, 0, 0, at, 1))
			}
		}
		model.Gateway = []replay.GatewayScrape{{At: seconds(second), Gateway: simulation.Gateway{Queue: 7}}}
		stable, panics, known := p.observe(seconds(second), 0, model)
		require.True(t, known)
		if second == 20 {
			// Twice the seconds 11 to 20 and one that waits; 7 wait at every other second.
			assert.InDelta(t, 2*(15.5+1)+3.5, stable, 1e-9)
			assert.InDelta(t, 2*(19+1)+14./3, panics, 1e-9)
		}
	}
}

func TestKnativeScalesToZeroAfterItsGrace(t *testing.T) {
	play := func(name string) []string {
		y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
		y.inFlight = until(30*time.Second, 5, 0)
		return y.play(baseline(t, name, y.scenario, 0), 4*time.Minute)
	}
	assert.Empty(t, play("kpa"), "the last one stays")
	// The toy is scraped every 15 s: the last request leaves the window at 1m17s or so.
	assert.Equal(t, []string{"1m46s [0]"}, play("kpa:inflight=10,min=0"))
	assert.Equal(t, []string{"2m46s [0]"}, play("kpa:inflight=10,min=0,grace=90s"))
}

func TestKnativeBounds(t *testing.T) {
	y := newToy([]int{3}, toyVariant("a", 5, 0, -1))
	y.inFlight = constant(600)
	y.beat(0)
	assert.Equal(t, [][]int{{9}}, baseline(t, "kpa:inflight=10,max=9", y.scenario, 0).Decide(y.view).Replicas)
	assert.Equal(t, [][]int{{86}}, baseline(t, "kpa:inflight=10", y.scenario, 0).Decide(y.view).Replicas, "at 70 % use, 7 for each")
	assert.Equal(t, [][]int{{60}}, baseline(t, "kpa:inflight=10,utilization=1", y.scenario, 0).Decide(y.view).Replicas)
	p := baseline(t, "kpa", y.scenario, 0)
	for _, want := range []replay.Parameter{
		{Name: "metric", Value: "concurrency"}, {Name: "target", Value: "70"}, {Name: "stableWindow", Value: "1m0s"}, {Name: "panicWindow", Value: "6s"}, {Name: "panicThreshold", Value: "2"},
		{Name: "maxScaleUpRate", Value: "1000"}, {Name: "maxScaleDownRate", Value: "2"}, {Name: "scaleToZeroGracePeriod", Value: "30s"}, {Name: "minScale", Value: "1"},
		{Name: "maxScale", Value: "1000 (none by default: the variant's bound, else what empty nodes hold)"}, {Name: "variant", Value: "a"},
	} {
		assert.Contains(t, p.Parameters(), want)
	}
}
