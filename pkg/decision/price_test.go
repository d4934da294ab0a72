package decision

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// An idle replica that costs so many times as much must be so many times as likely to be
// missed: the odds of needing it are what its price is compared by.
func TestWhatIsWorthItsPriceFollowsTheOdds(t *testing.T) {
	for _, risk := range []float64{0.5, 0.85, 0.9, 0.99} {
		assert.InDelta(t, risk, allocate.Worthwhile(risk, 1), 1e-12)
		for _, times := range []float64{1.5, 2, 9, 100} {
			p := allocate.Worthwhile(risk, times)
			assert.InDelta(t, risk/(1-risk)/times, p/(1-p), 1e-9, "risk %v, %v times as dear", risk, times)
		}
	}
}

// twofold is the belief that a load is mostly as it is, and with one chance in five far more.
func twofold(now, more float64) *forecast.Belief {
	b := forecast.Belief{Sampled: epoch, Lately: forecast.Lately{Seconds: 600, Mean: now}}
	b.Modes[0] = forecast.Mode{Probability: 0.8, Level: now}
	b.Modes[1] = forecast.Mode{Probability: 0.2, Level: more}
	return &b
}

// The cheap replicas are all there, and serve 80 of the 100 req/s that may come with one
// chance in five. A dear one serves 4.
func TestADearReplicaIsBoughtForWhatIsLikely(t *testing.T) {
	for name, c := range map[string]struct {
		now      float64
		times    capacity.Cost
		adjust   func(p *allocate.Purchase, dear *limit.Variant)
		bought   int
		reported bool
	}{
		"as dear as the others":             {now: 10, times: 1, bought: 5},
		"spare that costs no more stays":    {10, 1, func(p *allocate.Purchase, _ *limit.Variant) { p.Need = 15 }, 5, false},
		"twice as dear is worth two in ten": {now: 10, times: 2, bought: 5},
		"six times as dear is not":          {now: 10, times: 6, reported: true},
		"the load of now is served anyway":  {now: 90, times: 9, bought: 3, reported: true},
		"a cheap one is bought for all":     {now: 10, times: 0.1, bought: 5},
		"one stays where a trigger fired":   {10, 9, func(p *allocate.Purchase, _ *limit.Variant) { p.Model.Need.Triggered = true }, 1, true},
		"none where what starts may answer it": {10, 9, func(p *allocate.Purchase, _ *limit.Variant) {
			p.Model.Need.Triggered, p.Model.Variants[0].Fleet.Supply = true, 9
		}, 0, true},
		"thresholds alone know no price": {10, 9, func(p *allocate.Purchase, _ *limit.Variant) { p.Model.Sized = false }, 5, false},
		"an unknown load is no load":     {10, 9, func(p *allocate.Purchase, _ *limit.Variant) { p.Model.Demand.Known = false }, 5, false},
		"what misses the promise is no measure": {10, 6, func(p *allocate.Purchase, _ *limit.Variant) {
			p.Model.Variants = append(p.Model.Variants, variantOf(func(it *limit.Variant) {
				it.In, it.Fleet, it.Price, it.Rate = &Variant{Name: "late"}, fleet.Fleet{Supply: 9}, 1e6, rate.Rate{Trigger: 5, Bound: true}
			}))
		}, 0, true},
		"none where others were bought before": {10, 9, func(p *allocate.Purchase, _ *limit.Variant) {
			p.Model.Need.Triggered, p.Bought[p.Model.Variants[0]] = true, 3
		}, 0, true},
		"what was bought before counts as what it costs": {10, 4, func(p *allocate.Purchase, dear *limit.Variant) { p.Bought[dear] = 10 }, 5, false},
		"two would not quite suffice":                    {90, 9, func(_ *allocate.Purchase, dear *limit.Variant) { dear.Rate.Trigger = 5 }, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, cheap := bare(DefaultPolicy(), Memory{}, &Variant{Name: "cheap", Ready: 8, Current: 8})
			cheap.Rate, cheap.Price = rate.Rate{Trigger: 10, Max: 20}, 10
			dear := variantOf(func(it *limit.Variant) {
				it.In, it.Key, it.Managed, it.Policy, it.Rate, it.Price = &Variant{Name: "dear"}, Key{Namespace: "ns", Name: "dear"}, true, DefaultVariantPolicy(), rate.Rate{Trigger: 4, Max: 5}, 4*c.times
			})
			m.Variants = append(m.Variants, dear)
			m.Stack()
			m.Sized, m.Demand.Known, m.Demand.Risk = true, true, 0.9
			m.Demand.Now, m.Demand.Forecast = capacity.Rate(c.now), twofold(c.now, 100)
			m.SizeFor = 100
			p := &allocate.Purchase{Model: m, Need: 20, Bought: map[*limit.Variant]int{}, Dear: map[*limit.Variant]allocate.TooDear{}}
			if c.adjust != nil {
				c.adjust(p, dear)
			}
			mix := []int{5}
			allocate.LeaveDear(r, p, []*limit.Variant{dear}, mix, p.Need)
			assert.Equal(t, []int{c.bought}, mix)
			assert.Equal(t, c.reported, p.Dear[dear].Times > 1, "%+v", p.Dear[dear])
		})
	}
}

// Of several that are too dear the dearest go first, and the rest stays that is worth it.
func TestTheDearestGoFirst(t *testing.T) {
	r, m, cheap := bare(DefaultPolicy(), Memory{}, &Variant{Name: "cheap", Ready: 8, Current: 8})
	cheap.Rate, cheap.Price = rate.Rate{Trigger: 10, Max: 20}, 10
	other := func(name string, times capacity.Cost) *limit.Variant {
		return variantOf(func(it *limit.Variant) {
			it.In, it.Key, it.Managed, it.Policy, it.Rate, it.Price = &Variant{Name: name}, Key{Namespace: "ns", Name: name}, true, DefaultVariantPolicy(), rate.Rate{Trigger: 4, Max: 5}, 4*times
		})
	}
	dear, dearer := other("dear", 6), other("dearer", 9)
	m.Variants = append(m.Variants, dear, dearer)
	m.Stack()
	m.Sized, m.Demand.Known, m.Demand.Risk, m.SizeFor = true, true, 0.9, 100
	m.Demand.Now, m.Demand.Forecast, m.Need.Queued = 90, twofold(90, 100), 7
	m.Need.Required = m.SizeFor + m.Need.Queued
	p := &allocate.Purchase{Model: m, Bought: map[*limit.Variant]int{}, Dear: map[*limit.Variant]allocate.TooDear{}}
	mix := []int{3, 2}
	allocate.LeaveDear(r, p, []*limit.Variant{dear, dearer}, mix, 20)
	assert.Equal(t, []int{3, 0}, mix)
	assert.Zero(t, p.Dear[dear])
	assert.InDelta(t, 97, float64(p.Dear[dearer].Enough), 1)
	allocate.RecordGrowth(r, p, within(r, dearer))
	assert.Regexp(t, `^not added: costs \d\.\d times as much per req/s as the others; worth it up to 97\.\d\d req/s, 107\.00 are required$`, textOf(dearer.Plan.Steps[0].Detail))
	allocate.RecordGrowth(r, p, within(r, dear))
	assert.Equal(t, "not added: other variants are cheaper", textOf(dear.Plan.Steps[0].Detail))
}
