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
	replicas   [][]int
	parameters []Parameter
}

// newFleet has a number of replicas of the chosen variant of each model, and of the other
// variants their minimum.
func newFleet(s *Scenario, choice, replicas []int) fleet {
	numbers := make([]string, len(replicas))
	for m, n := range replicas {
		numbers[m] = strconv.Itoa(n)
	}
	if slices.Max(replicas) == slices.Min(replicas) {
		numbers = numbers[:1]
	}
	f := fleet{replicas: make([][]int, len(s.Models)), parameters: []Parameter{
		{"variant", chosen(s, choice)},
		{"replicas", strings.Join(numbers, ", ")},
		{"otherVariants", "their minimum"},
	}}
	for m := range f.replicas {
		for _, v := range s.Models[m].Variants {
			f.replicas[m] = append(f.replicas[m], v.Policy.Min)
		}
		f.replicas[m][choice[m]] = replicas[m]
	}
	return f
}

// found is the fleet with the promised share that it was searched for.
func (f fleet) found(share float64) fleet {
	f.parameters = append(slices.Clone(f.parameters), Parameter{"promisedShare", fmt.Sprint(share)})
	return f
}

// Next implements Policy.
func (fleet) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return math.MaxInt64
}

// Parameters implements Policy.
func (f fleet) Parameters() []Parameter { return f.parameters }

// Decide implements Policy.
func (f fleet) Decide(*View) Answer { return Answer{Replicas: f.replicas} }
