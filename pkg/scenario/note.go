package scenario

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// Notes are what a scenario says and what has no effect in it.
func Notes(s *replay.Scenario) []string {
	if s.Collection.Gateway {
		return nil
	}
	var notes []string
	for i := range s.Models {
		m := &s.Models[i]
		sleeps := s.Policy.IdleOf(decision.ModelKey{Namespace: m.Namespace, ID: m.ID}).Enabled
		for j := range m.Variants {
			sleeps = sleeps && m.Variants[j].Policy.Min == 0
		}
		if sleeps {
			notes = append(notes, fmt.Sprintf("model %s may sleep (scaleToZero, configuration.WVA_SCALE_TO_ZERO), but keeps a replica: without a gateway nothing would wake it; expected collection.gateway: true in the scenario", m.ID))
		}
	}
	return notes
}
