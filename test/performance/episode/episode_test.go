package episode

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

func TestTheLoadIsThePublishedOne(t *testing.T) {
	l := newLoad(scored, drain, 1)
	counts, inputs, outputs, last := map[time.Duration]int{}, 0, 0, time.Duration(0)
	for {
		r, err := l.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.Arrival, last)
		if last = r.Arrival; r.Output == 1 {
			continue
		}
		assert.True(t, r.Input >= 3500 && r.Input <= 4500 && r.Output >= 900 && r.Output <= 1100, r)
		inputs, outputs = inputs+r.Input, outputs+r.Output
		from := time.Duration(0)
		for _, p := range scored {
			if r.Arrival >= from && r.Arrival < from+p.length {
				counts[from]++
			}
			from += p.length + pause
		}
	}
	want, from, sum := map[time.Duration]int{}, time.Duration(0), 0
	for _, p := range scored {
		want[from] = int(p.rate * p.length.Seconds())
		sum += want[from]
		from += p.length + pause
	}
	assert.Equal(t, want, counts)
	assert.Equal(t, 12_480, sum)
	assert.InDelta(t, 4000, float64(inputs)/float64(sum), 10)
	assert.InDelta(t, 1000, float64(outputs)/float64(sum), 5)
	assert.Equal(t, length(scored)+drain, last, "the end is a last request")
}

// One replica computes a prompt of 8,192 tokens as fast as was measured for the guide of the
// token-aware recipe, 15,928 tokens per second, to 5 %.
func TestTheReplicaIsAsFastAsWasPublished(t *testing.T) {
	p, err := profile()
	require.NoError(t, err)
	const tokens = 8192
	took := p.Iteration(0, 0, tokens) + p.Attention(tokens*(tokens+1)/2)
	assert.InEpsilon(t, 15_928, tokens/float64(took)*1000, 0.05)
	assert.InDelta(t, 320_000, float64(p.KVTokens), 10_000)
	assert.Greater(t, p.MaxRate(capacity.TokenShape{Input: 4000, Output: 1000}, capacity.SLO{TTFT: ttft, ITL: tpot}, 0.9), capacity.Rate(10.0/most), "eight serve the peak")
}

func TestMeanReplicasByHand(t *testing.T) {
	change := func(at, from, to int) replay.RecordedDecision {
		return replay.RecordedDecision{At: seconds(at), From: from, To: to}
	}
	loaded := seconds(100)
	assert.InDelta(t, 3, replicas(nil, loaded), 1e-9, "nothing changes")
	// 40 s of 3 and 60 s of 5, and then 20 s until they are 3 again.
	assert.InDelta(t, (40*3+60*5+20*5)/120.0, replicas([]replay.RecordedDecision{change(40, 3, 5), change(120, 5, 3)}, loaded), 1e-9)
	assert.InDelta(t, (40*3+30*5+30*3)/100.0, replicas([]replay.RecordedDecision{change(40, 3, 5), change(70, 5, 3)}, loaded), 1e-9)
	assert.InDelta(t, (40*3+60*5+20*5)/120.0, replicas([]replay.RecordedDecision{change(40, 3, 5), change(120, 5, 3), change(150, 3, 4)}, loaded), 1e-9, "what comes after the end does not count")
}

// Both a fleet for the peak and hybrid mode keep what they should in one episode.
func TestAnEpisode(t *testing.T) {
	points, err := play(1, []string{"hybrid", "static:8", "llmd-slo"})
	require.NoError(t, err)
	assert.Greater(t, points[0].Attainment, aimedAttainment)
	assert.LessOrEqual(t, points[0].Cost, aimedReplicas+0.1, "of one episode; the aim is about the mean")
	assert.InDelta(t, 1, points[1].Attainment, 0.001, "as published")
	assert.InDelta(t, 8, points[1].Cost, 1e-9)
	assert.InDelta(t, publishedReplicas, points[2].Cost, 0.3, "the recipe takes as many as was published")
}

func TestAMissedAimIsTold(t *testing.T) {
	var out strings.Builder
	call := &harness.Call{Out: &out, Log: io.Discard}
	require.NoError(t, told(call, []row{{Policy: "llmd-slo", Attainment: 0.94}, {Policy: "hybrid", Attainment: 0.99, Replicas: 5.5}}))
	require.ErrorIs(t, told(call, []row{{Policy: "llmd-slo", Attainment: 0.92}}), harness.ErrMissed)
	require.ErrorIs(t, told(call, []row{{Policy: "hybrid", Attainment: 0.99, Replicas: 5.7}}), harness.ErrMissed)
	assert.Contains(t, out.String(), "missed hybrid at least 97 %")
	require.ErrorContains(t, Run(t.Context(), &harness.Call{Args: []string{"--out", "", "--seeds", "1"}, Out: io.Discard, Log: io.Discard}), "at least 2")
}
