package replay

import (
	"fmt"
	"strconv"
	"strings"
)

// The names of policies. That of static fleets is staticPrefix and a number.
const (
	policyCapacityOnly = "capacity-only"
	policyHybrid       = "hybrid"
	policyBound        = "bound"
	policyPeak         = "peak"
	staticPrefix       = "static:"
)

// PolicyNames are the policies that there are, as they are written.
func PolicyNames() []string {
	return []string{
		policyCapacityOnly, policyHybrid, staticPrefix + "N", policyPeak, "hpa:queue", "hpa:kv", "keda", "saturation-v1", "saturation-v2", policyBound,
	}
}

// CheckPolicy reports what is wrong with the name of a policy.
func CheckPolicy(name string) error {
	for _, known := range PolicyNames() {
		if name == known && known != staticPrefix+"N" {
			return nil
		}
	}
	number, static := strings.CutPrefix(name, staticPrefix)
	if n, err := strconv.Atoi(number); static && err == nil && n >= 0 {
		return nil
	}
	return fmt.Errorf("unknown policy %q; expected one of %s", name, strings.Join(PolicyNames(), ", "))
}

// newPolicy makes the policy of a play.
func (p *play) newPolicy() (Policy, error) {
	switch p.policy {
	case policyCapacityOnly, policyHybrid:
		return newOurs(p.scenario, p.policy == policyHybrid), nil
	case policyBound:
		return &clairvoyant{bound: p.bound, share: p.scenario.Policy.Share, startup: p.startup}, nil
	default:
		return newBaseline(p.policy, p.scenario, p.choice)
	}
}
