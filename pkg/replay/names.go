package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The names of policies. That of static fleets is staticPrefix and a number.
const (
	policyCapacityOnly = "capacity-only"
	policyHybrid       = "hybrid"
	staticPrefix       = "static:"
	policyPeak         = "peak"
	policyQueueHPA     = "hpa:queue"
	policyKVHPA        = "hpa:kv"
	policyKEDA         = "keda"
	policySaturationV1 = "saturation-v1"
	policySaturationV2 = "saturation-v2"
	policyBound        = "bound"
)

// anyStatic stands for the names of all static fleets.
const anyStatic = staticPrefix + "N"

// Kind says whose a policy is.
type Kind string

// The kinds of policies: those of this project; those that others have published; and
// what stands still or knows the future, and so competes with nobody.
const (
	KindOurs      Kind = "ours"
	KindBaseline  Kind = "baseline"
	KindReference Kind = "reference"
)

// policies are all that there are, in the order in which people read them.
var policies = []struct {
	name string
	kind Kind
}{
	{policyCapacityOnly, KindOurs},
	{policyHybrid, KindOurs},
	{anyStatic, KindReference},
	{policyPeak, KindReference},
	{policyQueueHPA, KindBaseline},
	{policyKVHPA, KindBaseline},
	{policyKEDA, KindBaseline},
	{policySaturationV1, KindBaseline},
	{policySaturationV2, KindBaseline},
	{policyBound, KindReference},
}

// PolicyNames are the policies that there are, as they are written.
func PolicyNames() []string {
	names := make([]string, 0, len(policies))
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
}

// KindOf is the kind of a policy, and that of the published ones for a name that is not
// known.
func KindOf(name string) Kind {
	if strings.HasPrefix(name, staticPrefix) {
		name = anyStatic
	}
	for _, p := range policies {
		if p.name == name {
			return p.kind
		}
	}
	return KindBaseline
}

// CheckPolicy reports what is wrong with the name of a policy.
func CheckPolicy(name string) error {
	if strings.HasPrefix(name, staticPrefix) && name != anyStatic {
		_, _, err := staticReplicas(name)
		return err
	}
	if name == anyStatic || !slices.Contains(PolicyNames(), name) {
		return fmt.Errorf("unknown policy %q; expected one of %s", name, strings.Join(PolicyNames(), ", "))
	}
	return nil
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
