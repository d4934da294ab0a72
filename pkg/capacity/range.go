package capacity

import "math"

// Numbers of nodes and templates come from outside and may be absurd. Sums, differences
// and products of them stay at the ends of their range.

// Plus is a sum within the range of its numbers.
func Plus[T int | int64](a, b T) T {
	sum := a + b
	if (a^sum)&(b^sum) < 0 {
		return end(a)
	}
	return sum
}

// Minus is a difference within the range of its numbers.
func Minus[T int | int64](a, b T) T {
	difference := a - b
	if (a^b)&(a^difference) < 0 {
		return end(a)
	}
	return difference
}

// Times is a product within the range of its numbers.
func Times[T int | int64](a, b T) T {
	if b == 0 {
		return 0
	}
	product := a * b
	if product/b != a || b == -1 && a == math.MinInt64 {
		return end(a ^ b)
	}
	return product
}

// end is the end of the range on the side of a.
func end[T int | int64](a T) T { return a>>63 ^ math.MaxInt64 }
