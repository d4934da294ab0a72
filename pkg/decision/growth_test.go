package decision

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allocated is how much memory one round of a cluster of that size takes, in bytes and
// in pieces.
func allocated(t *testing.T, variants int, share float64, later bool, change func(*Snapshot)) (bytes, pieces float64) {
	t.Helper()
	s, policy := estate(variants, share)
	policy.Hybrid = false
	if change != nil {
		change(&s)
	}
	memory := Memory{}
	if later {
		_, memory = Decide(s, policy, memory, RoundFull)
		s.Time = s.Time.Add(policy.Interval)
		for i := range s.Models {
			for _, sample := range samples(&s.Models[i]) {
				sample.Time = s.Time
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan, _ := Decide(s, policy, memory, RoundFull)
	runtime.ReadMemStats(&after)
	require.Len(t, plan.Models, variants/2)
	return float64(after.TotalAlloc - before.TotalAlloc), float64(after.Mallocs - before.Mallocs)
}

// A round may take n log n time of n variants, and the benchmark shows it; a time that a
// test asserted would depend on the machine. Memory does not, and is where most growth
// shows: whatever makes a list or a map of all models for each model. Sorting takes no
// memory, so a round's grows as n, and a tenth more is allowed. Sizing for a promised
// latency is left out, because a round does a bounded number of it.
func TestMemoryGrowsAsTheVariants(t *testing.T) {
	small := 250
	if !thorough {
		small = 40
	}
	const times = 4
	for name, c := range map[string]struct {
		share  float64
		later  bool
		change func(*Snapshot)
	}{
		"steady":     {share: 0.95, later: true},
		"all shrink": {share: 0.3, later: true},
		"all grow":   {share: 1.4},
		"crowded":    {share: 1.4, change: crowd},
		"all wait":   {share: 1.4, change: wait},
	} {
		t.Run(name, func(t *testing.T) {
			fewBytes, fewPieces := allocated(t, small, c.share, c.later, c.change)
			manyBytes, manyPieces := allocated(t, small*times, c.share, c.later, c.change)
			assert.Less(t, manyBytes/fewBytes, times*1.1, "bytes")
			assert.Less(t, manyPieces/fewPieces, times*1.1, "pieces")
		})
	}
}
