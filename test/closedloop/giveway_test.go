package closedloop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// rises and falls are when the load of the important model does.
const rises, falls = 20 * time.Minute, 50 * time.Minute

// crowded is a cluster that does not grow, in which the first model, the most important one, needs
// three times as many replicas for half an hour. The other one has the room for them.
func crowded(hybrid bool) *Scenario {
	s := constant(1, variant("v", fast, 10, 4))
	s.Limited, s.Nodes, s.Hybrid = true, []NodeGroup{{"H100", 2, 8}}, hybrid
	s.Models[0].Gateway, s.Models[0].Priority, s.Models[0].SLO = true, 1, capacity.SLO{TTFT: 1000, ITL: 12}
	s.Models = append(s.Models, s.Models[0])
	s.Models[1].Name, s.Models[1].Priority, s.Models[1].Patience = "less", 50, time.Minute
	s.Models[1].Variants = []Variant{variant("v", fast, 10, 9)}
	each := s.each(0)
	s.Models[0].Load = []Point{{0, 3 * each}, {rises, 3 * each}, {rises + step, 9 * each}, {falls, 9 * each}, {falls + step, 3 * each}}
	s.Models[1].Load = []Point{{Rate: 8 * each}}
	return s
}

// givesWay is how often the less important model is lowered while the other one needs its room, and
// to how many.
func givesWay(w *world) (times, lowest int) {
	lowest = w.models[1].variants[0].Replicas
	for _, x := range w.models[1].variants[0].writes {
		if x.at < falls {
			lowest = min(lowest, x.to)
			if x.to < x.from {
				times++
			}
		}
	}
	return times, lowest
}

// The most important model gets what serves its arrivals at once, and no more: the scale-down window
// of who gives it holds nothing. Nothing is given twice, however long pods take to go, and when the load
// is over the other one has its replicas back.
func TestTheMostImportantModelWaitsForNobody(t *testing.T) {
	t.Parallel()
	for _, hybrid := range []bool{false, true} {
		for _, grace := range []time.Duration{0, 150 * time.Second} {
			t.Run(fmt.Sprintf("hybrid %v, grace %s", hybrid, grace), func(t *testing.T) {
				t.Parallel()
				s := crowded(hybrid)
				s.Models[1].Variants[0].Grace = grace
				w := watched(s, 3*time.Hour)
				assert.LessOrEqual(t, w.models[0].waited, 4*time.Minute+grace, w.tell())
				times, lowest := givesWay(w)
				assert.LessOrEqual(t, times, 2, w.tell())
				if !hybrid {
					assert.Equal(t, 6, lowest, "16 that there is room for, less 10 for 9 replicas' load. %s", w.tell())
				}
				for _, m := range w.models {
					assert.LessOrEqual(t, turns(m.variants[0]), 3, w.tell())
				}
				assert.GreaterOrEqual(t, w.models[1].variants[0].target, 9, w.tell())
			})
		}
	}
}

// However much is urgent, nobody gives more than its user allows, nor faster.
func TestWhoGivesWayKeepsItsBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*decision.VariantPolicy)
		lowest int
		most   int
	}{
		"a minimum":             {func(p *decision.VariantPolicy) { p.Min = 8 }, 8, 1},
		"scaleDown is disabled": {func(p *decision.VariantPolicy) { p.Down.Select = decision.SelectDisabled }, 9, 0},
		"one replica in eight minutes": {func(p *decision.VariantPolicy) {
			p.Down.Policies = []decision.RatePolicy{{Pods: 1, Period: 8 * time.Minute}}
		}, 6, 3},
		"one replica in twenty minutes": {func(p *decision.VariantPolicy) {
			p.Down.Policies = []decision.RatePolicy{{Pods: 1, Period: 20 * time.Minute}}
		}, 7, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := crowded(false)
			s.Models[1].Variants[0].OwnDown = true
			c.change(&s.Models[1].Variants[0].Policy)
			w := watched(s, 2*time.Hour)
			times, lowest := givesWay(w)
			assert.Equal(t, c.most, times, w.tell())
			assert.Equal(t, c.lowest, lowest, w.tell())
		})
	}
}
