package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func TestTheOnlyReplicaWaitsInVain(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(5).snapshot()
			s.Cluster = &placement.Cluster{Nodes: nodes(4, "L40S", 8)}
			s.Models[0].Arrival = Sample{}
			a, b := &s.Models[0].Variants[0], &s.Models[0].Variants[1]
			a.Ready, a.Replicas = 0, nil
			a.Starting = []Starting{{Name: "only", Created: epoch, Unschedulable: true}}
			policy := policyFor(limited, "a-h100", "b-l40s")
			plan, memory := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "while it waits it says why")
			require.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "another one fits and keeps the model's replica")

			b.Current, b.Starting = 1, []Starting{{Name: "b", Created: s.Time, Placed: true, Node: "L40S-0"}}
			s.Time = s.Time.Add(time.Minute)
			plan, _ = Decide(s, policy, memory, RoundFull)
			if limited {
				assert.Equal(t, 0, *plan.Models[0].Variants[0].Desired)
			}
			assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired)
		})
	}
}

func TestHoldHoldsMinimaAndTheLastReplicaToo(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.variants = w.variants[:1]
			s := w.snapshot()
			v := &s.Models[0].Variants[0]
			v.Current, v.Ready, v.Replicas = 0, 0, nil
			policy := policyFor(limited, "a-h100")
			own := policy.Variants[Key{"ns", "a-h100"}]
			own.Min, own.OnUnknown = 5, OnUnknownHold
			policy.Variants[Key{"ns", "a-h100"}] = own
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, 0, *got.Desired)
			assert.Equal(t, ReasonCapacityUnknown, got.Reason)
			assert.NotContains(t, reasons(got.Facts), ReasonNoSlots, "unknown is not none")
		})
	}
}
