package forecast

import (
	"math"
	"time"
)

const (
	// latelyHalfLife is how slowly it is forgotten where the load was and how often it jumped.
	// For as long it is taken not to have jumped before anything was seen.
	latelyHalfLife = 20 * time.Minute
)

// Lately is where a load was lately, and how often it jumped: a load that comes in bursts falls
// and returns. What is longer ago counts less.
type Lately struct {
	// Seconds is the time that it speaks of.
	Seconds float64
	// Mean and Variance are those of the rates that were counted, in requests per second.
	Mean, Variance float64
	// Jumps is how often the load is believed to have jumped in that time.
	Jumps float64
}

// after is the same once a rate was counted, a while after the one before, to which the load
// jumped with some probability.
func (l Lately) after(elapsed time.Duration, rate, jumped float64) Lately {
	kept := math.Exp2(-elapsed.Seconds() / latelyHalfLife.Seconds())
	l.Seconds = kept*l.Seconds + elapsed.Seconds()
	share, away := elapsed.Seconds()/l.Seconds, rate-l.Mean
	l.Mean += share * away
	l.Variance = (1 - share) * (l.Variance + share*away*away)
	l.Jumps = kept*l.Jumps + jumped
	return l
}

// Returns is how likely the load goes back to where it was within a time. Jumps are taken to
// be independent of each other.
func (l Lately) Returns(ahead time.Duration) float64 {
	often := l.Jumps / (l.Seconds + latelyHalfLife.Seconds())
	return 1 - math.Exp(-often*ahead.Seconds())
}

// jumped is how likely the load jumped to what was counted last.
func (b *Belief) jumped() float64 {
	sum := 0.0
	for i, o := range motions {
		if o.jump > 0 {
			sum += b.Modes[i].Probability
		}
	}
	return sum
}
