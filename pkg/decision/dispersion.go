package decision

import (
	"math"
	"time"
)

// Dispersion is how irregular the arrivals of a model are: the index of dispersion of
// their counts, variance over mean, which is 1 for independent arrivals and n for those
// that come n at a time.
type Dispersion struct {
	Time time.Time
	// Index is at least 1. Weight is the number of observations behind it, which are
	// forgotten by halves.
	Index, Weight float64
}

const (
	// dispersionHalfLife is how slowly it forgets.
	dispersionHalfLife = 10 * time.Minute
	// dispersionPrior is how many observations the assumption of independent arrivals
	// counts as.
	dispersionPrior = 2
	// dispersionTrim is how many times what is known one observation may say at most:
	// independent arrivals exceed that once in two hundred, while a step of the load,
	// which is no burst, says any number.
	dispersionTrim = 8
)

// index is what is known of a model's dispersion; 1 without any observation.
func (d Dispersion) index() float64 { return max(1, d.Index) }

// observe takes in two rates that were counted over times which do not overlap. Their
// difference has the variance I*(r1/s1 + r2/s2) for the rates r, the spans s in seconds
// and the index I; the difference, and not that from a mean, because the mean moves.
func (d Dispersion) observe(now time.Time, before, after Observation) Dispersion {
	chance := max(float64(before.Newest), 1/before.Span.Seconds())/before.Span.Seconds() +
		max(float64(after.Newest), 1/after.Span.Seconds())/after.Span.Seconds()
	difference := float64(after.Newest - before.Newest)
	seen := min(difference*difference/chance, dispersionTrim*d.index())
	kept := d.Weight * math.Exp2(-max(0, now.Sub(d.Time).Seconds())/dispersionHalfLife.Seconds())
	// What is not known, or was forgotten, is assumed.
	assumed := max(0, dispersionPrior-kept)
	sum := d.Index*kept + assumed + seen
	kept += assumed
	return Dispersion{Time: now, Index: sum / (kept + 1), Weight: kept + 1}
}

// watch takes the newest observation in, if it was made now and overlaps none before.
func (d Dispersion) watch(now time.Time, points []Observation) Dispersion {
	n := len(points)
	if n < 2 || !points[n-1].Time.Equal(now) {
		return d
	}
	before, after := points[n-2], points[n-1]
	if before.Span > 0 && after.Span > 0 && after.Sampled.Sub(before.Sampled) >= after.Span {
		return d.observe(now, before, after)
	}
	return d
}
