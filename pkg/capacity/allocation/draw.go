package allocation

import "math"

// draws is a sequence of numbers without order that is the same each time (SplitMix64,
// Steele et al. 2014).
type draws uint64

func (d *draws) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	x := uint64(*d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// part is evenly spread from 0 up to, but not, 1.
func (d *draws) part() float64 { return float64(d.next()>>11) / (1 << 53) }

// below is one of the n numbers from 0 on.
func (d *draws) below(n int) int { return int(d.part() * float64(n)) }

// excess is exponential with a mean of 1.
func (d *draws) excess() float64 { return -math.Log(1 - d.part()) }
