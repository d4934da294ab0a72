package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
