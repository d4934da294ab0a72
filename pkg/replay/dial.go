package replay

import (
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Settings is the manager's configuration behind a scenario.
type Settings interface {
	// Over is the policy with other values of some of the manager's settings, which are
	// named as in the configuration, in small letters; an error names the setting that is
	// wrong and what is expected. Bounds and behaviour of variants are not in it.
	Over(changes []Parameter) (decision.Policy, error)
}

// ownSettings are those of our policies that are no settings of the manager but of the
// variants' objects.
var ownSettings = []Setting{
	{"down", SpanOf(0, longestWindow, "stabilizationWindowSeconds of scaleDown for all variants in whole seconds, up to 3600s, such as 120s")},
	{"up", SpanOf(0, longestWindow, "stabilizationWindowSeconds of scaleUp for all variants in whole seconds, up to 3600s, such as 0s")},
}

// managerSetting is the form of all other settings of our policies: the manager knows them.
var managerSetting = new(textOf("a setting of the manager's configuration, such as wva_slo_percentile=0.95"))

// with is the scenario as a policy of ours with settings of its own has it.
func (s *Scenario) with(spec Spec) (*Scenario, error) {
	var changes []Parameter
	windows := map[string]time.Duration{}
	for _, p := range spec.Parameters {
		if p.Name == "down" || p.Name == "up" {
			windows[p.Name] = spec.Span(p.Name, 0)
			continue
		}
		changes = append(changes, p)
	}
	changed := *s
	if len(changes) > 0 {
		if s.Settings == nil {
			return nil, fmt.Errorf("policy %q: the scenario has no configuration of the manager to change; expected down and up alone", spec)
		}
		policy, err := s.Settings.Over(changes)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", spec, err)
		}
		changed.Policy, changed.Collection.Window = policy, policy.Window
		if err := changed.check(); err != nil {
			return nil, fmt.Errorf("policy %q: %w", spec, err)
		}
	}
	if len(windows) == 0 {
		return &changed, nil
	}
	changed.Models = make([]Model, len(s.Models))
	for m := range s.Models {
		changed.Models[m] = s.Models[m]
		changed.Models[m].Variants = nil
		for _, v := range s.Models[m].Variants {
			if window, ok := windows["down"]; ok {
				v.Policy.Down.Window, v.Policy.Down.Adaptive = window, false
			}
			if window, ok := windows["up"]; ok {
				v.Policy.Up.Window = window
			}
			changed.Models[m].Variants = append(changed.Models[m].Variants, v)
		}
	}
	return &changed, nil
}

// own is our policy of a spec.
func (s *Scenario) own(spec Spec) (Policy, error) {
	changed, err := s.with(spec)
	if err != nil {
		return nil, err
	}
	return newOurs(changed, spec.Family == policyHybrid), nil
}
