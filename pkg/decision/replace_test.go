package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func TestASwitchMustPayForItsStart(t *testing.T) {
	for name, test := range map[string]struct {
		cost    capacity.Cost
		horizon time.Duration
		comes   int
	}{
		"it saves much":                           {2, 30 * time.Minute, 1},
		"it saves less than its start costs":      {3.66, 30 * time.Minute, 0},
		"the same saves enough over a day":        {3.66, 24 * time.Hour, 1},
		"it costs more":                           {3.9, 24 * time.Hour, 0},
		"it costs much more":                      {100, 24 * time.Hour, 0},
		"much is saved, and switching is not for": {2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(5)
			w.variants[0].cost = test.cost
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := policyFor(true, "a-8xh100", "b-l40s")
			policy.Horizon = test.horizon
			plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, test.comes, *v.Desired)
			if test.comes > 0 {
				assert.Equal(t, ReasonCheaperVariant, v.Reason)
				assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "the old one stays until the new one serves")
			}
		})
	}
}
