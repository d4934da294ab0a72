package replay

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// alike are long prompts, thirty-two in a second for two minutes, of which so many in ten
// begin with the same 1,536 of their 2,048 tokens.
func alike(inTen int) Source {
	var all []workload.Request
	for i := range 2 * 60 * 32 {
		numbers := []uint64{uint64(10 * i), uint64(10*i + 1), uint64(10*i + 2), uint64(10*i + 3)}
		if i%10 < inTen {
			copy(numbers, []uint64{1 << 60, 1<<60 + 1, 1<<60 + 2})
		}
		r := arrival(float64(i)/32, 2048, 20)
		r.Prompt = &workload.Prompt{Block: 512, Numbers: numbers}
		all = append(all, r)
	}
	return sourceOf(io.EOF, all...)
}

// A prefix cache spares replicas, and what is sized by the capacity model knows it.
func TestPrefixCachesSpareReplicas(t *testing.T) {
	play := func(s *Scenario, source Source) (attainment, bound float64) {
		trial, err := NewTrial(TrialOptions{Scenario: s, Source: source, Startups: []time.Duration{0}, Seed: 1})
		require.NoError(t, err)
		result, _, err := trial.Play(Play{Policy: "static:2", Startup: 0})
		require.NoError(t, err)
		return result.Attainment, trial.Bound().Cost
	}
	caching := func(cache bool, hits float64) *Scenario {
		s := small()
		s.Models[0].Variants = s.Models[0].Variants[:1]
		s.Models[0].Variants[0].PrefixCache, s.Models[0].Variants[0].PrefixHits = cache, hits
		return s
	}
	plain, dear := play(caching(false, 0), alike(9))
	cached, cheap := play(caching(true, 0), alike(9))
	hit, shared := play(caching(false, 0.6), alike(0))
	other, same := play(caching(true, 0), alike(0))
	assert.Less(t, plain, 0.5, "41 ms of prefill for each of 32 requests a second are too much for two")
	assert.Greater(t, cached, 0.99)
	assert.Greater(t, hit, 0.99)
	assert.InDelta(t, plain, other, 0.1, "nothing to find")
	assert.Less(t, cheap, dear)
	assert.Less(t, shared, dear)
	assert.InDelta(t, dear, same, 1e-9)
}

func TestWhatACacheFinds(t *testing.T) {
	s := small()
	s.Models[0].Variants[1].PrefixCache = true
	assert.True(t, s.Prompts())
	assert.False(t, small().Prompts())
	for inTen, want := range map[int]float64{0: 0, 5: 0.5 * 0.75, 10: 0.75} {
		cached, err := s.caching(alike(inTen))
		require.NoError(t, err)
		// The first of them finds nothing.
		assert.InDelta(t, want, cached.found[0][1], 1e-3)
		assert.InDelta(t, float64(smallProfile.PerPrefillToken)*(1-want), float64(cached.Latency(0, 1).PerPrefillToken), 1e-4)
		assert.Equal(t, smallProfile, cached.Latency(0, 0), "the other one has no cache")
	}
	assert.Nil(t, s.found, "the scenario itself stays as it is")
	// Nine others come between two that are alike: room for one of them is too little.
	s.Models[0].Variants[1].Profile.KVTokens = 4 * 2048
	cached, err := s.caching(alike(1))
	require.NoError(t, err)
	assert.Zero(t, cached.found[0][1])
	s.Models[0].Variants[1].Profile.KVTokens = 12 * 2048
	cached, err = s.caching(alike(1))
	require.NoError(t, err)
	assert.InDelta(t, 0.1*0.75, cached.found[0][1], 1e-3)

	_, err = NewTrial(TrialOptions{Scenario: s, Source: hill(t), Startups: []time.Duration{0}})
	assert.ErrorContains(t, err, "the variant dear caches what prompts begin with (prefixCache), and no request says it; expected a Mooncake trace with hash_ids, or a share of hits (prefixHits)")
}
