package decision

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// money is how a sum of money, or a comparison of such sums, would be told.
var money = regexp.MustCompile(`\$|/h\b|\bcosts?\b`)

// Where nobody gave a price, nothing that a plan says has a sum of money in it.
func TestWithoutAPriceThereIsNoSum(t *testing.T) {
	alternatives := 0
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 1 + int(seed%2), load: 0.3 + float64(seed%9)/4, limited: seed%3 == 0, hybrid: seed%2 == 0}
		s, policy := c.build()
		policy.Horizon = time.Hour
		for i := range s.Models {
			for j := range s.Models[i].Variants {
				s.Models[i].Variants[j].Unpriced = true
			}
		}
		memory := Memory{}
		for range 3 {
			var plan Plan
			plan, memory = Decide(s, policy, memory, RoundFull)
			var whole strings.Builder
			for i := range plan.Models {
				tellPlan(&whole, &plan.Models[i])
				if !plan.Models[i].Variants[0].Alternative.None() {
					alternatives++
				}
			}
			require.NotRegexp(t, money, whole.String(), c)
			s.Time = s.Time.Add(10 * time.Minute)
		}
	}
	assert.Greater(t, alternatives, cases()/20)
}

// Replicas are told with the devices that they take, and one variant without a price is enough that
// a sum would mix money with memory.
func TestTheAlternativeWithoutAPriceIsToldInDevices(t *testing.T) {
	for name, c := range map[string]struct {
		unpriced []int
		want     string
	}{
		"all prices are known": {nil, "8 of b-l40s for 29.76/h, now 29.20/h"},
		"no price is known":    {[]int{0, 1}, "8 of b-l40s (16 L40S), now 1 of a-h100 (1 H100) and 6 of b-l40s (12 L40S)"},
		"one price is unknown": {[]int{0}, "8 of b-l40s (16 L40S), now 1 of a-h100 (1 H100) and 6 of b-l40s (12 L40S)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(74)
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(8, "L40S", 2)...)}
			s := w.snapshot()
			for _, i := range c.unpriced {
				s.Models[0].Variants[i].Unpriced = true
			}
			policy := demoPolicy()
			policy.Limited = true
			plan := first(s, policy)
			assert.Equal(t, c.want, textOf(plan.Models[0].Variants[0].Alternative))
		})
	}
}

// A switch to another variant says which devices are taken in the place of which.
func TestASwitchWithoutPricesIsToldInDevices(t *testing.T) {
	policy := DefaultPolicy()
	f, cheap, dear := takeover(policy, 110*time.Second, time.Minute)
	cheap.unpriced, dear.unpriced = true, true
	var switched []string
	f.told = func(_ *Snapshot, p *Plan) {
		for _, v := range p.Models[0].Variants {
			require.NotRegexp(t, money, textOf(v.Message)+tellSteps(v.Steps)+textOf(v.Alternative))
			if v.Reason == ReasonCheaperVariant {
				switched = append(switched, textOf(v.Message))
			}
		}
	}
	f.run(20 * time.Minute)
	assert.Equal(t, []string{"+4 replicas, mix of less device memory: 4 of cheap (4 H100), was 4 of dear (4 L40S)"}, switched)
}
