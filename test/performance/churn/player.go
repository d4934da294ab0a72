package churn

import "math/rand/v2"

// player is one way to play: a policy and who chooses the victims.
type player struct {
	name string
	// victims says that the capacity model chooses them.
	victims bool
	policy  func(w *world, chance *rand.Rand) policy
}

func (p player) chooser(chance *rand.Rand) chooser {
	if p.victims {
		return modelVictims{}
	}
	return randomVictims{chance}
}

// The names of the policies.
const (
	nameSpreading     = "spreading"
	nameMostAllocated = "mostallocated"
	nameGradient      = "gradient"
	nameOurs          = "ours"
	nameTogether      = "ours-together"
)

// players are every policy without and with victim choice, in the order of the report,
// and ours as it is when a variant's first replicas are not spread.
func players() []player {
	policies := []player{
		{name: nameSpreading, policy: func(_ *world, chance *rand.Rand) policy { return scored{spreading, chance} }},
		{name: nameMostAllocated, policy: func(_ *world, chance *rand.Rand) policy { return scored{mostAllocated, chance} }},
		{name: nameGradient, policy: func(w *world, chance *rand.Rand) policy { return scored{newGradient(w).score, chance} }},
		{name: nameOurs, policy: func(*world, *rand.Rand) policy { return &ours{} }},
	}
	var all []player
	for _, p := range policies {
		for _, victims := range []bool{false, true} {
			p.victims = victims
			all = append(all, p)
		}
	}
	together := func(*world, *rand.Rand) policy { return &ours{together: true} }
	return append(all, player{name: nameTogether, victims: true, policy: together})
}
