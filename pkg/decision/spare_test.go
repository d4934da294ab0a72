package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A load that rises in steps, each of which the small variant would answer at the least
// cost. What it leaves in hand is what the next step needs: the replicas of the variant that
// serves most for its price come first, one of the other at most covers the rest.
func TestSmallStepsAreNotAnsweredWithSmallDearReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		small       float64
		large, most int
	}{
		"a small variant that is a third dearer for what it serves": {small: 5.5, large: 5, most: 1},
		"one that is cheaper for it":                                {small: 4.0, large: 0, most: 99},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(10)
			w.variants[1].cost = capacity.Cost(c.small)
			policy, memory := demoPolicy(), Memory{}
			policy.Horizon = 0
			for range 120 {
				plan, next := Decide(w.snapshot(), policy, memory, RoundFull)
				memory = next
				w.apply(plan)
				w.now = w.now.Add(15 * time.Second)
				w.arrival++
			}
			t.Log(w.variants[0].replicas, w.variants[1].replicas)
			assert.GreaterOrEqual(t, w.variants[0].replicas, c.large)
			assert.LessOrEqual(t, w.variants[1].replicas, c.most)
		})
	}
}
