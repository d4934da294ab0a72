package decision

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// kept has the snapshot tell the share of what is served that keeps the promise, as histograms do:
// the truth, whatever else is made of the samples. It adds it up.
type kept struct {
	slo       capacity.SLO
	met, asks float64
}

func (k *kept) tell(f *fluid, s *Snapshot) {
	met, asks, at := 0.0, 0.0, time.Time{}
	for i := range f.models[0].variants {
		v := f.models[0].variants[i]
		for _, p := range v.pods {
			if !p.ready || len(p.scrapes) < 2 {
				continue
			}
			served := increaseOf(p.scrapes)
			at, asks = served.Time, asks+served.Value
			in := v.of(p).Steady(max(1, p.running), conv)
			late := float64(in.TTFT) + 1000*p.waiting/max(served.Value, 1e-3)
			if !p.hollow && in.ITL <= k.slo.ITL && late <= float64(k.slo.TTFT) {
				met += served.Value
			}
		}
	}
	if asks > 0 && !at.IsZero() {
		s.Models[0].Met = Exactly(Sample{Value: met / asks, Time: at, Present: true})
		k.met, k.asks = k.met+met, k.asks+asks
	}
}

// share is the share that kept the promise of all that was told of.
func (k *kept) share() float64 { return k.met / k.asks }

// What goes wrong with what is seen, or with one replica, at a constant load that the fleet serves within
// the promise: it is asked for a fifth more at most, in three writes, and the promise goes on to be
// kept, but for what a replica that is bad itself does until it is found out. Where nobody tells how many
// requests keep it, what is told wrong for ten minutes buys step by step as long.
func TestAnEstimateAloneBuysLittle(t *testing.T) {
	const ten = 10 * time.Minute
	timed := func(factor float64) func(*fluid, *vessel, *Snapshot) {
		return func(f *fluid, _ *vessel, s *Snapshot) {
			if f.elapsed() > calm+30*time.Minute+ten {
				return
			}
			list := s.Models[0].Variants[0].Replicas
			for i := range list {
				list[i].ITL.Value *= factor
			}
		}
	}
	faults := map[string]struct {
		seen  func(*fluid, *vessel, *Snapshot)
		begin func(*fluid, *vessel)
		// least is the share of the requests that keeps the promise all the same, where one of n
		// replicas is bad.
		least func(n float64) float64
		// untold has it tried as well where nobody tells how many requests keep the promise.
		untold bool
	}{
		"tokens are told to take 1.6 times as long": {seen: timed(1.6), untold: true},
		"tokens are told to take twice as long":     {seen: timed(2)},
		"tokens are told to take ten times as long": {seen: timed(10)},
		"one replica takes three times as long":     {begin: func(_ *fluid, v *vessel) { v.pods[0].pace = 3 }, least: func(n float64) float64 { return 1 - 1.2/n }},
		"one replica takes five times as long":      {begin: func(_ *fluid, v *vessel) { v.pods[0].pace = 5 }, least: func(n float64) float64 { return 1 - 1.2/n }},
		"one scrape of zeros":                       {begin: func(f *fluid, _ *vessel) { f.zeroed = true }},
	}
	for name, fault := range faults {
		for _, way := range []string{"given", "learned"} {
			for _, n := range []int{2, 4, 10, 20} {
				if !thorough && (n == 2 || n == 20) == (way == "learned") {
					continue
				}
				for _, told := range []bool{true, false} {
					if !told && !fault.untold {
						continue
					}
					factor, writes := 1.2, 3
					if !told {
						factor, writes = 3, 12
					}
					t.Run(fmt.Sprintf("%s, %s, %d replicas, told %v", name, way, n, told), func(t *testing.T) {
						f, web := oddFleet(n, way, 0.6)
						f.models[0].evenly = fault.least != nil
						k := kept{slo: f.policy.Promises[ModelKey{Namespace: "ns", ID: "m"}].SLO}
						tell := func(s *Snapshot) {
							if k.tell(f, s); !told {
								s.Models[0].Met = Kept{}
							}
						}
						f.change = tell
						f.run(calm + 30*time.Minute)
						before, earlier := web.replicas, len(f.writes)
						k.met, k.asks = 0, 0
						f.change = func(s *Snapshot) {
							if tell(s); fault.seen != nil {
								fault.seen(f, web, s)
							}
						}
						if fault.begin != nil {
							fault.begin(f, web)
						}
						most := math.Ceil(factor*float64(before)) + 1e-9
						for f.elapsed() < calm+2*time.Hour {
							f.step()
							require.LessOrEqual(t, float64(web.replicas), most, "%v", f.writes[earlier:])
							require.GreaterOrEqual(t, web.replicas, before, "%v", f.writes[earlier:])
						}
						assert.LessOrEqual(t, len(f.writes)-earlier, writes, "%v", f.writes[earlier:])
						least := 0.99
						if fault.least != nil {
							least = fault.least(float64(before))
						}
						assert.GreaterOrEqual(t, k.share(), least, "%v", f.writes[earlier:])
					})
				}
			}
		}
	}
}

// What replicas serve while the promise is kept stands, until as little misses it.
func TestWhatIsShownToKeepThePromise(t *testing.T) {
	policy := hybrid(DefaultPolicy(), tight)
	before := Sizing{SLO: tight, Share: policy.Share, Shown: 3, ShownOf: conv}
	other, longer := before, before
	other.SLO.ITL = 20
	longer.ShownOf.Output *= 2
	sure := func(share float64) Kept { return Exactly(Sample{Value: share, Time: epoch, Present: true}) }
	perhaps := sure(1)
	perhaps.Sure = 0.5
	// Of 240 requests three standard deviations are 46.
	const four = (240 - 46.4758) / 60
	for name, c := range map[string]struct {
		old    Sizing
		kept   Kept
		served float64
		change func(m *limit.Model, v *limit.Variant)
		want   float64
	}{
		"more":                       {old: before, kept: sure(1), served: 4, want: four},
		"less":                       {old: before, kept: sure(1), served: 2, want: 3},
		"as many as may miss it":     {old: before, kept: sure(0.99), served: 4, want: four},
		"more miss it, with less":    {old: before, kept: sure(0.98), served: 2, want: 0},
		"more miss it, with more":    {old: before, kept: sure(0.98), served: 4, want: 3},
		"nobody knows how many":      {old: before, kept: perhaps, served: 4, want: 3},
		"nobody tells":               {old: before, served: 4, want: 3},
		"it was told long ago":       {old: before, kept: Exactly(Sample{Value: 1, Time: epoch.Add(-time.Hour), Present: true}), served: 4, want: 3},
		"of another promise":         {old: other, kept: perhaps, served: 4, want: 0},
		"of other requests":          {old: longer, kept: perhaps, served: 4, want: 0},
		"of another version":         {old: before, kept: perhaps, served: 4, change: func(_ *limit.Model, v *limit.Variant) { v.In.Rolling = true }, want: 0},
		"one is saturated":           {old: before, kept: sure(1), served: 4, change: func(m *limit.Model, _ *limit.Variant) { m.Load.Saturated = 1 }, want: 3},
		"few requests show little":   {old: Sizing{SLO: tight, Share: policy.Share, ShownOf: conv}, kept: sure(1), served: 0.2, want: (12 - 3*math.Sqrt(12)) / 60},
		"too few show nothing":       {old: Sizing{SLO: tight, Share: policy.Share, ShownOf: conv}, kept: sure(1), served: 0.1, want: 0},
		"one that differs tells not": {old: before, kept: sure(1), served: 4, change: func(_ *limit.Model, v *limit.Variant) { v.Odd.Of = []*Odd{{}} }, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, Replicas: []Replica{{Name: "v-0", Served: Sample{Value: c.served, Time: epoch, Present: true}}}})
			m.Promise, m.Demand.Tokens, m.In.Met = policy.Promises[m.Key], conv, c.kept
			v.Old.Sizing = c.old
			if c.change != nil {
				c.change(m, v)
			}
			within(r, v).Show(&within(r, m).Model.Model)
			assert.InDelta(t, c.want, float64(v.Next.Sizing.Shown), 1e-3)
		})
	}
}

// A latency model that says a replica keeps the promise at no load, or at next to none, is not believed
// where requests show that it does.
func TestAPromiseThatIsKeptIsNotDenied(t *testing.T) {
	w := newWorld(6)
	w.variants = w.variants[:1]
	policy := hybrid(demoPolicy(), capacity.SLO{ITL: 15})
	s := w.shows()
	in := &s.Models[0].Variants[0]
	in.Profile = onH100.Paced(3)
	count := in.Replicas[0].Served.Value * policy.Window.Seconds()
	shown := (count - signal.SettledChance*math.Sqrt(count)) / policy.Window.Seconds()
	for _, told := range []bool{false, true} {
		if told {
			s.Models[0].Met = Exactly(Sample{Value: 1, Time: in.Replicas[0].Served.Time, Present: true})
		}
		plan := first(s, policy)
		require.Equal(t, told, plan.Models[0].Sized)
		if told {
			assert.InEpsilon(t, rate.LeastShown*shown, float64(plan.Models[0].Variants[0].ServesEach), 1e-9)
		}
	}
}
