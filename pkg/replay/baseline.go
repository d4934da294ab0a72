package replay

import (
	"fmt"
	"math"
	"strings"
)

// newBaseline makes the published policy of that name. The choice is the index of the
// variant of each model that a policy drives which knows only one: the cheapest one for
// what it serves.
func newBaseline(name string, s *Scenario, choice []int) (Policy, error) {
	if len(choice) != len(s.Models) {
		return nil, fmt.Errorf("policy %q: %d variants are chosen for %d models; expected one for each", name, len(choice), len(s.Models))
	}
	for m, v := range choice {
		if v < 0 || v >= len(s.Models[m].Variants) {
			return nil, fmt.Errorf("policy %q: variant %d of model %q is chosen; expected 0 to %d",
				name, v, s.Models[m].ID, len(s.Models[m].Variants)-1)
		}
	}
	spec, err := ParseSpec(name)
	if err != nil {
		return nil, err
	}
	family, _, _ := strings.Cut(spec.Family, ":")
	switch family {
	case policyStatic:
		return ready(newStatic(s, spec, choice))
	case policyHPA:
		return ready(newHPA(s, spec, choice))
	case policyKEDA:
		return ready(newKEDA(s, spec, choice))
	}
	if f := familyOf(family); f.New != nil {
		return f.New(s, spec, choice)
	}
	return nil, fmt.Errorf("policy %q follows no published rule", name)
}

// ready is a policy that was made without an error.
func ready[P Policy](p P, err error) (Policy, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Asked are the replicas that the targets ask for now, by model and variant.
func (v *View) Asked() [][]int {
	replicas := make([][]int, len(v.Models))
	for m := range v.Models {
		for _, v := range v.Models[m].Variants {
			replicas[m] = append(replicas[m], v.Replicas)
		}
	}
	return replicas
}

// chosen names the chosen variants.
func chosen(s *Scenario, choice []int) string {
	var names []string
	for m, v := range choice {
		names = append(names, s.Models[m].Variants[v].Name)
	}
	return strings.Join(names, ", ")
}

// Bounded is a number of replicas within the variant's bounds.
func (v *Variant) Bounded(n int) int {
	most := v.Policy.Max
	if most < 0 {
		most = math.MaxInt
	}
	return max(v.Policy.Min, min(n, most))
}
