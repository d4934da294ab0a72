package decision

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

// Who is told that the load needs what there is, is not told of more load than that serves: what holds
// the replicas is the reason then.
func TestWhoIsSteadyHasWhatIsRequired(t *testing.T) {
	below := 0
	for seed := range uint64(cases()) {
		random := rand.New(rand.NewPCG(seed, 12))
		c := drawScene(random, seed)
		s, policy := c.build()
		disturb(random, &s, &policy)
		memory := Memory{}
		for _, kind := range []Round{RoundFull, RoundFast, RoundFull} {
			r := newRound(&s, &policy, &memory, kind)
			answer(r)
			for _, m := range r.Models {
				grows := slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return v.Target > v.In.Current })
				for _, v := range m.Variants {
					if v.Plan.Reason == ReasonBelowThresholds {
						below++
					}
					if v.Plan.Reason == ReasonSteady && !grows {
						require.LessOrEqual(t, float64(m.Need.Required), float64(m.Need.Supply)*(1+1e-6), "%v %s: %s", c, v.In.Name, tellSteps(v.Plan.Steps))
					}
				}
			}
			plan, next := Decide(s, policy, memory, kind)
			memory = next
			for i := range plan.Models {
				for j, v := range plan.Models[i].Variants {
					if v.Desired != nil {
						s.Models[i].Variants[j].Current = *v.Desired
					}
				}
			}
			advance(random, &s, some(random, 10, 60, 300))
		}
	}
	if thorough {
		assert.Positive(t, below, "few states have one, and a short run may have none")
	}
}

// Where fewer replicas would carry the load, it is minReplicas that keeps them.
func TestMinReplicasIsTheReasonWhereItKeepsReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		arrival float64
		least   int
		want    Reason
		says    string
		binds   string
	}{
		"the load needs fewer": {4, 2, ReasonMinReplicas, "no scale-down: minReplicas is 2; replicas are 2 % full, 0.0 requests wait per replica", "allocation: no scale-down: minReplicas is 2"},
		"the load needs them":  {30, 2, ReasonSteady, "replicas are 37 % full, 0.0 requests wait per replica", "demand: a scale-down must leave 36.43 req/s of capacity; a replica serves 18.81"},
		"it is not set":        {30, 0, ReasonSteady, "replicas are 37 % full, 0.0 requests wait per replica", "demand: a scale-down must leave 36.43 req/s of capacity; a replica serves 18.81"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.arrival)
			w.setReplicas(0, 2)
			w.now = w.now.Add(time.Hour)
			policy := demoPolicy()
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Min = c.least
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			plan := first(w.snapshot(), policy)
			v := plan.Models[0].Variants[0]
			require.Equal(t, 2, *v.Desired)
			assert.Equal(t, c.want, v.Reason)
			assert.Equal(t, c.says, textOf(v.Message))
			assert.Equal(t, c.binds, textOf(v.BoundBy))
		})
	}
}
