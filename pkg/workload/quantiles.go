package workload

import (
	"math"
	"math/rand/v2"
)

// levels are the quantiles by which a distribution of lengths is given.
var levels = [...]float64{0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99}

const (
	// tailShare is the part of a distribution above its highest quantile.
	tailShare = 0.01
	// shortTail times the highest quantile is how high the mean of the tail may rise
	// before anything else is done to reach the mean of the distribution: measured
	// lengths mostly stay below.
	shortTail = 2
	// mostBend is how far towards its upper end a distribution may lie between two
	// quantiles before the tail rises further.
	mostBend = 0.75
	// longestTail is the longest length in tokens that a tail may reach: the context
	// of most models that serve long prompts.
	longestTail = 131_072
)

// quantiles is a distribution of lengths given by its quantiles and its mean. A
// draw is the inverse transform of a uniform number: between two quantiles it
// rises from one to the other, straight unless the mean says that it lies nearer
// to one of them; below the lowest it is the lowest; above the highest it rises
// straight to the end of a tail that is as long as the mean asks for.
type quantiles struct {
	at [len(levels)]float64
	// bend is the exponent of the rise between two quantiles; 1 is straight.
	bend float64
	// end is the largest length.
	end float64
}

// newQuantiles fits the tail and the bend to the mean, as near as they reach. The
// quantiles must not fall.
func newQuantiles(at [len(levels)]float64, mean float64) *quantiles {
	// With s for the share of the rise at which the mean between two quantiles lies
	// (1/2 when straight), the mean of it all is low + s*rise + tailShare*tail.
	low, rise := levels[0]*at[0], 0.0
	for i := 1; i < len(levels); i++ {
		low += (levels[i] - levels[i-1]) * at[i-1]
		rise += (levels[i] - levels[i-1]) * (at[i] - at[i-1])
	}
	top := at[len(at)-1]
	tail := func(share, most float64) float64 {
		return max(min((mean-low-share*rise)/tailShare, most), top)
	}
	share := 0.5
	mid := tail(share, shortTail*top)
	if rise > 0 {
		// Off by less than a token in a thousand requests is rounding, not a bend.
		if s := (mean - low - tailShare*mid) / rise; math.Abs(s-share)*rise > 1e-3 {
			share = max(min(s, mostBend), 0)
		}
	}
	// The mean of a straight tail is half way to its end.
	end := 2*tail(share, longestTail) - top
	return &quantiles{at: at, bend: 1/share - 1, end: max(min(end, longestTail), top)}
}

// draw returns a length of at least 1.
func (q *quantiles) draw(random *rand.Rand) int {
	return int(max(math.Round(q.quantile(random.Float64())), 1))
}

// quantile is the length that the share u of all lengths, below 1, stays below.
func (q *quantiles) quantile(u float64) float64 {
	if u < levels[0] {
		return q.at[0]
	}
	i := 1
	for i < len(levels) && u >= levels[i] {
		i++
	}
	from, low := levels[i-1], q.at[i-1]
	if i == len(levels) {
		return low + (q.end-low)*(u-from)/(1-from)
	}
	way := (u - from) / (levels[i] - from)
	if q.bend != 1 {
		way = math.Pow(way, q.bend)
	}
	return low + (q.at[i]-low)*way
}
