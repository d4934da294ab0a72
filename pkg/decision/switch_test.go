package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// takeover is a world in which four dear replicas serve 8 requests/s, and replicas of
// another accelerator, which cost less than half, would serve the same.
func takeover(policy Policy, startup, window time.Duration) (f *fluid, cheap, dear *vessel) {
	cheap, dear = vesselOf("cheap", 0), vesselOf("dear", 4)
	cheap.cost, cheap.startup, cheap.seen, dear.request = 3, startup, startup, request("L40S", 1)
	own := DefaultVariantPolicy()
	own.Down.Window = window
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "cheap"}: own, {Namespace: "ns", Name: "dear"}: own}
	cluster := &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 8)...)}
	m := &flow{id: "m", arrivals: constant(8), variants: []*vessel{cheap, dear}}
	return newFluid(cluster, policy, m), cheap, dear
}

// serving is what the replicas that serve carry at the load that the triggers allow.
func (f *fluid) serving() float64 {
	n := 0
	for _, m := range f.models {
		for _, v := range m.variants {
			n += v.count(serves)
		}
	}
	return float64(n) * allowed(plain)
}

// However long replicas take to start, and however short the window is: a switch is one
// write up and one write down, and what serves suffices at every moment.
func TestASwitchIsTwoWrites(t *testing.T) {
	for _, startup := range []time.Duration{110 * time.Second, 6 * time.Minute, 10 * time.Minute} {
		if !thorough && startup != 6*time.Minute {
			continue
		}
		for _, window := range []time.Duration{0, time.Minute, 5 * time.Minute} {
			for _, seen := range []bool{true, false} {
				for _, hybrid := range []bool{false, true} {
					t.Run(fmt.Sprintf("start-up %v, seen %v, window %v, hybrid %v", startup, seen, window, hybrid), func(t *testing.T) {
						policy := DefaultPolicy()
						policy.Hybrid = hybrid
						f, cheap, _ := takeover(policy, startup, window)
						if !seen {
							cheap.seen = 0
						}
						least := f.serving()
						for f.elapsed() < 45*time.Minute {
							f.step()
							least = min(least, f.serving())
						}
						if assert.Len(t, f.writes, 2, "%v", f.writes) {
							up, down := f.writes[0], f.writes[1]
							assert.Equal(t, write{up.at, "cheap", 0, 4}, up)
							assert.Equal(t, write{down.at, "dear", 4, 0}, down)
							assert.Greater(t, down.at, up.at+startup)
							assert.Less(t, down.at, up.at+startup+2*window+5*time.Minute)
						}
						assert.GreaterOrEqual(t, least, 8.0)
					})
				}
			}
		}
	}
}

// A switch that is not worth it any more, because the price or the load changes while
// its replicas start, is undone once: nothing is started again.
func TestASwitchIsUndoneOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fluid, cheap, dear *vessel)
		left   []int
	}{
		"the price changes back":        {func(_ *fluid, cheap, _ *vessel) { cheap.cost = 20 }, []int{0, 4}},
		"the other one becomes cheaper": {func(_ *fluid, _, dear *vessel) { dear.cost = 2.9 }, []int{0, 4}},
		"the load falls":                {func(f *fluid, _, _ *vessel) { f.models[0].arrivals = constant(1) }, []int{1, 0}},
	} {
		for _, window := range []time.Duration{0, time.Minute, 5 * time.Minute} {
			t.Run(fmt.Sprintf("%s, window %v", name, window), func(t *testing.T) {
				f, cheap, dear := takeover(DefaultPolicy(), 6*time.Minute, window)
				f.reaches(t, cheap, 4, time.Hour)
				f.run(f.elapsed() + 30*time.Second)
				c.change(f, cheap, dear)
				f.run(f.elapsed() + 45*time.Minute)
				left := []int{cheap.replicas, dear.replicas}
				assert.Equal(t, c.left, left, "%v", f.writes)
				for _, w := range f.writes[1:] {
					assert.Less(t, w.to, w.from, "%v", f.writes)
				}
				if c.left[1] == 4 {
					assert.Len(t, f.writes, 2, "%v", f.writes)
				}
			})
		}
	}
}

// A switch whose replicas never serve gives them back when they are due, and tries one
// at a time after a pause; the replicas that serve stay.
func TestASwitchThatNeverServes(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(*vessel)
		seen  time.Duration
		gone  time.Duration
		tries int
	}{
		"it finds no node":                {func(v *vessel) { v.refused = true }, 0, 5 * time.Minute, 6},
		"it crashes":                      {func(v *vessel) { v.crashing = true }, 0, 5 * time.Minute, 6},
		"it hangs":                        {func(v *vessel) { v.startup = 24 * time.Hour }, 6 * time.Minute, 19 * time.Minute, 5},
		"it hangs, and no start was seen": {func(v *vessel) { v.startup = 24 * time.Hour }, 0, 16 * time.Minute, 5},
	} {
		for mode, limited := range bothModes {
			t.Run(name+", "+mode, func(t *testing.T) {
				policy := DefaultPolicy()
				policy.Limited = limited
				f, cheap, dear := takeover(policy, 6*time.Minute, 5*time.Minute)
				c.fails(cheap)
				cheap.seen = c.seen
				came := f.reaches(t, cheap, 4, time.Hour)
				f.run(came + c.gone)
				assert.Zero(t, cheap.replicas, "%v", f.writes)
				f.run(came + 100*time.Minute)
				assert.Equal(t, 4, dear.replicas)
				tries := 0
				for _, w := range f.writes[2:] {
					assert.LessOrEqual(t, w.to, 1, "%v", f.writes)
					tries += w.to
				}
				assert.LessOrEqual(t, tries, c.tries, "%v", f.writes)
			})
		}
	}
}

// The old replicas run beside the new ones until their own window is over, and in hybrid
// mode for as long as they are held there: that decides whether a switch pays.
func TestASwitchPaysForTheWindowOfTheOldOnes(t *testing.T) {
	for name, c := range map[string]struct {
		old, fresh time.Duration
		hybrid     bool
		startup    time.Duration
		comes      bool
	}{
		"the old ones go soon":                       {old: time.Minute, comes: true},
		"the new ones would go late":                 {old: time.Minute, fresh: time.Hour, comes: true},
		"the old ones stay long":                     {old: time.Hour},
		"the old ones start slowly":                  {old: 10 * time.Minute, startup: 20 * time.Minute, comes: true},
		"where it is, and the old ones start sooner": {old: 10 * time.Minute, startup: 2 * time.Minute, hybrid: true, comes: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(5)
			w.variants[0].cost = 2.3
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := policyFor(true, "a-8xh100", "b-l40s")
			policy.Hybrid = c.hybrid
			for name, window := range map[string]time.Duration{"a-8xh100": c.fresh, "b-l40s": c.old} {
				own := policy.Variants[Key{Namespace: "ns", Name: name}]
				own.Down.Window = window
				policy.Variants[Key{Namespace: "ns", Name: name}] = own
			}
			s := w.snapshot()
			s.Models[0].Variants[1].Startup = c.startup
			// It was so for long.
			memory := Memory{Models: map[ModelKey]*ModelMemory{{Namespace: "ns", ID: "m"}: {Cheaper: w.now.Add(-24 * time.Hour)}}}
			plan, _ := Decide(s, policy, memory, RoundFull)
			assert.Equal(t, c.comes, *plan.Models[0].Variants[0].Desired > 0, lineOf(&plan.Models[0].Variants[0]))
		})
	}
}

// A price that goes back and forth is followed each time: that a switch goes back does not mean
// that the one before it was in vain.
func TestAPriceThatGoesBackAndForthIsFollowed(t *testing.T) {
	cheap, dear := vesselOf("cheap", 4), vesselOf("dear", 0)
	cheap.cost, dear.cost = 4, 10
	f := newFluid(machines(4), DefaultPolicy(), &flow{id: "m", arrivals: constant(8), variants: []*vessel{cheap, dear}})
	for i := range 8 {
		f.run(time.Duration(i+1) * time.Hour)
		assert.Equal(t, i%2 == 0, cheap.replicas > 0, "hour %d: %v", i, f.writes)
		assert.Equal(t, i%2 == 1, dear.replicas > 0, "hour %d: %v", i, f.writes)
		cheap.cost = 44 - cheap.cost
	}
}
