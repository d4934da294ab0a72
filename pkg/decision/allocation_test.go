package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
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
	down := policy.Variants[Key{"ns", "a-h100"}]
	down.Down.Window = 0
	policy.Variants[Key{"ns", "a-h100"}] = down
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

func TestAnUnknownVariantBorrowsFromThePriceOfAKnownOne(t *testing.T) {
	w := newWorld(60)
	w.variants[1].told = serving.Profile{}
	plan, _ := Decide(w.snapshot(), demoPolicy(), Memory{}, RoundFast)
	h100, l40s := plan.Models[0].Variants[0], plan.Models[0].Variants[1]
	assert.InEpsilon(t, float64(h100.ServesEach)*3.72/6.88, float64(l40s.ServesEach), 1e-9)
	found := false
	for _, step := range l40s.Steps {
		found = found || step.Reason == ReasonBorrowed
	}
	assert.True(t, found, "and says so")
}
