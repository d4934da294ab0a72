package capacity

import "math"

// Numbers of nodes and templates come from outside and may be absurd. Sums, differences
// and products of them stay at the ends of their range.

// Plus is a sum within the range of its numbers.
func Plus[T int | int64](a, b T) T {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// Minus is a difference within the range of its numbers.
func Minus[T int | int64](a, b T) T {
	difference := a - b
	switch {
	case a >= 0 && b < 0 && difference < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && difference >= 0:
		return math.MinInt64
	default:
		return difference
	}
}

// Times is a product within the range of its numbers.
func Times[T int | int64](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	if product := a * b; product/b == a && (a != math.MinInt64 || b != -1) && (b != math.MinInt64 || a != -1) {
		return product
	}
	if (a < 0) == (b < 0) {
		return math.MaxInt64
	}
	return math.MinInt64
}
