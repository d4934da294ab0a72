package replay

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A request that needs more tokens than the cache of a replica has, fails at once, and the
// result says why.
func TestRequestsThatFitNoReplica(t *testing.T) {
	s := small()
	limit := func(tokens capacity.Tokens) {
		for i := range s.Models[0].Variants {
			s.Models[0].Variants[i].Profile.KVTokens = tokens
		}
	}
	limit(1000)
	results, _, err := Run(Options{
		Scenario: s, Policies: []string{"static:1"}, Startups: []time.Duration{time.Minute}, Seed: 1,
		Source: sourceOf(io.EOF, arrival(1, 10, 10), arrival(2, 900, 101), arrival(3, 900, 102), arrival(4, 5000, 7), arrival(5, 2000, 1)),
	})
	require.NoError(t, err)
	assert.Equal(t, 3, results[0].Failed)
	require.NotNil(t, results[0].TooLong)
	assert.NotEmpty(t, results[0].TooLong.Variant)
	results[0].TooLong.Variant = ""
	assert.Equal(t, &TooLong{Requests: 3, Input: 5000, Output: 7, KVTokens: 1000}, results[0].TooLong, "the longest")

	limit(0)
	results, _, err = Run(Options{
		Scenario: s, Policies: []string{"static:1"}, Startups: []time.Duration{time.Minute}, Seed: 1, Source: sourceOf(io.EOF, arrival(1, 5000, 7)),
	})
	require.NoError(t, err)
	assert.Zero(t, results[0].Failed)
	assert.Nil(t, results[0].TooLong)
}
