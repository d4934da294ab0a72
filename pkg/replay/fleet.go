package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fleet never changes.
type fleet struct {
	scenario *Scenario
	replicas [][]int
	// choice is the variant of each model that has more than its minimum; nil for a mix.
	choice []int
}

// newFleet has a number of replicas of the chosen variant of each model, and of the other
// variants their minimum.
func newFleet(s *Scenario, choice, replicas []int) fleet {
	f := fleet{scenario: s, choice: choice, replicas: make([][]int, len(s.Models))}
	for m := range f.replicas {
		for _, v := range s.Models[m].Variants {
			f.replicas[m] = append(f.replicas[m], v.Policy.Min)
		}
		f.replicas[m][choice[m]] = replicas[m]
	}
	return f
}

// newStatic is the fleet that a spec names: a number of replicas of one variant of each
// model, and a split over several.
func newStatic(s *Scenario, spec Spec, choice []int) (fleet, error) {
	choice, err := s.variantsOf(spec, choice)
	if err != nil {
		return fleet{}, err
	}
	numbers, err := spec.ForEach(s, staticKey, unset)
	if err != nil {
		return fleet{}, err
	}
	driven := choice
	if _, some := spec.Value(staticKey); !some {
		driven = nil
	}
	fixed, err := s.split(spec, driven)
	if err != nil {
		return fleet{}, err
	}
	replicas := make([]int, len(choice))
	for m, v := range choice {
		replicas[m] = max(int(numbers[m]), s.Models[m].Variants[v].Policy.Min)
		if numbers[m] != unset {
			replicas[m] = int(numbers[m])
		}
	}
	f := newFleet(s, choice, replicas)
	for m := range fixed {
		for v, n := range fixed[m] {
			if n != unset {
				f = f.but(m, v, n)
				f.choice = nil
			}
		}
	}
	return f, nil
}

// but is the fleet with another number of replicas of one variant.
func (f fleet) but(model, variant, replicas int) fleet {
	all := slices.Clone(f.replicas)
	all[model] = slices.Clone(all[model])
	all[model][variant] = replicas
	f.replicas = all
	return f
}

// same reports whether two fleets have the same replicas.
func (f fleet) same(other fleet) bool {
	return slices.EqualFunc(f.replicas, other.replicas, slices.Equal)
}

// alone is the one variant of each model that has another number than its minimum; false
// where that are several.
func (f fleet) alone() ([]int, bool) {
	if f.choice != nil {
		return f.choice, true
	}
	choice := make([]int, len(f.replicas))
	for m := range f.replicas {
		some := 0
		for v, n := range f.replicas[m] {
			if n != f.scenario.Models[m].Variants[v].Policy.Min {
				choice[m] = v
				some++
			}
		}
		if some != 1 {
			return nil, false
		}
	}
	return choice, true
}

// Next implements Policy.
func (fleet) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return math.MaxInt64
}

// Parameters implements Policy.
func (f fleet) Parameters() []Parameter {
	choice, alone := f.alone()
	if !alone {
		var each []string
		for m := range f.replicas {
			for v, n := range f.replicas[m] {
				each = append(each, fmt.Sprintf("%s: %d", f.scenario.Models[m].Variants[v].Name, n))
			}
		}
		return []Parameter{{"variant", "mixed"}, {"replicas", strings.Join(each, "; ")}}
	}
	numbers := make([]string, len(choice))
	for m, v := range choice {
		numbers[m] = strconv.Itoa(f.replicas[m][v])
	}
	if len(slices.Compact(slices.Clone(numbers))) == 1 {
		numbers = numbers[:1]
	}
	return []Parameter{
		{"variant", chosen(f.scenario, choice)},
		{"replicas", strings.Join(numbers, ", ")},
		{"otherVariants", "their minimum"},
	}
}

// Decide implements Policy.
func (f fleet) Decide(*View) Answer { return Answer{Replicas: f.replicas} }
