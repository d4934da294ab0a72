package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func tried(t *testing.T) *Trial {
	t.Helper()
	trial, err := NewTrial(TrialOptions{Scenario: small(), Source: hill(t), Startups: []time.Duration{time.Minute}, Seed: 3})
	require.NoError(t, err)
	return trial
}

// What a trial plays is what a replay runs.
func TestATrialPlaysWhatAReplayRuns(t *testing.T) {
	trial := tried(t)
	results, recordings, err := Run(Options{
		Scenario: small(), Source: hill(t), Policies: everyPolicy, Startups: []time.Duration{time.Minute}, Seed: 3, Record: true,
	})
	require.NoError(t, err)
	for i, policy := range everyPolicy {
		result, recording, err := trial.Play(Play{Policy: policy, Startup: time.Minute, Record: true})
		require.NoError(t, err)
		assert.Equal(t, results[i], result)
		assert.Equal(t, recordings[i], recording)
		result, recording, err = trial.Play(Play{Policy: policy, Startup: time.Minute})
		require.NoError(t, err)
		assert.Equal(t, results[i], result, "recording changes nothing")
		assert.Empty(t, recording.Models)
	}
}

// A run is given up only if it would have missed its limit, and one that keeps within it
// is not touched.
func TestRunsAreGivenUpForGood(t *testing.T) {
	trial := tried(t)
	for _, policy := range []string{"static:1", "static:2", "static:5", "hybrid", "hpa:kv", "hpa:queue=1", "capacity-only"} {
		whole, _, err := trial.Play(Play{Policy: policy, Startup: time.Minute})
		require.NoError(t, err)
		for name, limit := range map[string]Limit{
			"what it attains": {Attainment: whole.Attainment - 1e-6}, "what it costs": {Cost: whole.Cost + 1e-6},
			"both": {Attainment: whole.Attainment - 1e-6, Cost: whole.Cost + 1e-6},
		} {
			within, _, err := trial.Play(Play{Policy: policy, Startup: time.Minute, Limit: limit})
			require.NoError(t, err, "%s: %s", policy, name)
			assert.Equal(t, whole, within, "%s: %s", policy, name)
		}
		_, _, err = trial.Play(Play{Policy: policy, Startup: time.Minute, Limit: Limit{Cost: whole.Cost / 3}})
		require.ErrorIs(t, err, ErrTooDear, policy)
	}
	_, _, err := trial.Play(Play{Policy: "static:1", Startup: time.Minute, Limit: Limit{Attainment: 0.95}})
	require.ErrorIs(t, err, ErrTooPoor)
	whole, _, err := trial.Play(Play{Policy: "peak", Startup: time.Minute})
	require.NoError(t, err)
	searched, _, err := trial.Play(Play{Policy: "peak", Startup: time.Minute, Limit: Limit{Cost: 0.01}})
	require.NoError(t, err, "the fleets that a search tries are none of the run's")
	assert.Equal(t, whole, searched)
}

func TestWhatATrialCannotPlay(t *testing.T) {
	trial := tried(t)
	_, _, err := trial.Play(Play{Policy: "hybrid", Startup: time.Hour})
	require.ErrorContains(t, err, "a start-up of 1h0m0s was not prepared")
	_, _, err = trial.Play(Play{Policy: "magic", Startup: time.Minute})
	require.ErrorContains(t, err, `unknown policy "magic"`)
	_, _, err = trial.Play(Play{Policy: "hybrid", Startup: time.Minute, Tell: func(float64) bool { return false }})
	require.ErrorIs(t, err, ErrStopped)
	_, err = NewTrial(TrialOptions{Scenario: small(), Source: hill(t), Startups: []time.Duration{-1}})
	require.ErrorContains(t, err, "expected at least 0")
}

// A load test of one replica finds what the capacity model says of it, with the requests
// that Little's law has at a time.
func TestALoadTest(t *testing.T) {
	trial, err := NewTrial(TrialOptions{Scenario: small(), Source: short(t, workload.Point{Rate: 5}, workload.Point{At: 5 * time.Minute, Rate: 5}), Startups: []time.Duration{0}})
	require.NoError(t, err)
	placings := trial.Placings()
	require.Len(t, placings, 2, "the other variant costs half as much again for the same, and both have room enough")
	assert.Empty(t, placings[0].Setting)
	assert.Equal(t, "variant=dear", placings[1].Setting)
	test := placings[0].Tests[0]
	assert.InDelta(t, float64(trial.scenario.serves(0, trial.choice[0], trial.load.mean(0))), test.Rate, 1e-9)
	assert.InEpsilon(t, 200, test.Input, 0.1, "the traffic is of 200 tokens in the mean")
	assert.Greater(t, test.InFlight, 1.0)
	assert.Less(t, test.InFlight, 32.0, "its batch limit")
	assert.InDelta(t, 40, test.ITL, 0, "what is promised")
	assert.Equal(t, wanted(float64(trial.load[0][4].Rate), float64(trial.serves[0][4][trial.choice[0]])), test.Peak, "the rate is the same all the time")
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
		s := small()
		s.Models[0].Variants[0].Policy.Max = room
		s.Cluster.Nodes[0].Free.Devices = room
		// It needs more than four of them.
		trial, err := NewTrial(TrialOptions{Scenario: s, Source: short(t, workload.Point{Rate: 60}, workload.Point{At: 5 * time.Minute, Rate: 60}), Startups: []time.Duration{0}, Seed: 3})
		require.NoError(t, err)
		var settings []string
		for _, p := range trial.Placings() {
			settings = append(settings, p.Setting)
		}
		assert.Equal(t, want, settings)
		for _, setting := range settings[1:] {
			_, _, err := trial.Play(Play{Policy: "hpa:rps=4," + setting, Startup: 0})
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
			s := small()
			s.Models[0].Variants[1].Cost = 5
			s.Cluster = &placement.Cluster{Nodes: append(nodes("h100", "H100", tc.nodes, 8), nodes("h200", "H200", 1, 8)...)}
			s.Events = tc.events
			trial, err := NewTrial(TrialOptions{Scenario: s, Source: short(t, workload.Point{Rate: 30}, workload.Point{At: 5 * time.Minute, Rate: 30}), Startups: []time.Duration{0}, Seed: 3})
			require.NoError(t, err)
			var settings []string
			for _, p := range trial.Placings() {
				settings = append(settings, p.Setting)
			}
			assert.Equal(t, tc.want, settings)
		})
	}
}
