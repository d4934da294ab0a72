package replay

import (
	"math"
	"strconv"
	"time"
)

// static keeps a number of replicas of the chosen variant of each model for ever, and of
// the other variants their minimum.
type static struct {
	scenario *Scenario
	choice   []int
	replicas int
}

// Next implements Policy.
func (s *static) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return math.MaxInt64
}

// Decide implements Policy.
func (s *static) Decide(view *View) Answer {
	replicas := askedReplicas(view)
	for m := range replicas {
		for v := range replicas[m] {
			replicas[m][v] = s.scenario.Models[m].Variants[v].Policy.Min
		}
		replicas[m][s.choice[m]] = s.replicas
	}
	return Answer{Replicas: replicas}
}

// Parameters implements Policy.
func (s *static) Parameters() []Parameter {
	return []Parameter{{"variant", chosen(s.scenario, s.choice)}, {"replicas", strconv.Itoa(s.replicas)}}
}
