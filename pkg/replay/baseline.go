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
	switch family, _, _ := strings.Cut(spec.Family, ":"); family {
	case policyStatic:
		return ready(newStatic(s, spec, choice))
	case policyHPA:
		return ready(newHPA(s, spec, choice))
	case policyKEDA:
		return ready(newKEDA(s, spec, choice))
	case policyKPA:
		return ready(newKPA(s, spec, choice))
	case policyPlanner:
		return ready(newPlanner(s, spec, choice))
	case policySaturationV1:
		return newSaturation(s, spec, newSaturationV1(s, spec)), nil
	case policySaturationV2:
		return newSaturation(s, spec, newSaturationV2(s, spec)), nil
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

// askedReplicas are those that the targets ask for now.
func askedReplicas(view *View) [][]int {
	replicas := make([][]int, len(view.Models))
	for m := range view.Models {
		for _, v := range view.Models[m].Variants {
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

// bounded keeps a number of replicas within the variant's bounds.
func bounded(v *Variant, n int) int {
	most := v.Policy.Max
	if most < 0 {
		most = math.MaxInt
	}
	return max(v.Policy.Min, min(n, most))
}

// keepOne gives a model that would have no replica one on its cheapest variant, the first
// by name of equals: what the published enforcer does while scale to zero is off.
func keepOne(variants []Variant, wanted []int) {
	least := 0
	for i := range variants {
		if wanted[i] > 0 {
			return
		}
		v, l := &variants[i], &variants[least]
		if v.Cost < l.Cost || v.Cost == l.Cost && v.Name < l.Name {
			least = i
		}
	}
	wanted[least] = 1
}
