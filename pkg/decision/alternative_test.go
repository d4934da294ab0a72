package decision

import (
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/test/feasibility"
)

// The next best answer is the cheapest that serves what is asked for, backlog included,
// where a replica of the one serves 18.8 requests/s and one of the other 11.3; where it
// costs less than the answer it says what is in its way.
func TestTheAlternativeServesWhatIsAskedFor(t *testing.T) {
	for arrival, want := range map[float64]string{
		10: "1 of b-l40s for 3.72/h, now 6.88/h; it saves too little, or leaves too little headroom",
		40: "4 of b-l40s for 14.88/h, now 18.04/h; no switch while more is needed",
		74: "8 of b-l40s for 29.76/h, now 29.20/h",
	} {
		policy := demoPolicy()
		policy.Horizon = time.Hour
		plan := first(newWorld(arrival).snapshot(), policy)
		assert.Equal(t, want, textOf(plan.Models[0].Variants[0].Alternative))
	}
}

// In a cluster that does not grow the next best answer fits beside what is asked for.
func TestTheAlternativeFits(t *testing.T) {
	const other, same = "5 of a-h100 for 34.40/h, now 29.20/h", "8 of b-l40s for 29.76/h, now 29.20/h"
	for name, c := range map[string]struct {
		nodes   []placement.Node
		limited bool
		most    int
		want    string
	}{
		"there is room for two more":     {append(nodes(1, "H100", 8), nodes(8, "L40S", 2)...), true, -1, same},
		"there is room for one more":     {append(nodes(1, "H100", 8), nodes(7, "L40S", 2)...), true, -1, other},
		"there will be, if need be":      {append(nodes(1, "H100", 8), nodes(7, "L40S", 2)...), false, -1, same},
		"there is none of the other one": {nodes(7, "L40S", 2), true, -1, ""},
		"the other one has a bound":      {append(nodes(1, "H100", 8), nodes(7, "L40S", 2)...), true, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(74)
			w.cluster = &placement.Cluster{Nodes: c.nodes}
			policy := demoPolicy()
			policy.Limited = c.limited
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Max = c.most
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			plan := first(w.snapshot(), policy)
			require.Equal(t, 6, *plan.Models[0].Variants[1].Desired)
			assert.Equal(t, c.want, textOf(plan.Models[0].Variants[0].Alternative))
		})
	}
}

// The work that is allowed for the next best answer finds the one that any work would, where models
// have a few variants; where they have very many that cost the same, it ends without one.
func TestTheAlternativeTakesBoundedWork(t *testing.T) {
	told := 0
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 2, load: 0.5 + float64(seed%7)/3, limited: seed%3 > 0}
		s, policy := c.build()
		r := newRound(&s, &policy, &Memory{}, RoundFull)
		answer(r)
		for _, m := range r.Models {
			enough := alternativeOf(r, within(r, m), math.MaxInt)
			require.Equal(t, textOf(enough), textOf(alternativeOf(r, within(r, m), allocate.WorkExplained)), c)
			if textOf(enough) != "" {
				told++
			}
		}
	}
	require.Greater(t, told, cases()/2)

	s, policy := thirtyVariants(30, 1)
	r := newRound(&s, &policy, &Memory{}, RoundFull)
	answer(r)
	assert.Empty(t, textOf(alternativeOf(r, within(r, r.Models[0]), allocate.WorkExplained)))
}

// Two variants that share nodes are not offered the same room twice.
func TestTheAlternativeFitsAllAtOnce(t *testing.T) {
	offered := 0
	mix := regexp.MustCompile(`(\d+) of (\S+)`)
	for seed := range uint64(2 * cases()) {
		c := scene{seed: seed, models: 1, load: 1 + float64(seed%7)/3, limited: true, plain: true}
		s, policy := c.build()
		plan := first(s, policy)
		m := &plan.Models[0]
		counts := map[string]int{}
		for _, v := range m.Variants {
			counts[v.Key.Name] = *v.Desired
		}
		if textOf(m.Variants[0].Alternative) == "" {
			continue
		}
		for _, part := range mix.FindAllStringSubmatch(textOf(m.Variants[0].Alternative), -1) {
			n := 0
			_, err := fmt.Sscan(part[1], &n)
			require.NoError(t, err)
			counts[part[2]] = max(counts[part[2]], n)
		}
		var wants []feasibility.Want
		for j := range s.Models[0].Variants {
			v := &s.Models[0].Variants[j]
			if more := counts[v.Name] - v.Current; more > 0 {
				wants = append(wants, feasibility.Want{Request: v.Request, Count: more})
			}
		}
		if len(wants) > 1 {
			offered++
		}
		require.True(t, feasibility.Of(s.Cluster, wants).OK, "%v: %s\n%s", c, textOf(m.Variants[0].Alternative), tellShort(m))
	}
	assert.Greater(t, offered, cases()/20)
}

// While a switch is on its way the plan says what keeps the old replicas; when they are
// gone, that they could still come back.
func TestTheAlternativeOfASwitch(t *testing.T) {
	policy := DefaultPolicy()
	policy.Limited = true
	f, _, dear := takeover(policy, 110*time.Second, 2*time.Minute)
	var told []string
	f.told = func(_ *Snapshot, p *Plan) {
		if now := p.Models[0].Variants[0].Alternative; len(told) == 0 || textOf(now) != told[len(told)-1] {
			told = append(told, textOf(now))
		}
	}
	f.run(20 * time.Minute)
	assert.Equal(t, 0, dear.replicas)
	const cheap, beside = "4 of cheap for 12.00/h, now 27.52/h; ", "4 of cheap for 12.00/h, now 39.52/h; "
	assert.Equal(t, []string{
		"",
		cheap + "the saving must last as long as a scale-down waits",
		beside + "no switch while replicas start or go",
		beside + "no switch while replicas may not go",
		beside + "dear is held by scaleDown",
		"4 of dear for 27.52/h, now 12.00/h",
	}, told)
}

// What replicas cost that miss the promise is paid too, and an answer without them is one.
func TestTheAlternativeToMisfits(t *testing.T) {
	r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 3, Ready: 3, Cost: 4})
	v.Rate = rate.Rate{Trigger: 2, Max: 3}
	misfit := variantOf(func(it *limit.Variant) {
		it.In, it.Managed, it.Target, it.Policy, it.Rate = &Variant{Name: "w", Current: 2, Ready: 2, Cost: 10}, true, 2, DefaultVariantPolicy(), rate.Rate{Trigger: 2, Max: 3, Bound: true}
	})
	m.Variants = append(m.Variants, misfit)
	m.Stack()
	m.Need.Required = 6
	// 3*4 instead of 3*4 + 2*10.
	assert.Equal(t, "3 of v for 12.00/h, now 32.00/h; no switch while replicas may not go", textOf(alternativeOf(r, within(r, m), math.MaxInt)))
	m.Rated = false
	assert.Empty(t, textOf(alternativeOf(r, within(r, m), math.MaxInt)), "nobody knows what a replica serves")
}
