package sweep

import (
	"errors"
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// Kept is a run that was made, in a form that can be written down: a sweep that is
// interrupted can go on with it another time. Its JSON names are for the same program
// alone.
type Kept struct {
	Case    string        `json:"case"`
	Startup time.Duration `json:"startup"`
	Seed    int           `json:"seed"`
	Policy  string        `json:"policy"`
	Limit   replay.Limit  `json:"limit"`
	// Result is that of a run that went to its end.
	Result *replay.Result `json:"result,omitempty"`
	// GivenUp says why another one did not: tooPoor or tooDear.
	GivenUp string `json:"givenUp,omitempty"`
}

// The reasons of GivenUp.
const (
	tooPoor = "tooPoor"
	tooDear = "tooDear"
)

// kept is a run that was made, and false where it failed.
func keptOf(key run, r *ran) (Kept, bool) {
	k := Kept{Case: key.of.Name, Startup: key.of.Startup, Seed: key.seed, Policy: key.policy, Limit: r.limit}
	switch {
	case r.err == nil:
		k.Result = &r.result
	case errors.Is(r.err, replay.ErrTooPoor):
		k.GivenUp = tooPoor
	case errors.Is(r.err, replay.ErrTooDear):
		k.GivenUp = tooDear
	default:
		return Kept{}, false
	}
	return k, true
}

// recall takes over runs that were made another time. Those of other cases are left.
func (m *memo) recall(all []Kept, cases []Case) error {
	for i := range all {
		k := &all[i]
		r := &ran{done: true, limit: k.Limit}
		switch {
		case k.Result != nil:
			r.result = *k.Result
		case k.GivenUp == tooPoor:
			r.err = replay.ErrTooPoor
		case k.GivenUp == tooDear:
			r.err = replay.ErrTooDear
		default:
			return fmt.Errorf("the kept run of %s on %s has neither a result nor a reason to be given up that is known: %q", k.Policy, k.Case, k.GivenUp)
		}
		for c := range cases {
			if cases[c].Name == k.Case && cases[c].Startup == k.Startup && k.Seed < len(cases[c].Trials) {
				m.known[run{&cases[c], k.Seed, k.Policy}] = r
			}
		}
	}
	return nil
}
