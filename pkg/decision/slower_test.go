package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// One of two variants becomes slower, as by a driver, a clock or another model under the same name, at a
// load that fills neither: what it was before counts no more after a few minutes, and the other one
// serves what it cannot within the promise.
func TestAVariantThatBecomesSlower(t *testing.T) {
	const within = 4 * time.Minute
	for _, way := range []string{"given", "learned"} {
		for _, load := range []float64{10, 25} {
			for _, factor := range []float64{2, 3} {
				t.Run(fmt.Sprintf("%s, %v req/s, %v times", way, load, factor), func(t *testing.T) {
					slow, other := vesselOf("a", 2), vesselOf("b", 2)
					slow.profile, other.profile, other.cost = onH100, onH100, 8
					slow.unstated, other.unstated = way == "learned", way == "learned"
					keep := DefaultVariantPolicy()
					keep.Min = 1
					policy := hybrid(DefaultPolicy(), capacity.SLO{TTFT: 2000, ITL: 13})
					policy.Variants = map[Key]VariantPolicy{{"ns", "a"}: keep, {"ns", "b"}: keep}
					f := newFluid(machines(8), policy, &flow{id: "m", variants: []*vessel{slow, other}, arrivals: func(t time.Duration) float64 {
						if t < calm {
							return load * (0.5 + 0.5*float64(int(t.Minutes()/7)%3))
						}
						return load
					}})
					const at = calm + time.Hour
					f.run(at)
					if slow.profile = onH100.Paced(factor); way == "given" {
						slow.stated = onH100
					}
					before := other.replicas
					f.run(at + within)
					assert.Greater(t, other.replicas, before, "%v", f.writes)
					f.run(at + time.Hour)
					assert.Equal(t, 1, slow.replicas, "%v", f.writes)
					each := f.memory.Variants[Key{"ns", "b"}].Sizing.Rate
					assert.GreaterOrEqual(t, float64(each)*float64(other.replicas), load, "%v", f.writes)
				})
			}
		}
	}
}

// When it is doubted that the latency model is of the server that is seen.
func TestWhenALatencyModelIsDoubted(t *testing.T) {
	slo := capacity.SLO{TTFT: 2000, ITL: 13}
	for name, c := range map[string]struct {
		paces []float64
		batch float64
		given serving.Profile
		doubt bool
	}{
		"as it says":                         {[]float64{1, 1.05, 0.95}, 20, onH100, false},
		"most take twice as long":            {[]float64{2, 2, 1}, 20, onH100, true},
		"one does":                           {[]float64{2, 1, 1}, 20, onH100, false},
		"most are twice as fast":             {[]float64{0.5, 0.5, 1}, 20, onH100, true},
		"a third more is what a few take":    {[]float64{1.3, 1.3}, 10, onH100, false},
		"and is more where the promise goes": {[]float64{1.3, 1.3}, 60, onH100, true},
		"it is missed as was said":           {[]float64{1, 1}, 128, onH100, false},
		"no model":                           {[]float64{2, 2}, 20, serving.Profile{}, false},
		"nothing is seen":                    {nil, 20, onH100, false},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []serving.Observation
			for _, pace := range c.paces {
				itl := onH100.Steady(c.batch, conv).ITL * capacity.Milliseconds(pace)
				seen = append(seen, serving.Observation{Time: epoch, Point: serving.Point{Shape: conv, Batch: c.batch, ITL: itl}})
			}
			l := Learning{Given: c.given, Pace: 1}
			require.False(t, l.doubted(c.given, seen, slo), "nothing was learned yet that could be wrong")
			l.FittedTo = serving.Learned{Seen: make([]serving.Observation, 1)}
			require.Equal(t, c.doubt, l.doubted(c.given, seen, slo))
		})
	}
}

// A rate within the promise that falls by more than half, of the same requests and the same promise, has to
// last for a metrics window before it counts.
func TestARateThatHalvesIsConfirmed(t *testing.T) {
	policy := DefaultPolicy()
	asked := Sizing{Profile: onH100.Paced(3), Shape: conv, SLO: capacity.SLO{ITL: 20}, Share: 0.99, PeakShare: 0.9}
	before := asked
	before.Profile, before.Rate, before.Found = onH100, 4.9, epoch.Add(-time.Hour)
	longer, other := before, before
	longer.Shape.Output /= 2
	other.SLO.ITL = 40
	doubted := func(s Sizing, ago time.Duration) Sizing { s.Doubted = epoch.Add(-ago); return s }
	for name, c := range map[string]struct {
		old  Sizing
		rate capacity.Rate
		held bool
	}{
		"a little less":           {before, 4, false},
		"half":                    {before, 2.45, false},
		"a tenth":                 {before, 0.49, true},
		"for nearly a window":     {doubted(before, 59*time.Second), 0.49, true},
		"for a window":            {doubted(before, time.Minute), 0.49, false},
		"requests became longer":  {longer, 0.49, false},
		"another promise":         {other, 0.49, false},
		"it was never found":      {Sizing{}, 0.49, false},
		"more again, after doubt": {doubted(before, time.Hour), 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := bare(policy, Memory{}, &Variant{Name: "v"})
			found := asked
			found.Rate = c.rate
			require.Equal(t, c.held, r.doubt(&c.old, &found))
			assert.Equal(t, c.held, c.old.Doubted != time.Time{} && r.snapshot.Time.Sub(c.old.Doubted) < policy.Window)
		})
	}
}
