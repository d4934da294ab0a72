package tuning

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	"llmd.ai/workload-variant-autoscaler/test/performance/replaytest"
)

// A load test of one replica finds what the capacity model says of it, with the requests
// that Little's law has at a time.
func TestALoadTest(t *testing.T) {
	trial, err := replay.NewTrial(replay.TrialOptions{Scenario: replaytest.World(), Source: replaytest.Traffic(t, workload.Point{Rate: 5}, workload.Point{At: 5 * time.Minute, Rate: 5}), Startups: []time.Duration{0}})
	require.NoError(t, err)
	placings := Placings(trial)
	require.Len(t, placings, 2, "the other variant costs half as much again for the same, and both have room enough")
	assert.Empty(t, placings[0].Setting)
	assert.Equal(t, "variant=dear", placings[1].Setting)
	test := placings[0].Tests[0]
	assert.InDelta(t, float64(trial.Scenario().Serves(0, trial.Choice()[0], trial.Load().Mean(0))), test.Rate, 1e-9)
	assert.InEpsilon(t, 200, test.Input, 0.1, "the traffic is of 200 tokens in the mean")
	assert.Greater(t, test.InFlight, 1.0)
	assert.Less(t, test.InFlight, 32.0, "its batch limit")
	assert.InDelta(t, 40, test.ITL, 0, "what is promised")
	assert.Equal(t, wanted(float64(trial.Load()[0][4].Rate), float64(trial.Rates()[0][4][trial.Choice()[0]])), test.Peak, "the rate is the same all the time")
}

// Where the cheapest variant has no room for the peak, what fits of it, or a part of that,
// may always be there while another one goes with the load.
func TestPlacingsOfAScarceVariant(t *testing.T) {
	const other = "variant=dear"
	for room, want := range map[int][]string{
		// No split is tried twice, and none without any replica.
		2: {"", other, other + ",split=cheap:2", other + ",split=cheap:1"},
		4: {"", other, other + ",split=cheap:4", other + ",split=cheap:3", other + ",split=cheap:2", other + ",split=cheap:1"},
	} {
		s := replaytest.World()
		s.Models[0].Variants[0].Policy.Max = room
		s.Cluster.Nodes[0].Free.Devices = room
		// It needs more than four of them.
		trial, err := replay.NewTrial(replay.TrialOptions{Scenario: s, Source: replaytest.Traffic(t, workload.Point{Rate: 60}, workload.Point{At: 5 * time.Minute, Rate: 60}), Startups: []time.Duration{0}, Seed: 3})
		require.NoError(t, err)
		var settings []string
		for _, p := range Placings(trial) {
			settings = append(settings, p.Setting)
		}
		assert.Equal(t, want, settings)
		for _, setting := range settings[1:] {
			_, _, err := trial.Play(replay.Play{Policy: "hpa:rps=4," + setting, Startup: 0})
			require.NoError(t, err, setting)
		}
	}
}

// A spot variant is cheap because its nodes are taken away, so that its price is no measure for
// those that stay, and what goes with the load may be one of these.
func TestPlacingsOfAVariantThatIsTakenAway(t *testing.T) {
	const other = "variant=dear"
	gone := []simulation.NodeEvent{
		{At: time.Minute, Node: 0, Kind: simulation.Reclaimed, Notice: time.Minute},
		{At: 3 * time.Minute, Node: 0, Kind: simulation.Restored},
	}
	for name, tc := range map[string]struct {
		events []simulation.NodeEvent
		nodes  int
		want   []string
	}{
		"it stays":                        {nil, 1, []string{""}},
		"its only node is taken away":     {gone, 1, []string{"", other, other + ",split=cheap:5", other + ",split=cheap:3", other + ",split=cheap:2", other + ",split=cheap:1"}},
		"another node of it always stays": {gone, 2, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := replaytest.World()
			s.Models[0].Variants[1].Cost = 5
			s.Cluster = &placement.Cluster{Nodes: append(replaytest.Nodes("h100", "H100", tc.nodes, 8), replaytest.Nodes("h200", "H200", 1, 8)...)}
			s.Events = tc.events
			trial, err := replay.NewTrial(replay.TrialOptions{Scenario: s, Source: replaytest.Traffic(t, workload.Point{Rate: 30}, workload.Point{At: 5 * time.Minute, Rate: 30}), Startups: []time.Duration{0}, Seed: 3})
			require.NoError(t, err)
			var settings []string
			for _, p := range Placings(trial) {
				settings = append(settings, p.Setting)
			}
			assert.Equal(t, tc.want, settings)
		})
	}
}
