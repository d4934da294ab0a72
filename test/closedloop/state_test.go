package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// The first replicas are overloaded and then drain. The means over those minutes are of a batch that
// empties, and of no batch that a replica ever has. The given profile is exact, and the promise is
// near the edge, where a few percent of a latency are half of the rate: learned from such minutes,
// it would take 76 replicas where 37 suffice.
func TestABatchThatEmptiesTeachesNoLatency(t *testing.T) {
	t.Parallel()
	v := variant("v", serving.Profile{Base: 26.99, PerRequest: 0.08782, PerResidentToken: 4.62e-06, PerPrefillToken: 0.04142, BatchLimit: 120, KVTokens: 65_944}, 10, 0)
	s := constant(12.19, v)
	s.hybrid(capacity.SLO{TTFT: 1532, ITL: 29.477}).Share = 0.5
	s.Models[0].Shape = capacity.TokenShape{Input: 3871, Output: 276}
	w := watched(s, 70*time.Minute)
	assert.LessOrEqual(t, w.models[0].variants[0].target, 40, w.tell())
}

// A burst fills an idle replica within one metrics window. The mean batch of that window is that of
// no time in it, and the latency is that of the full batch: the replica is not twice as slow as its
// profile says. Taken to be, it would be given up for one that misses the promise even when idle.
func TestABatchThatFillsTeachesNoLatency(t *testing.T) {
	t.Parallel()
	keeps := variant("keeps", serving.Profile{Base: 10.88, PerRequest: 0.06406, PerResidentToken: 4.186e-05, PerPrefillToken: 0.01487, BatchLimit: 358, KVTokens: 84_634}, 10, 0)
	misses := variant("misses", serving.Profile{Base: 19.76, PerRequest: 0.3797, PerResidentToken: 1.083e-05, PerPrefillToken: 0.03484, BatchLimit: 30, KVTokens: 1_863_924}, 10, 0)
	misses.Policy.Min, misses.Startup = 1, 10*time.Second
	s := constant(1.228, keeps, misses).hybrid(capacity.SLO{TTFT: 61, ITL: 20.4})
	s.Models[0].Shape = capacity.TokenShape{Input: 229, Output: 33}
	begins := 15*time.Minute + 50*time.Second
	ends := begins + 30*time.Second
	s.Models[0].Load = []Point{{0, 1.228}, {begins, 1.228}, {begins + step, 459}, {ends, 459}, {ends + step, 1.228}}
	w := watched(s, 80*time.Minute)
	assert.Equal(t, 1, w.models[0].variants[0].target, w.tell())
}
