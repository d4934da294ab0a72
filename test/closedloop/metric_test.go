package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// unshown is one metric that no server shows, for good.
func unshown(metric int) []Fault { return []Fault{{Kind: FaultUnshown, To: forGood, Count: metric}} }

// While no server shows how full it is no replica may go. A cheaper mix is then begun, and never
// comes to be: each round would begin it again, until the cluster is full.
func TestNoSwitchBeginsWhereNoReplicaMayGo(t *testing.T) {
	for metric, name := range []string{"KV use", "waiting", "running"} {
		for _, grows := range []bool{false, true} {
			s := constant(0, variant("dear", fast, 40, 2), variant("cheap", slow, 2, 0))
			s.Models[0].Load = []Point{{0, 0.1 * s.each(0)}}
			s.Faults = unshown(metric)
			if grows {
				s.Hidden, s.Grows = true, time.Minute
			}
			w := run(s, decision.Decide, "")
			assert.LessOrEqual(t, w.models[0].variants[1].highest, 1, "%s", name)
		}
	}
}

// No server shows how many wait. How full they are and what reaches the gateway suffice to add.
func TestOneMetricThatIsNotShownStopsNoGrowth(t *testing.T) {
	for metric, name := range []string{"KV use", "waiting", "running"} {
		s := constant(0, variant("a", fast, 10, 2))
		s.Models[0].Gateway, s.Models[0].Patience = true, time.Minute
		low, high := 1.4*s.each(0), 6*s.each(0)
		s.Models[0].Load, s.Calm = []Point{{0, low}, {10 * time.Minute, low}, {10*time.Minute + step, high}}, time.Hour
		s.Faults = unshown(metric)
		w := run(s, decision.Decide, "")
		assert.GreaterOrEqual(t, w.models[0].variants[0].target, 5, "%s: %s", name, w.tell())
	}
}

// A HorizontalPodAutoscaler sets nothing of what it is shown. The dearer variant carries the load.
func TestAFollowerThatSetsNothingStarvesNobody(t *testing.T) {
	a, b := variant("a", fast, 4, 2), variant("b", fast, 10, 0)
	a.Metric, a.Kubernetes, a.Stuck, a.Policy.Actuation, a.Policy.Min = true, true, true, decision.ActuationMetric, 1
	s := constant(0, a, b)
	low, high := 1.5*s.each(0), 6*s.each(0)
	s.Models[0].Load, s.Models[0].Patience, s.Calm = []Point{{0, low}, {10 * time.Minute, low}, {10*time.Minute + step, high}}, time.Minute, time.Hour
	w := run(s, decision.Decide, "")
	assert.GreaterOrEqual(t, w.models[0].variants[1].target, 3, w.tell())
}
