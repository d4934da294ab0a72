package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// Without a gateway a few replicas that never say anything do not hold the others when the load
// falls.
func TestAFewSilentReplicasHoldNoOthers(t *testing.T) {
	for silent, most := range map[int]int{0: 6, 1: 7, 3: 9} {
		web := vesselOf("web", 20)
		m := &flow{id: "m", direct: true, arrivals: step(20*time.Minute, 40, 12), variants: []*vessel{web}}
		f := newFluid(machines(8), DefaultPolicy(), m)
		f.unheard = silent
		f.run(3 * time.Hour)
		assert.LessOrEqual(t, web.replicas, most, "%d silent: %v", silent, f.writes)
		assert.GreaterOrEqual(t, web.replicas, 5, "%d silent: %v", silent, f.writes)
	}
}

// What replicas that say nothing serve is what the others do, unless some of them may have just
// begun or gone, or too few say anything.
func TestACountIsCompleted(t *testing.T) {
	seen := func(ready int) []Observation { return []Observation{{Time: epoch, Sampled: epoch, Ready: ready}} }
	for name, c := range map[string]struct {
		heard, ready int
		seen         []Observation
		rate         capacity.Rate
		bound        bool
	}{
		"all say it":      {4, 4, nil, 12, false},
		"one of four":     {3, 4, seen(4), 12, false},
		"half of them":    {2, 4, seen(4), 6, true},
		"one just began":  {3, 4, seen(3), 9, true},
		"one just went":   {4, 4, seen(5), 12, true},
		"nobody knows":    {3, 4, nil, 9, true},
		"none says it":    {0, 4, seen(4), 0, true},
		"more say it yet": {4, 3, seen(3), 12, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := &Variant{Name: "v", Current: c.ready, Ready: c.ready}
			r, m, _ := bare(DefaultPolicy(), Memory{}, in)
			m.Old.Seen = c.seen
			count := forecast.Count{Rate: capacity.Rate(3 * c.heard), Span: 15 * time.Second}
			within(r, m).Complete(&count, epoch, c.heard)
			assert.Equal(t, c.rate, count.Rate)
			assert.Equal(t, c.bound, count.LowerBound)
		})
	}
}

// One replica whose readiness comes and goes does not keep the others when the load falls.
func TestAReplicaThatFlapsHoldsNoOthers(t *testing.T) {
	web := vesselOf("web", 16)
	m := &flow{id: "m", arrivals: step(20*time.Minute, 32, 6), variants: []*vessel{web}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	for f.elapsed() < 3*time.Hour {
		p := web.pods[0]
		switch f.elapsed() % (100 * time.Second) {
		case 70 * time.Second:
			f.lose(p)
			p.hung = true
		case 0:
			p.hung = false
		}
		f.step()
	}
	assert.LessOrEqual(t, web.replicas, 5, "%v", f.writes)
}

// What a replica showed before it served again the others do since.
func TestWhatAReplicaShowedBeforeItServedCountsForNothing(t *testing.T) {
	at := func(age time.Duration) Sample { return Sample{Value: 5, Time: epoch.Add(-age), Present: true} }
	returned := Replica{Name: "returned", Node: "n", Since: epoch.Add(-10 * time.Second), Served: at(40 * time.Second), Recent: at(40 * time.Second), Running: at(40 * time.Second)}
	stayed := Replica{Name: "stayed", Since: epoch.Add(-time.Hour), Served: at(5 * time.Second), Recent: at(5 * time.Second)}
	v := Variant{Name: "v", Current: 2, Ready: 2, Replicas: []Replica{stayed, returned}}
	found := signal.AsFound(&v)
	assert.Equal(t, []Replica{stayed, {Name: "returned", Node: "n", Since: returned.Since}}, found.Replicas)
	assert.Equal(t, returned, v.Replicas[1], "what was seen is left as it is")

	v.Replicas[1].Since = time.Time{}
	assert.Same(t, &v, signal.AsFound(&v), "nobody knows since when it serves")
}
