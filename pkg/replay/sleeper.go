package replay

import (
	"slices"
	"time"
)

// As in the manager: the time between two looks at the gateways' queues while a model
// sleeps, and between two rounds for the same model while it sleeps on.
const (
	lookEvery = second
	wakeAgain = 5 * second
)

// sleepers are the models of which nothing is asked to run, by their places, and when a
// round was last held for what waits for each.
type sleepers struct {
	asleep []bool
	tried  map[int]time.Duration
}

func (s *sleepers) any() bool { return slices.Contains(s.asleep, true) }

// settle takes over which models sleep after a round.
func (s *sleepers) settle(replicas [][]int) {
	s.asleep = make([]bool, len(replicas))
	for m := range replicas {
		s.asleep[m] = !slices.ContainsFunc(replicas[m], func(n int) bool { return n > 0 })
		if !s.asleep[m] {
			delete(s.tried, m)
		}
	}
}

// wanted are the sleeping models for which requests wait now, and for which no round was
// held just before.
func (s *sleepers) wanted(view *View) []int {
	var wanted []int
	for m, asleep := range s.asleep {
		at, before := s.tried[m]
		if !asleep || view.Models[m].Queue == 0 || before && view.Now-at < wakeAgain {
			continue
		}
		wanted = append(wanted, m)
		if s.tried == nil {
			s.tried = map[int]time.Duration{}
		}
		s.tried[m] = view.Now
	}
	return wanted
}
