package replay

import "strings"

// anyStatic stands for the names of all static fleets.
const anyStatic = policyStatic + ":N"

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

// newPolicy makes the policy of a play.
func (p *play) newPolicy() (Policy, error) {
	spec, err := ParseSpec(p.policy)
	if err != nil {
		return nil, err
	}
	switch spec.Family {
	case policyCapacityOnly, policyHybrid:
		return p.scenario.own(spec)
	default:
		return newBaseline(p.policy, p.scenario, p.choice)
	}
}
