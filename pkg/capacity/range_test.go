package capacity

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every operation on every pair of numbers from the ends and the middle of the range,
// against numbers without a range.
func TestNumbersStayInRange(t *testing.T) {
	least, most := big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	within := func(exact *big.Int) int64 {
		switch {
		case exact.Cmp(least) < 0:
			return math.MinInt64
		case exact.Cmp(most) > 0:
			return math.MaxInt64
		default:
			return exact.Int64()
		}
	}
	numbers := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -3, -2, -1, 0, 1, 2, 3, 1 << 31, 1 << 32, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64}
	for _, a := range numbers {
		for _, b := range numbers {
			x, y := big.NewInt(a), big.NewInt(b)
			assert.Equal(t, within(new(big.Int).Add(x, y)), Plus(a, b), "%d + %d", a, b)
			assert.Equal(t, within(new(big.Int).Sub(x, y)), Minus(a, b), "%d - %d", a, b)
			assert.Equal(t, within(new(big.Int).Mul(x, y)), Times(a, b), "%d * %d", a, b)
		}
	}
}
