package rival

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	"llmd.ai/workload-variant-autoscaler/test/performance/replaytest"
)

// everyRival is each of them once.
var everyRival = []string{"kpa", "kpa:rps=9", "saturation-v1", "saturation-v2", "planner", "llmd-queue", "llmd-saturation", "llmd-tokens", "llmd-slo"}

func TestEveryRivalIsAPolicyOfTheReplay(t *testing.T) {
	run := func(workers int) []replay.Result {
		results, _, err := replay.Run(replay.Options{
			Scenario: replaytest.World(), Source: replaytest.Traffic(t, workload.Point{Rate: 2}, workload.Point{At: 150 * time.Second, Rate: 40}, workload.Point{At: 5 * time.Minute, Rate: 2}),
			Policies: everyRival, Startups: []time.Duration{45 * time.Second}, Seed: 2, Workers: workers,
		})
		require.NoError(t, err)
		return results
	}
	results := run(3)
	for i, r := range results {
		assert.Equal(t, everyRival[i], r.Policy)
		assert.Equal(t, replay.KindBaseline, replay.KindOf(r.Policy))
		assert.Positive(t, r.Attainment, r.Policy)
		assert.NotEmpty(t, r.Parameters, r.Policy)
	}
	assert.Equal(t, results, run(1), "at any number of workers")
	names := replay.PolicyNames()
	assert.Equal(t, []string{"kpa", "saturation-v1", "saturation-v2", "planner", "llmd-queue", "llmd-saturation", "llmd-tokens", "llmd-slo"}, names[len(names)-8:])
}

func TestRivalsHaveOneSpelling(t *testing.T) {
	for _, c := range []struct {
		text, family, want string
		parameters         []replay.Parameter
	}{
		{"saturation-v2", "saturation-v2", "saturation-v2", nil},
		{"kpa", "kpa:inflight", "kpa", nil},
		{"kpa:inflight=30,window=90s", "kpa:inflight", "kpa:inflight=30,window=90s", []replay.Parameter{{Name: "inflight", Value: "30"}, {Name: "window", Value: "90s"}}},
		{"saturation-v1:kvSpareTrigger=.2", "saturation-v1", "saturation-v1:kvSpareTrigger=0.2", []replay.Parameter{{Name: "kvSpareTrigger", Value: "0.2"}}},
		{"planner:predictor=kalman,mode=both", "planner", "planner:mode=both,predictor=kalman", []replay.Parameter{{Name: "mode", Value: "both"}, {Name: "predictor", Value: "kalman"}}},
	} {
		got, err := replay.ParseSpec(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, replay.Spec{Family: c.family, Parameters: c.parameters}, got, c.text)
		assert.Equal(t, c.want, got.String(), c.text)
	}
	for text, want := range map[string]string{
		"saturation-v1:x=1": `policy "saturation-v1:x=1": "x" is not known; expected kvCacheThreshold, queueLengthThreshold, down, up, kvSpareTrigger or queueSpareTrigger`,
		"kpa:queue=4":       `"queue" is not known; expected inflight, rps, utilization,`,
		"kpa:panic=0":       `panic is "0"; expected the panic window as a share of the stable one`,
		"planner:mode=slow": `mode is "slow"; expected throughput, load or both`,
	} {
		_, err := replay.ParseSpec(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// Whatever can be set is taken over, and shown to people.
func TestEverySettingIsTakenOver(t *testing.T) {
	y := gatewayToy()
	beside := map[string]string{
		"planner target": "mode=load", "planner sensitivity": "mode=load", "planner level": "predictor=kalman", "planner trend": "predictor=kalman",
		"planner noise": "predictor=kalman", "planner points": "predictor=kalman",
	}
	values := map[string]string{
		"down": "77s", "up": "77s", "min": "2", "max": "77", "window": "77s", "variant": "b", "split": "b:7",
		"utilization": "0.77", "panic": "0.77", "threshold": "7", "uprate": "77", "downrate": "77", "grace": "77s",
		"kvCacheThreshold": "0.77", "queueLengthThreshold": "77", "kvSpareTrigger": "0.77", "queueSpareTrigger": "77", "scaleUpThreshold": "0.77",
		"scaleDownBoundary": "0.77", "mode": "both", "target": "latency", "predictor": "kalman", "interval": "77s", "reaction": "7s", "sensitivity": "77",
		"ttft": "77", "itl": "77", "isl": "77", "osl": "77", "level": "77", "trend": "77", "noise": "77", "points": "77",
		"bounds": "lifted", "velocity": "77", "histograms": "vllm",
	}
	for _, f := range rivals {
		for _, s := range f.Settings {
			require.Contains(t, values, s.Key)
			before := f.Name
			if more, ok := beside[f.Name+" "+s.Key]; ok {
				before += ":" + more
			}
			set, err := spec(t, before).With(s.Key, values[s.Key])
			require.NoError(t, err)
			assert.NotEqual(t, baseline(t, before, y.scenario, 0).Parameters(), baseline(t, set.String(), y.scenario, 0).Parameters(), set.String())
		}
	}
}

func TestSplitStandsBesideTheDrivenVariant(t *testing.T) {
	y := newToy([]int{1, 1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1), toyVariant("c", 9, 0, -1))
	y.inFlight = constant(90)
	y.beat(0)
	for name, want := range map[string][][]int{
		"kpa:inflight=10,split=b:2":       {{13, 2, 1}},
		"planner:mode=load,split=b:2+c:0": {{1, 2, 0}},
	} {
		y.view.Now = 0
		assert.Equal(t, want, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, name)
	}
}

// Of the flow of a model, the driven variant is held to what its replicas get.
func TestFlowIsSharedWithTheSplit(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
	model := &y.view.Models[0]
	y.view.Now, y.scenario.Collection.Window = seconds(60), time.Minute
	model.Gateway = []replay.GatewayScrape{{At: seconds(30)}, {At: seconds(60), Gateway: simulation.Gateway{Dispatched: 1200}}}
	model.Variants[0].Pods[0].Scrapes = []replay.Scrape{said(30, 0, 0, 0, 0), said(60, 290, 0, 10, 0)}
	model.Variants[1].Pods[0].Scrapes = []replay.Scrape{said(30, 0, 0, 0, 0), said(60, 890, 0, 10, 0)}
	for name, want := range map[string][][]int{
		"kpa:rps=10,utilization=1":           {{4, 1}},
		"kpa:rps=10,utilization=1,split=b:1": {{1, 1}},
	} {
		assert.Equal(t, want, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, name)
	}
}

func TestRivalsLeaveTheViewAlone(t *testing.T) {
	for _, name := range everyRival {
		make3 := func() *toy {
			y := gatewayToy()
			y.inFlight = constant(60)
			y.beat(0)
			return y
		}
		y := make3()
		baseline(t, name, y.scenario, 0).Decide(y.view)
		assert.True(t, reflect.DeepEqual(make3().view, y.view), name)
	}
}

// Well tuned, each rival keeps up with a ramp, and costs little more than what is needed.
func TestTunedRivalsFollowARamp(t *testing.T) {
	s := replaytest.World()
	s.Cluster.Nodes = replaytest.Nodes("h100", "H100", 8, 8)
	s.Models[0].Variants = s.Models[0].Variants[:1]
	policies := []string{
		"kpa:inflight=8,utilization=1", "kpa:rps=9,utilization=1",
		"saturation-v1:kvCacheThreshold=0.05,up=0s,kvSpareTrigger=0.02", "saturation-v2:kvCacheThreshold=0.06,up=0s",
		"planner:predictor=kalman,interval=60s,itl=25,isl=200,osl=60", "planner:mode=load,itl=25,isl=200,osl=60",
		"planner:mode=both,interval=60s,itl=30,isl=200,osl=60",
	}
	results, _, err := replay.Run(replay.Options{Scenario: s, Source: replaytest.Traffic(t, workload.Point{Rate: 30}, workload.Point{At: 30 * time.Minute, Rate: 120}, workload.Point{At: 40 * time.Minute, Rate: 120}), Policies: policies, Startups: []time.Duration{30 * time.Second}, Seed: 1})
	require.NoError(t, err)
	for i, r := range results {
		assert.Equal(t, policies[i], r.Policy)
		assert.Greater(t, r.Attainment, 0.98, r.Policy)
		assert.Less(t, r.CostOverBound, 2.2, r.Policy)
	}
}
