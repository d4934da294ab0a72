package replay

import (
	"fmt"
	"strconv"
	"strings"
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

// PolicyNames are the policies that there are, as they are written; N stands for a number.
func PolicyNames() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.patterns()...)
	}
	return names
}

// KindOf is the kind of a policy, and that of the published ones for a name that is not
// known.
func KindOf(name string) Kind {
	family, _, _ := strings.Cut(name, ":")
	return Spec{Family: family}.Kind()
}

// CheckPolicy reports what is wrong with a policy, as far as that can be told without a
// scenario.
func CheckPolicy(name string) error {
	_, err := ParseSpec(name)
	return err
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
