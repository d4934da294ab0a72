package allocation

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Next returns the next best alternative to best, the answer of Cheapest to the same
// question: the cheapest vector that does without at least one of the variants of
// which best has replicas. (More replicas on top of the same mix are no alternative.)
// It is false when no such vector leaves as little unserved as best does, because
// bounds or missing alternatives hold the mix.
func Next(options []Option, need capacity.Rate, best Vector) (Vector, bool) {
	var next Vector
	found, without := false, slices.Clone(options)
	for i, n := range best.Replicas {
		if i >= len(options) || n <= 0 || options[i].Least > 0 {
			continue
		}
		without[i].Most, without[i].Serves = 0, 0
		replicas, _ := cheapest(without, float64(need))
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
