package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// nothing is what ours remember who have seen nothing.
func nothing(bool, time.Duration) decision.Memory { return decision.Memory{} }

// morning goes through all that one replica can be asked, and ends with what hybrid mode
// remembers of it.
func morning(t *testing.T) decision.Memory {
	t.Helper()
	earlier := short(t, workload.Point{Rate: 1}, workload.Point{At: 8 * time.Minute, Rate: 40}, workload.Point{At: 16 * time.Minute, Rate: 1})
	trial, err := NewTrial(TrialOptions{Scenario: small(), Source: earlier, Before: nothing, Startups: []time.Duration{time.Minute}, Seed: 3})
	require.NoError(t, err)
	var seen decision.Memory
	_, _, err = trial.Play(Play{Policy: "hybrid", Startup: time.Minute, After: func(m decision.Memory) { seen = m }})
	require.NoError(t, err)
	return seen
}

// Who remembers knows within the first minute what a replica serves within the promise, like
// who was told. Who has neither does not.
func TestWhatIsRememberedIsKnownFromTheFirstRequestOn(t *testing.T) {
	rate := func(m decision.Memory) capacity.Rate {
		return m.OfVariant(decision.Key{Namespace: "default", Name: "cheap"}).Sizing.Rate
	}
	seen := morning(t)
	assert.Positive(t, rate(seen))
	soon := func(before func(bool, time.Duration) decision.Memory) capacity.Rate {
		begin := func() (workload.Stream, error) {
			stream, err := hill(t)()
			return workload.Limit(stream, 41*time.Second), err
		}
		trial, err := NewTrial(TrialOptions{
			Scenario: small(), Source: begin, Before: before, Startups: []time.Duration{time.Minute}, Seed: 3,
		})
		require.NoError(t, err)
		var after decision.Memory
		_, _, err = trial.Play(Play{Policy: "hybrid", Startup: time.Minute, After: func(m decision.Memory) { after = m }})
		require.NoError(t, err)
		return rate(after)
	}
	told := soon(nil)
	learned := soon(func(hybrid bool, startup time.Duration) decision.Memory {
		assert.True(t, hybrid)
		assert.Equal(t, time.Minute, startup)
		m := seen
		m.Time = at(1 << 62)
		return m
	})
	assert.InEpsilon(t, float64(told), float64(learned), 0.3)
	assert.NotEqual(t, told, learned)
	assert.Zero(t, soon(nothing))
}

func TestWhatIsRememberedChangesNothingElse(t *testing.T) {
	told := tried(t)
	seen := morning(t)
	trial, err := NewTrial(TrialOptions{Scenario: small(), Source: hill(t), Startups: []time.Duration{time.Minute}, Seed: 3,
		Before: func(bool, time.Duration) decision.Memory { return seen }})
	require.NoError(t, err)
	play := func(trial *Trial, policy string) Result {
		result, _, err := trial.Play(Play{Policy: policy, Startup: time.Minute})
		require.NoError(t, err)
		return result
	}
	assert.Contains(t, play(told, "hybrid").Parameters, Parameter{"profile", "given"})
	for _, policy := range []string{"hybrid", "capacity-only", "hybrid:down=30s"} {
		first := play(trial, policy)
		assert.Contains(t, first.Parameters, Parameter{"profile", "learned"}, policy)
		assert.Equal(t, play(told, policy).Requests, first.Requests, "nothing of the earlier time counts")
		assert.Equal(t, first, play(trial, policy), "it is over")
	}
	for _, policy := range []string{"hpa:rps=2", "keda"} {
		assert.Equal(t, play(told, policy), play(trial, policy), "%s is a rival, or knows all anyway", policy)
	}
}
