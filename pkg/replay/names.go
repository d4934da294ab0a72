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
	if strings.HasPrefix(name, staticPrefix) && name != staticPrefix+"N" {
		_, _, err := staticReplicas(name)
		return err
	}
	return fmt.Errorf("unknown policy %q; expected one of %s", name, strings.Join(PolicyNames(), ", "))
}

// MostReplicas bounds the replicas of one variant that anybody may ask for: more are a
// slip of the pen, and each takes memory and time.
const MostReplicas = 100_000

// staticReplicas is the number in the name of a static fleet; false for other names. Each
// fleet has one name: a number has neither a sign nor zeros before it.
func staticReplicas(name string) (int, bool, error) {
	number, static := strings.CutPrefix(name, staticPrefix)
	if !static {
		return 0, false, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > MostReplicas || strconv.Itoa(n) != number {
		return 0, true, fmt.Errorf("policy %q: %q is no number of replicas; expected 0 to %d, in digits alone and without zeros before them", name, number, MostReplicas)
	}
	return n, true, nil
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
