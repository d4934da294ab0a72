package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// The first replica to serve gets all that waited meanwhile, and serves it alone for more than an
// hour. The many that came for it go within two windows, as far as is known of replicas that are
// hardly asked, and none of them comes back: what is left does not count on the busy one.
func TestAQueueThatOneReplicaServesAloneKeepsNoFleet(t *testing.T) {
	t.Parallel()
	first := variant("first", serving.Profile{Base: 20, PerRequest: 0.36, PerResidentToken: 3.3e-5, PerPrefillToken: 0.021, BatchLimit: 68, KVTokens: 190_000}, 10, 0)
	many := variant("many", serving.Profile{Base: 8.5, PerRequest: 0.09, PerResidentToken: 1.3e-5, PerPrefillToken: 0.02, BatchLimit: 155, KVTokens: 2_300_000}, 10, 0)
	first.Accelerator, first.Startup = "A100", 460*time.Second
	many.Startup, many.Told = 585*time.Second, false
	s := constant(71.6, first, many)
	s.Nodes = append(s.Nodes, NodeGroup{"A100", 10, 8})
	s.Models[0].Shape, s.Models[0].Gateway = capacity.TokenShape{Input: 1628, Output: 64}, true
	w := holds(t, s)
	v := w.models[0].variants[1]
	assert.Greater(t, v.highest, 12)
	lowest := v.highest
	for _, change := range v.writes {
		lowest = min(lowest, change.to)
		if change.to > change.from {
			assert.Less(t, change.at, 15*time.Minute, "%d -> %d", change.from, change.to)
		}
	}
	assert.LessOrEqual(t, lowest, 5)
	for _, change := range v.writes {
		if change.to == lowest {
			assert.Less(t, change.at, 45*time.Minute)
		}
	}
}

// A load that is far too much for the one replica there is, until it falls when the many that
// came for it begin to serve: what one serves alone keeps those that it needs itself, and no other.
func TestAFallWhileOneServesItsQueueAlone(t *testing.T) {
	t.Parallel()
	one := variant("one", serving.Profile{Base: 22.39, PerRequest: 0.06763, PerResidentToken: 2.645e-5, PerPrefillToken: 0.05238, BatchLimit: 140, KVTokens: 233_238}, 10, 1)
	one.Startup = 615 * time.Second
	s := constant(44.25, one)
	s.Nodes = []NodeGroup{{"H100", 100, 4}}
	s.Models[0].Shape = capacity.TokenShape{Input: 772, Output: 124}
	s.Models[0].Load = []Point{{0, 44.25}, {890 * time.Second, 44.25}, {895 * time.Second, 2.469}}
	holds(t, s)
}
