package decision

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

func TestOfTwoPurchasesOfNearlyTheSameCostTheOneThatServesMore(t *testing.T) {
	w := newWorld(20)
	// One of either covers what is missing; the first is cheaper by a few cents.
	w.variants[1].cost = 6.80
	plan, _ := Decide(w.snapshot(), demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 2, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, 0, *plan.Models[0].Variants[1].Desired)
}

func TestOneReplicaWithSpareStaysBesideAQueue(t *testing.T) {
	w := newWorld(0)
	w.setReplicas(0, 7)
	w.setReplicas(1, 2)
	w.now = w.now.Add(time.Hour)
	policy := demoPolicy()
	down := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	down.Down.Window = 0
	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = down
	s := w.snapshot()
	for i := range s.Models[0].Variants[1].Replicas {
		p := &s.Models[0].Variants[1].Replicas[i]
		p.Running.Value, p.Waiting.Value = 128, 23
	}
	_, memory := Decide(newWorld(10).snapshot(), policy, Memory{}, RoundFull)
	plan, _ := Decide(s, policy, memory, RoundFull)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "whoever comes now must not wait behind the queue")
	assert.Equal(t, 2, *plan.Models[0].Variants[1].Desired)
}

// A variant of which nothing is known serves what its hardware makes of what a known one
// serves, and where that cannot be compared, what its price does; and it says so.
func TestAnUnknownVariantBorrowsFromAKnownOne(t *testing.T) {
	const price = 3.72 / 6.88
	// Two L40S have no NVLink: their tokens take longer by what is sent over PCIe 4.
	const overPCIe = 0.75 * 362e12 / (3 * 6000) * (1/(0.44*31.5e9) - 1/(0.82*450e9))
	for name, c := range map[string]struct {
		request *placement.Request
		factor  float64
		told    string
	}{
		"another type":        {request("L40S", 2), math.Cbrt(0.864 / 3.35 * 0.864 / 3.35 * 362 / 989 * math.Pow(2, 2.25) / (1 + overPCIe)), "0.38 times as much as a-h100 (2xL40S against 1xH100)"},
		"eight of the same":   {request("H100", 8), math.Pow(8, 0.75), "4.76 times as much as a-h100 (8xH100 against 1xH100)"},
		"the same hardware":   {request("H100", 1), 1, "as much as a-h100, on the same hardware"},
		"a type nobody knows": {request("Abacus", 1), price, "as much per cost as a-h100"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants[1].told, w.variants[1].request = serving.Profile{}, c.request
			plan, _ := Decide(w.snapshot(), demoPolicy(), Memory{}, RoundFast)
			known, unknown := plan.Models[0].Variants[0], plan.Models[0].Variants[1]
			assert.InEpsilon(t, float64(known.ServesEach)*c.factor, float64(unknown.ServesEach), 1e-9)
			told := ""
			for _, step := range unknown.Steps {
				if step.Reason == ReasonBorrowed {
					told = textOf(step.Detail)
				}
			}
			assert.Equal(t, "no observations yet; assumed to serve "+c.told, told)
		})
	}
}

// Of several that serve for the same, the first one's price is told.
func TestTheFirstOfEqualPricesLends(t *testing.T) {
	lender := func(name string, cost capacity.Cost) *limit.Variant {
		return variantOf(func(it *limit.Variant) {
			it.In, it.Price, it.Rate = &Variant{Name: name, Cost: cost}, cost, rate.Rate{Trigger: capacity.Rate(cost)}
		})
	}
	unknown := lender("unknown", 6)
	best, factor, how := unknown.Priced([]*rate.Variant{&lender("free", 0).Variant, &lender("first", 2).Variant, &lender("second", 4).Variant})
	assert.Equal(t, "first", best.In.Name)
	assert.InDelta(t, 3, float64(factor), 1e-9)
	assert.Equal(t, "as much per cost as first", textOf(how))
}

// Of several known ones the one whose hardware is most alike lends, and of equal ones the
// one that serves for less; nobody lends what was borrowed.
func TestTheMostAlikeLends(t *testing.T) {
	lender := func(name string, devices int, cost capacity.Cost, serves capacity.Rate) *limit.Variant {
		return variantOf(func(it *limit.Variant) {
			it.In, it.Price, it.Rate = &Variant{Name: name, Cost: cost, Request: request("H100", devices)}, cost, rate.Rate{Trigger: serves, Max: serves}
		})
	}
	one, dear, cheap := lender("one", 1, 1, 3), lender("dear", 4, 9, 8), lender("cheap", 4, 5, 9)
	unknown, other := lender("unknown", 8, 10, 0), lender("other", 8, 10, 0)
	rate.Infer(&modelOf(func(it *limit.Model) { it.Variants = []*limit.Variant{one, dear, cheap, unknown, other} }).Model.Model)
	assert.InEpsilon(t, 9*math.Pow(2, 0.75), float64(unknown.Rate.Serves()), 1e-9)
	assert.InDelta(t, float64(unknown.Rate.Max), float64(other.Rate.Max), 1e-9)
}
