package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
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
					policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a"}: keep, {Namespace: "ns", Name: "b"}: keep}
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
					each := f.memory.Variants[Key{Namespace: "ns", Name: "b"}].Sizing.Rate
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
			l := LatencyMemory{Given: c.given, Pace: 1}
			require.False(t, rate.Doubted(&l, c.given, seen, slo), "nothing was learned yet that could be wrong")
			l.FittedTo = serving.Learned{Seen: make([]serving.Observation, 1)}
			require.Equal(t, c.doubt, rate.Doubted(&l, c.given, seen, slo))
		})
	}
}

// Where the promise is missed, a rate within it that falls by more than half, of the same requests and
// the same promise, has to last for a metrics window before it counts.
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
			r, m, v := bare(policy, Memory{}, &Variant{Name: "v"})
			m.In.Met = Exactly(Sample{Value: 0.5, Time: epoch, Present: true})
			found := asked
			found.Rate = c.rate
			require.Equal(t, c.held, within(r, v).Doubt(&within(r, m).Model.Model, &c.old, &found))
			assert.Equal(t, c.held, c.old.Doubted != time.Time{} && r.Snapshot.Time.Sub(c.old.Doubted) < policy.Window)
		})
	}
}

// Where nothing else says that replicas lack, a rate that the latency model alone lowers falls by one step
// for each metrics window in which none starts.
func TestARateThatALatencyModelAloneLowersFallsInSteps(t *testing.T) {
	policy := DefaultPolicy()
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {SLO: capacity.SLO{TTFT: 1000, ITL: 20}}}
	s := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
	pods := func(itl ...float64) (list []Replica) {
		for i, one := range itl {
			list = append(list, Replica{Name: fmt.Sprint("v-", i), ITL: s(one), TTFT: s(0.5)})
		}
		return list
	}
	at := func(ago time.Duration) time.Time { return epoch.Add(-ago) }
	for name, c := range map[string]struct {
		rate    capacity.Rate
		doubted time.Time
		change  func(m *limit.Model, v *limit.Variant)
		// held says that it is not believed, want is what counts then, and since is since when it is
		// doubted.
		held  bool
		want  capacity.Rate
		since time.Time
	}{
		"a little less":               {rate: 3.6},
		"more than a step less":       {rate: 3.2, held: true, want: 4, since: at(0)},
		"for nearly a window":         {rate: 3.2, doubted: at(59 * time.Second), held: true, want: 4, since: at(59 * time.Second)},
		"for a window":                {rate: 3.2, doubted: at(time.Minute), held: true, want: 3.4, since: at(0)},
		"a tenth, for a window":       {rate: 0.4, doubted: at(time.Minute), held: true, want: 3.4, since: at(0)},
		"within a step of it, though": {rate: 3.45, doubted: at(time.Minute)},
		"while one starts": {rate: 0.4, doubted: at(time.Minute), held: true, want: 4, change: func(_ *limit.Model, v *limit.Variant) {
			v.Fleet.Supply = v.Fleet.Count[fleet.StateServing] + 1
		}},
		"the share that met it says so, too": {rate: 1, doubted: at(time.Minute), since: at(time.Minute), change: func(m *limit.Model, _ *limit.Variant) { m.In.Met = Exactly(s(0.5)) }},
		"it said so long ago": {rate: 1, doubted: at(time.Minute), held: true, want: 3.4, since: at(0), change: func(m *limit.Model, _ *limit.Variant) {
			m.In.Met = Exactly(Sample{Value: 0.5, Time: at(time.Hour), Present: true})
		}},
		"the share that met it does not": {rate: 1, doubted: at(time.Minute), held: true, want: 3.4, since: at(0), change: func(m *limit.Model, _ *limit.Variant) { m.In.Met = Exactly(s(1)) }},
		"one is saturated":               {rate: 1, doubted: at(time.Minute), since: at(time.Minute), change: func(m *limit.Model, _ *limit.Variant) { m.Load.Saturated = 1 }},
		"requests wait":                  {rate: 1, doubted: at(time.Minute), since: at(time.Minute), change: func(m *limit.Model, _ *limit.Variant) { m.Demand.Backlog = 100 }},
		"most miss it in the mean":       {rate: 1, doubted: at(time.Minute), since: at(time.Minute), change: func(_ *limit.Model, v *limit.Variant) { v.In.Replicas = pods(0.03, 0.03, 0.01) }},
		"their first token does": {rate: 1, doubted: at(time.Minute), since: at(time.Minute), change: func(_ *limit.Model, v *limit.Variant) {
			v.In.Replicas = pods(0.01)
			v.In.Replicas[0].TTFT = s(3)
		}},
		"half of them do": {rate: 1, doubted: at(time.Minute), held: true, want: 3.4, since: at(0), change: func(_ *limit.Model, v *limit.Variant) { v.In.Replicas = pods(0.03, 0.01) }},
		"those do that differ": {rate: 1, doubted: at(time.Minute), held: true, want: 3.4, since: at(0), change: func(_ *limit.Model, v *limit.Variant) {
			v.In.Replicas, v.Odd.Of = pods(0.03, 0.03, 0.01), []*Odd{{}, {}, nil}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Current: 1, Ready: 1})
			m.Promise = policy.Promises[m.Key]
			if c.change != nil {
				c.change(m, v)
			}
			found := Sizing{Profile: onH100.Paced(2), Shape: conv, SLO: m.Promise.SLO, Share: 0.99, PeakShare: 0.9, Rate: c.rate}
			old := found
			old.Profile, old.Rate, old.PeakRate, old.Doubted = onH100, 4, 6, c.doubted
			require.Equal(t, c.held, within(r, v).Doubt(&within(r, m).Model.Model, &old, &found))
			assert.Equal(t, c.since, old.Doubted)
			if c.held {
				assert.InEpsilon(t, float64(c.want), float64(old.Rate), 1e-9)
				assert.InEpsilon(t, 1.5*float64(c.want), float64(old.PeakRate), 1e-9)
			}
		})
	}
}
