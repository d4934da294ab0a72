package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// TestAttentionCountsPairs computes a prompt in chunks: each of its tokens meets
// itself and all before it, wherever the chunks are cut.
func TestAttentionCountsPairs(t *testing.T) {
	profile := serving.Profile{Form: serving.Overlapped, Base: 10, Overhead: 5, PerPair: 0.01}
	for name, c := range map[string]struct {
		budget     int
		iterations []time.Duration
	}{
		"at once: 15 + 0.01*100*101/2":                      {200, []time.Duration{65500 * time.Microsecond}},
		"two chunks: 15 + 18.3, and 15 + 0.01*40*(60+20.5)": {60, []time.Duration{33300 * time.Microsecond, 47200 * time.Microsecond}},
	} {
		t.Run(name, func(t *testing.T) {
			var lengths []time.Duration
			e := newEngine(t, simulation.Options{Profile: profile, TokenBudget: c.budget, Watch: func(i simulation.Iteration) {
				lengths = append(lengths, i.End-i.Start)
			}})
			require.NoError(t, e.Submit(0, simulation.Request{Input: 100, Output: 2}))
			finishAll(e)
			assert.Equal(t, append(c.iterations, 15*time.Millisecond), lengths, "decoding has no pairs of its own")
		})
	}
}

// TestNegativeTimesAreRefused covers the terms that most profiles do not have.
func TestNegativeTimesAreRefused(t *testing.T) {
	for name, p := range map[string]serving.Profile{
		"overhead": {Base: 1, Overhead: -1},
		"pairs":    {Base: 1, PerPair: -1},
		"exchange": {Base: 1, PerExchanged: -1},
		"its way":  {Base: 1, LongExchange: -1},
		"beside":   {Base: 1, PerResidentBeside: -1},
	} {
		_, err := simulation.NewEngine(simulation.Options{Profile: p})
		assert.ErrorContains(t, err, "negative time", name)
	}
}
