package allocation

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Work is at how many choices a row of searches may look: whoever searches again and again, with
// other bounds, knows what that may cost. Each search lowers it.
type Work int

// workPerOption is the work of a search before it looks at its first choice.
const workPerOption = 4

// Cheapest is the function of that name. Once the work is used up it takes the first
// choice, which serves the need as well but may not cost the least.
func (w *Work) Cheapest(options []Option, need capacity.Rate) Vector {
	return vector(options, max(0, positive(float64(need))), w.cheapest(options, float64(need)))
}

func (w *Work) cheapest(options []Option, need float64) []int {
	replicas, made, _ := cheapest(options, need, min(max(0, int(*w)), stateBudget))
	*w -= Work(made + workPerOption*len(options))
	return replicas
}

// Next returns the next best alternative to best, the answer of Cheapest to the same
// question: the cheapest vector that does without at least one of the variants of
// which best has replicas. (More replicas on top of the same mix are no alternative.)
// It is false when no such vector leaves as little unserved as best does, because
// bounds or missing alternatives hold the mix, and when the work is used up.
func (w *Work) Next(options []Option, need capacity.Rate, best Vector) (Vector, bool) {
	var next Vector
	found, without := false, slices.Clone(options)
	for i, n := range best.Replicas {
		if i >= len(options) || n <= 0 || options[i].Least > 0 {
			continue
		}
		without[i].Most, without[i].Serves = 0, 0
		replicas := w.cheapest(without, float64(need))
		if *w <= 0 {
			return Vector{}, false
		}
		without[i], replicas[i] = options[i], 0
		v := vector(options, max(0, positive(float64(need))), replicas)
		if float64(v.Unserved-best.Unserved) > slackOf(float64(need)) {
			continue
		}
		if !found || dearer(options, next, v) {
			next, found = v, true
		}
	}
	return next, found
}

// dearer reports whether a is worse than b: in cost, then in changes.
func dearer(options []Option, a, b Vector) bool {
	costA, costB := float64(a.Cost+a.Start), float64(b.Cost+b.Start)
	switch tolerance := fine * max(costA, costB); {
	case costA-costB > tolerance:
		return true
	case costB-costA > tolerance:
		return false
	}
	return changes(options, a) > changes(options, b)
}

func changes(options []Option, v Vector) int {
	sum := 0
	for i, n := range v.Replicas {
		now := max(options[i].Now, 0)
		sum += max(n-now, now-n)
	}
	return sum
}
