package decision

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// sizedOf is what replicas are sized for where so much arrives now and is expected, and one
// replica serves 4 req/s within the promise and so much where more may miss it.
func sizedOf(policy Policy, now, expected, peak capacity.Rate) float64 {
	r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Cost: 1})
	m.Demand.Now, m.Ahead, m.Sized = now, expected, true
	v.Rate = rate.Rate{Trigger: 8, Max: 9, Promised: 4, Bound: true}
	v.Next.Sizing = Sizing{Share: policy.Share, PeakShare: rate.PeakShare(&policy), Rate: 4, PeakRate: peak}
	return float64(within(r, m).SizedFor(m.Ahead))
}

func TestThePromiseIsABudget(t *testing.T) {
	for name, c := range map[string]struct{ now, expected, peak, want float64 }{
		"a steady load spends what is promised":                  {100, 100, 5, 100},
		"a load that falls is not sized for less than it is":     {100, 90, 5, 100},
		"beside nothing now, the rare peak spends all":           {0, 100, 5, 80},
		"where misses do not depend on the load, all is needed":  {50, 100, 4, 100},
		"in between, as much as both together may miss":          {90, 100, 5, 91.59},
		"the nearer the load is to the peak, the less is gained": {98, 100, 5, 98.22},
	} {
		t.Run(name, func(t *testing.T) {
			got := sizedOf(DefaultPolicy(), capacity.Rate(c.now), capacity.Rate(c.expected), capacity.Rate(c.peak))
			assert.InDelta(t, c.want, got, 0.1)
		})
	}
}

// However the load moves, the misses of the two loads together are those of the promise:
// misses that grow exponentially with the load are added up by hand.
func TestTheBudgetIsSpentAndNotMore(t *testing.T) {
	for _, risk := range []float64{0.5, 0.85, 0.9, 0.97} {
		for _, share := range []float64{0.9, 0.95, 0.99, 0.999} {
			policy := DefaultPolicy()
			policy.Risk, policy.Share = risk, share
			atPeak, before := rate.PeakShare(&policy), 0.0
			assert.GreaterOrEqual(t, atPeak, 0.5)
			assert.LessOrEqual(t, atPeak, share)
			for now := 1.0; now < 100; now++ {
				got := sizedOf(policy, capacity.Rate(now), 100, 5)
				what := fmt.Sprintf("risk %v, share %v, %v now: sized for %v", risk, share, now, got)
				assert.GreaterOrEqual(t, got, max(before, now)-1e-3, what)
				before = got
				// A replica serves 4 req/s of what is sized for.
				missed := func(load float64) float64 {
					return (1 - share) * math.Pow((1-atPeak)/(1-share), (4*load/got-4)/(5-4))
				}
				all := risk*missed(now) + (1-risk)*missed(100)
				assert.LessOrEqual(t, all, (1-share)*1.001, what)
				if got > 80.01 && got > now+0.01 {
					assert.InEpsilon(t, 1-share, all, 0.001, what)
				}
			}
		}
	}
}

// One that misses the promise at any load does not say how the budget is spent, where the
// others serve no more when more may miss it.
func TestAMisfitSpendsNoBudget(t *testing.T) {
	r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Cost: 1})
	m.Demand.Now, m.Ahead, m.Sized = 50, 100, true
	v.Rate = rate.Rate{Trigger: 8, Max: 9, Promised: 4, Bound: true}
	v.Next.Sizing = Sizing{Share: 0.99, PeakShare: 0.9, Rate: 4, PeakRate: 4}
	misfit := variantOf(func(it *limit.Variant) {
		it.In, it.Price, it.Rate = &Variant{Name: "w", Cost: 1}, 1, rate.Rate{Trigger: 8, Max: 9, Bound: true}
	})
	misfit.Next.Sizing = Sizing{Share: 0.99, PeakShare: 0.9, Rate: 1, PeakRate: 2}
	m.Variants = append(m.Variants, misfit)
	m.Stack()
	assert.InDelta(t, 100, float64(within(r, m).SizedFor(m.Ahead)), 1e-9)
}
