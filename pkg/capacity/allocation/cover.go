package allocation

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Option is one variant that replicas can be bought of.
type Option struct {
	// Cost of one replica per hour.
	Cost capacity.Cost
	// Serves is the rate that one replica serves. An option that serves nothing is
	// never bought.
	Serves capacity.Rate
	// Limit is the greatest number that may be bought; negative means no limit.
	Limit int
}

// Cover returns how many replicas of each option to buy so that together they
// serve need at the least cost; among equals the fewest replicas, then those of the
// better worth. When all limits together do not serve
// need, everything is bought and short is what stays unserved.
//
// The answer is exact: a covering knapsack, solved by branch and bound over the
// options in the order of cost per rate, with the fractional cover as the bound.
func Cover(options []Option, need capacity.Rate) (buy []int, short capacity.Rate) {
	buy = make([]int, len(options))
	if need <= 0 {
		return buy, 0
	}
	order := usable(options)
	if short = shortfall(options, order, need); short > 0 {
		for _, i := range order {
			buy[i] = options[i].Limit
		}
		return buy, short
	}
	s := search{options: options, order: order, trial: make([]int, len(options)), best: make([]int, len(options))}
	s.bestCost = capacity.Cost(math.Inf(1))
	s.branch(0, need, 0, 0)
	copy(buy, s.best)
	return buy, 0
}

// usable lists the options that serve something, by cost per rate.
func usable(options []Option) []int {
	var order []int
	for i, o := range options {
		if o.Serves > 0 && o.Limit != 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		// Of the same worth the larger first: it needs fewer replicas.
		return cmp.Or(cmp.Compare(unitCost(options[a]), unitCost(options[b])), cmp.Compare(options[b].Serves, options[a].Serves))
	})
	return order
}

func unitCost(o Option) float64 { return float64(o.Cost) / float64(o.Serves) }

// shortfall is what stays unserved when everything is bought.
func shortfall(options []Option, order []int, need capacity.Rate) capacity.Rate {
	for _, i := range order {
		if options[i].Limit < 0 {
			return 0
		}
		need -= options[i].Serves * capacity.Rate(options[i].Limit)
	}
	return max(0, need)
}

type search struct {
	options  []Option
	order    []int
	trial    []int
	best     []int
	bestCost capacity.Cost
	bestSize int
	bestOver capacity.Rate
}

// branch decides how many to buy of the option at depth, most first, because the
// options come in the order of their worth.
func (s *search) branch(depth int, need capacity.Rate, cost capacity.Cost, size int) {
	if need <= 0 {
		s.keep(cost, size, -need)
		return
	}
	if depth == len(s.order) {
		return
	}
	i := s.order[depth]
	o := s.options[i]
	most := int(math.Ceil(float64(need/o.Serves) - 1e-9))
	if o.Limit >= 0 {
		most = min(most, o.Limit)
	}
	for n := most; n >= 0; n-- {
		left := need - o.Serves*capacity.Rate(n)
		spent := cost + o.Cost*capacity.Cost(n)
		least := spent + s.atLeast(depth+1, left)
		if least > s.bestCost-1e-9 && least <= s.bestCost+1e-9 && size+n+s.fewest(depth+1, left) >= s.bestSize {
			// It can only cost the same and be no smaller. Options of equal worth
			// would otherwise be tried in every mix.
			continue
		}
		if least > s.bestCost+1e-9 {
			if left > 0 {
				// The options that follow are worth less, so fewer of this one only
				// cost more. (While it alone covers more than is needed, fewer may
				// cost less.)
				break
			}
			continue
		}
		s.trial[i] = n
		s.branch(depth+1, left, spent, size+n)
	}
	s.trial[i] = 0
}

// atLeast is the least that covering need can cost with the options from depth on:
// the fractional cover by the option of the best worth.
func (s *search) atLeast(depth int, need capacity.Rate) capacity.Cost {
	if need <= 1e-9 {
		return 0
	}
	if depth >= len(s.order) {
		return capacity.Cost(math.Inf(1))
	}
	return capacity.Cost(unitCost(s.options[s.order[depth]]) * float64(need))
}

// fewest is the least number of replicas that covers need with the options from depth
// on.
func (s *search) fewest(depth int, need capacity.Rate) int {
	if need <= 1e-9 {
		return 0
	}
	largest := capacity.Rate(0)
	for _, i := range s.order[min(depth, len(s.order)):] {
		largest = max(largest, s.options[i].Serves)
	}
	if largest == 0 {
		return 0
	}
	return int(math.Ceil(float64(need/largest) - 1e-9))
}

func (s *search) keep(cost capacity.Cost, size int, over capacity.Rate) {
	better := cost < s.bestCost-1e-9
	if !better && cost <= s.bestCost+1e-9 {
		better = size < s.bestSize || size == s.bestSize && over > s.bestOver+1e-9
	}
	if better {
		s.bestCost, s.bestSize, s.bestOver = cost, size, over
		copy(s.best, s.trial)
	}
}
