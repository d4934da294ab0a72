package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// manager is the configuration behind a scenario, which a policy may change.
type manager struct {
	document *document
	// base is the manager's configuration file, and over goes over that of the document.
	base []byte
	over map[string]any
	// policy is what followed from it.
	policy decision.Policy
}

// modeKey is the setting that the name of the policy says.
const modeKey = "EXPERIMENTAL_PROACTIVE_MODEL"

// thresholds are the fields of the saturation ConfigMap that a policy may change.
var thresholds = []string{"kvCacheThreshold", "queueLengthThreshold", "kvSpareTrigger", "queueSpareTrigger"}

// Over implements replay.Settings. A setting is named as in the configuration, in any case,
// or by an end of its name after an underscore that no other has: horizon is
// WVA_SWITCH_HORIZON. Thresholds of saturation are named as in their ConfigMap, and are
// those of its entry default: where namespaces have ConfigMaps of their own, of each.
func (m *manager) Over(changes []replay.Parameter) (decision.Policy, error) {
	changed, over, entry := *m.document, map[string]any{}, map[string]any{}
	maps.Copy(over, m.over)
	for _, c := range changes {
		if field := thresholdNamed(c.Name); field != "" {
			value, err := strconv.ParseFloat(c.Value, 64)
			if err != nil {
				return decision.Policy{}, fmt.Errorf("%s is %q: expected a number", field, c.Value)
			}
			entry[field] = value
			continue
		}
		name, err := settingNamed(c.Name)
		if err != nil {
			return decision.Policy{}, err
		}
		if name == windowKey {
			changed.Collection.Window = nil
		}
		over[name] = c.Value
	}
	if len(entry) > 0 {
		if err := changed.change(entry); err != nil {
			return decision.Policy{}, err
		}
	}
	s, err := changed.settings(m.base, over)
	if err != nil {
		return decision.Policy{}, err
	}
	policy := s.Policy()
	policy.Promises, policy.Variants = m.policy.Promises, m.policy.Variants
	s.ofModels(&policy, maps.Keys(m.policy.IdleByModel))
	return policy, nil
}

// thresholdNamed is the field of that name, in any case; empty without one.
func thresholdNamed(name string) string {
	for _, field := range thresholds {
		if strings.EqualFold(field, strings.ReplaceAll(name, "_", "")) {
			return field
		}
	}
	return ""
}

// settingNamed is the setting that is meant, of those that say what a decision may do.
func settingNamed(name string) (string, error) {
	var all, found []string
	for _, k := range config.Keys() {
		short := strings.ToLower(k.Name)
		if !k.Decides() || k.Name == modeKey {
			continue
		}
		all = append(all, short)
		if short == name {
			return k.Name, nil
		}
		if strings.HasSuffix(short, "_"+name) {
			found = append(found, k.Name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s may be %s: expected the whole name", name, strings.Join(found, " or "))
	case name == strings.ToLower(modeKey):
		return "", fmt.Errorf("%s has no effect: expected the policy hybrid or capacity-only instead", name)
	}
	return "", fmt.Errorf("%s is no setting of a decision: expected down, up, %s", name, strings.Join(slices.Concat(thresholds, all), ", "))
}

// policies are what the file wants to be tried.
func (a *assembly) policies() error {
	for i, text := range a.document.Policies {
		at := index("policies", i)
		names, err := a.scenario.PolicyNames([]string{text})
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if slices.Contains(a.scenario.Policies, names[0]) {
			return fmt.Errorf("%s is %s, which is there before: expected each policy once", at, names[0])
		}
		a.scenario.Policies = append(a.scenario.Policies, names[0])
	}
	return nil
}
