package decision

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// An idle replica that costs so many times as much must be so many times as likely to be
// missed: the odds of needing it are what its price is compared by.
func TestWhatIsWorthItsPriceFollowsTheOdds(t *testing.T) {
	for _, risk := range []float64{0.5, 0.85, 0.9, 0.99} {
		assert.InDelta(t, risk, worthwhile(risk, 1), 1e-12)
		for _, times := range []float64{1.5, 2, 9, 100} {
			p := worthwhile(risk, times)
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
		adjust   func(p *purchase, dear *variant)
		bought   int
		reported bool
	}{
		"as dear as the others":             {now: 10, times: 1, bought: 5},
		"spare that costs no more stays":    {10, 1, func(p *purchase, _ *variant) { p.need = 15 }, 5, false},
		"twice as dear is worth two in ten": {now: 10, times: 2, bought: 5},
		"six times as dear is not":          {now: 10, times: 6, reported: true},
		"the load of now is served anyway":  {now: 90, times: 9, bought: 3, reported: true},
		"a cheap one is bought for all":     {now: 10, times: 0.1, bought: 5},
		"one stays where a trigger fired":   {10, 9, func(p *purchase, _ *variant) { p.model.need.triggered = true }, 1, true},
		"none where what starts may answer it": {10, 9, func(p *purchase, _ *variant) {
			p.model.need.triggered, p.model.variants[0].fleet.supply = true, 9
		}, 0, true},
		"thresholds alone know no price": {10, 9, func(p *purchase, _ *variant) { p.model.sized = false }, 5, false},
		"an unknown load is no load":     {10, 9, func(p *purchase, _ *variant) { p.model.demand.known = false }, 5, false},
		"what misses the promise is no measure": {10, 6, func(p *purchase, _ *variant) {
			p.model.variants = append(p.model.variants, variantOf(variant{in: &Variant{Name: "late"}, price: 1e6, rate: rate{trigger: 5, bound: true}, fleet: fleet{supply: 9}}))
		}, 0, true},
		"none where others were bought before": {10, 9, func(p *purchase, _ *variant) {
			p.model.need.triggered, p.bought[p.model.variants[0]] = true, 3
		}, 0, true},
		"what was bought before counts as what it costs": {10, 4, func(p *purchase, dear *variant) { p.bought[dear] = 10 }, 5, false},
		"two would not quite suffice":                    {90, 9, func(_ *purchase, dear *variant) { dear.rate.trigger = 5 }, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, cheap := bare(DefaultPolicy(), Memory{}, &Variant{Name: "cheap", Ready: 8, Current: 8})
			cheap.rate, cheap.price = rate{trigger: 10, max: 20}, 10
			dear := variantOf(variant{in: &Variant{Name: "dear"}, key: Key{"ns", "dear"}, managed: true, policy: DefaultVariantPolicy(), rate: rate{trigger: 4, max: 5}, price: 4 * c.times})
			m.variants = append(m.variants, dear)
			m.sized, m.demand.known, m.demand.risk = true, true, 0.9
			m.demand.now, m.demand.forecast = capacity.Rate(c.now), twofold(c.now, 100)
			m.sizeFor = 100
			p := &purchase{model: m, need: 20, bought: map[*variant]int{}, dear: map[*variant]tooDear{}}
			if c.adjust != nil {
				c.adjust(p, dear)
			}
			mix := []int{5}
			r.leaveDear(p, []*variant{dear}, mix, p.need)
			assert.Equal(t, []int{c.bought}, mix)
			assert.Equal(t, c.reported, p.dear[dear].times > 1, "%+v", p.dear[dear])
		})
	}
}

// Of several that are too dear the dearest go first, and the rest stays that is worth it.
func TestTheDearestGoFirst(t *testing.T) {
	r, m, cheap := bare(DefaultPolicy(), Memory{}, &Variant{Name: "cheap", Ready: 8, Current: 8})
	cheap.rate, cheap.price = rate{trigger: 10, max: 20}, 10
	other := func(name string, times capacity.Cost) *variant {
		return variantOf(variant{in: &Variant{Name: name}, key: Key{"ns", name}, managed: true, policy: DefaultVariantPolicy(), rate: rate{trigger: 4, max: 5}, price: 4 * times})
	}
	dear, dearer := other("dear", 6), other("dearer", 9)
	m.variants = append(m.variants, dear, dearer)
	m.sized, m.demand.known, m.demand.risk, m.sizeFor = true, true, 0.9, 100
	m.demand.now, m.demand.forecast, m.need.queued = 90, twofold(90, 100), 7
	m.need.required = m.sizeFor + m.need.queued
	p := &purchase{model: m, bought: map[*variant]int{}, dear: map[*variant]tooDear{}}
	mix := []int{3, 2}
	r.leaveDear(p, []*variant{dear, dearer}, mix, 20)
	assert.Equal(t, []int{3, 0}, mix)
	assert.Zero(t, p.dear[dear])
	assert.InDelta(t, 97, float64(p.dear[dearer].enough), 1)
	r.grown(p, dearer)
	assert.Regexp(t, `^not added: costs \d\.\d times as much per req/s as the others; worth it up to 97\.\d\d req/s, 107\.00 are required$`, dearer.plan.Steps[0].Detail)
	r.grown(p, dear)
	assert.Equal(t, "not added: other variants are cheaper", dear.plan.Steps[0].Detail)
}
