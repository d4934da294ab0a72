package closedloop

import (
	"math"
	"math/rand/v2"
	"time"
)

// seedBytes is enough for the largest scenario.
const seedBytes = 2048

// dice draws from bytes. When they are used up every draw is the lowest, which stands
// for what is simplest, so that shorter inputs are simpler scenarios.
type dice struct {
	data []byte
}

// seeded are the bytes of a seed.
func seeded(seed uint64) []byte {
	source := rand.New(rand.NewPCG(seed, 0xc105ed100b))
	data := make([]byte, seedBytes)
	for i := range data {
		data[i] = byte(source.Uint32())
	}
	return data
}

// unit is a number from 0 to below 1.
func (d *dice) unit() float64 {
	if len(d.data) < 2 {
		return 0
	}
	drawn := float64(d.data[0])*256 + float64(d.data[1])
	d.data = d.data[2:]
	return drawn / 65536
}

// below is a whole number from 0 to below n.
func (d *dice) below(n int) int { return int(d.unit() * float64(n)) }

// chance is true with a probability; never when the bytes are used up.
func (d *dice) chance(p float64) bool { return d.unit() >= 1-p }

// between is a number from low to below high.
func (d *dice) between(low, high float64) float64 { return low + d.unit()*(high-low) }

// scaled is a number from low to below high, each factor as likely as the others.
func (d *dice) scaled(low, high float64) float64 {
	return low * math.Pow(high/low, d.unit())
}

// span is a time from low to below high in whole steps of the world.
func (d *dice) span(low, high time.Duration) time.Duration {
	return time.Duration(d.between(float64(low), float64(high))).Truncate(step)
}

// pick is one of several.
func pick[T any](d *dice, of ...T) T { return of[d.below(len(of))] }
