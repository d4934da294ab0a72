package closedloop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// The first requests are many times what the replicas serve, which are full with few in service:
// long prompts keep them busy, and neither their KV caches nor their batches tell. No replica was
// ever seen without a queue. What they serve is what one serves: the fleet is asked for within minutes.
func TestAStartInAnOverload(t *testing.T) {
	t.Parallel()
	for name, hybrid := range map[string]bool{"capacity-only": false, "hybrid": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := variant("v", serving.Profile{Base: 30.77, PerRequest: 0.14, PerPrefillToken: 0.003, Form: serving.Overlapped, BatchLimit: 160, KVTokens: 499_720}, 10, 1)
			v.Told, v.Startup, v.Budget = false, 10*time.Second, 512
			s := constant(34, v)
			s.Nodes, s.Hybrid = []NodeGroup{{"H100", 100, 8}}, hybrid
			s.Models[0].Shape, s.Models[0].SLO = capacity.TokenShape{Input: 3888, Output: 22}, capacity.SLO{TTFT: 12_000, ITL: 1400}
			w := watched(s, 3*time.Minute)
			needed := int(34 / newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 0).saturation.most)
			got := w.models[0].variants[0].target
			assert.Greater(t, got, needed, w.tell())
			assert.Less(t, got, 3*needed, w.tell())
		})
	}
}

// Ten replicas of which nobody knows what they serve are hardly asked: their caches and batches stay
// empty, because long prompts fill them. No scale-down takes more than half of them at once.
func TestHardlyAskedReplicasGoByHalves(t *testing.T) {
	t.Parallel()
	v := variant("v", serving.Profile{Base: 10, PerRequest: 0.1, PerResidentToken: 1e-5, PerPrefillToken: 0.02, BatchLimit: 256, KVTokens: 500_000, Form: serving.Overlapped}, 10, 10)
	v.Told, v.Budget, v.Startup = false, 2048, 10*time.Minute
	s := constant(1, v)
	s.Models[0].Gateway, s.Models[0].Shape = true, capacity.TokenShape{Input: 8000, Output: 50}
	s.Models[0].Load[0].Rate = 1.2 * s.each(0)
	w := watched(s, time.Hour)
	for _, x := range w.models[0].variants[0].writes {
		assert.GreaterOrEqual(t, 2*x.to, x.from, w.tell())
	}
}

// A model that sleeps wakes to five times what one replica serves. It is known from before what that
// is: all that are needed start together. One that comes first would be given the whole queue, and
// serve it alone for most of an hour.
func TestASleeperIsWokenByAsManyAsItNeeds(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		for _, hybrid := range []bool{false, true} {
			t.Run(fmt.Sprintf("profile given %v, hybrid %v", told, hybrid), func(t *testing.T) {
				t.Parallel()
				v := variant("v", fast, 10, 1)
				v.Startup, v.Told = 10*time.Minute, told
				s := constant(1, v)
				s.Hybrid, s.Models[0].SLO, s.Models[0].Gateway, s.Models[0].Sleeps = hybrid, capacity.SLO{TTFT: 1000, ITL: 12}, true, 10*time.Minute
				each, sleeps, wakes := s.each(0), 30*time.Minute, time.Hour
				s.Models[0].Load = []Point{{0, 0.7 * each}, {sleeps, 0.7 * each}, {sleeps + step, 0}, {wakes, 0}, {wakes + step, 5 * each}}
				w := watched(s, wakes+time.Hour)
				assert.LessOrEqual(t, w.models[0].waited, v.Startup+8*time.Minute, w.tell())
			})
		}
	}
}
