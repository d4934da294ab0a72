package serving

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Curve is what the replicas of one variant were seen to do: the time that a
// request stays in service as a line over the number in service,
//
//	w(n) = w0 + w1*n   per output token,
//
// fitted by least squares whose weights halve every half-life. The line is the
// linear part of Profile.Steady's residence time, so the throughput n/w(n) bends
// the way a batching engine's does. Curve is a value; Observe returns the next one.
type Curve struct {
	// Weight, N, W, NN and NW are the decayed sums of 1, n, w, n*n and n*w.
	Weight, N, W, NN, NW float64
	// Updated is the time of the newest observation.
	Updated time.Time
	// PerToken says that w is per output token; otherwise it is per request,
	// because the lengths were not known.
	PerToken bool
}

const (
	// halfLife is long against a round and short against the day's change of the
	// traffic's token mix.
	halfLife = 5 * time.Minute
	// defaultSlopeShare is the share of the residence time at the observed batch that is
	// taken to grow with the batch, up to there, and fullSlopeShare the same of that at a
	// larger one that is asked for, as long as neither a profile nor a spread of
	// observations says otherwise. Measured engines lie between 0.2 and 0.9. With half of
	// it at whatever was observed, replicas that are nearly idle would never show that they
	// serve twice as much; with less than that at the larger batch, they promise what
	// they do not keep.
	defaultSlopeShare, fullSlopeShare = 0.5, 0.75
	// slopePriorSpread is the relative spread of n at which observations and the
	// prior have the same say in the slope.
	slopePriorSpread = 0.15
	// leastInService is how many requests a replica must have in service so that its point
	// joins the line: with fewer it tells nothing of how the time grows with them.
	leastInService = 0.5
)

// Known reports whether anything was observed.
func (c Curve) Known() bool { return c.Weight > 0 }

// Observe adds one replica's operating point: n requests in service, served
// requests completed per second, of the given shape (which may be unknown). Points
// without load or completions say nothing of the residence time and are left out.
func (c Curve) Observe(now time.Time, n float64, served capacity.Rate, shape capacity.TokenShape) Curve {
	if n < leastInService || !isPoint(n, served) {
		return c
	}
	return c.add(now, n, served, shape)
}

// ObserveIdle looks at a replica's operating point with fewer requests in service than Observe takes.
// It is left out while the line says the same of it within the factor. Where it does not, the line was
// seen of other requests, and no point of a replica that is hardly asked would ever correct it: the line
// begins anew with this one.
func (c Curve) ObserveIdle(now time.Time, n float64, served capacity.Rate, shape capacity.TokenShape, factor float64) Curve {
	if !c.Known() || n >= leastInService || !isPoint(n, served) {
		return c
	}
	if off := float64(c.Rate(n, shape, Profile{}) / served); off > 0 && max(off, 1/off) <= factor {
		return c
	}
	return Curve{}.add(now, n, served, shape)
}

// isPoint reports whether so many in service and such a rate show a residence time.
func isPoint(n float64, served capacity.Rate) bool {
	return n > 0 && served > 0 && !math.IsNaN(n) && !math.IsInf(n, 0) && !math.IsInf(float64(served), 0)
}

// add adds a point.
func (c Curve) add(now time.Time, n float64, served capacity.Rate, shape capacity.TokenShape) Curve {
	// Little's law: residence = number in service / rate.
	w := n / float64(served)
	perToken := shape.Output > 0
	if perToken {
		w /= float64(shape.Output)
	}
	if perToken != c.PerToken {
		c = Curve{PerToken: perToken}
	}
	decay := math.Exp2(-max(0, now.Sub(c.Updated).Seconds()) / halfLife.Seconds())
	c.Weight, c.N, c.W, c.NN, c.NW = c.Weight*decay, c.N*decay, c.W*decay, c.NN*decay, c.NW*decay
	c.Weight++
	c.N += n
	c.W += w
	c.NN += n * n
	c.NW += n * w
	if now.After(c.Updated) {
		c.Updated = now
	}
	return c
}

// Rate is the rate that one replica serves with n requests in service, of the
// given shape. The prior, when it is known, says how the residence time bends
// where observations do not. The rate is 0 when nothing was observed.
func (c Curve) Rate(n float64, shape capacity.TokenShape, prior Profile) capacity.Rate {
	if !c.Known() || n <= 0 {
		return 0
	}
	meanN, meanW := c.N/c.Weight, c.W/c.Weight
	residence := meanW + c.slope(meanN, meanW, n, shape, prior)*(n-meanN)
	if c.PerToken {
		residence *= float64(shape.Output)
	}
	if residence <= 0 {
		return 0
	}
	return capacity.Rate(n / residence)
}

// slope is w1: the ridge estimate between the observations' slope and the prior's,
// within [0, meanW/meanN], outside of which w0 or w1 would be negative.
func (c Curve) slope(meanN, meanW, n float64, shape capacity.TokenShape, prior Profile) float64 {
	varN := max(0, c.NN/c.Weight-meanN*meanN)
	covNW := c.NW/c.Weight - meanN*meanW
	spread := slopePriorSpread * meanN
	strength := spread * spread
	slope := (covNW + strength*priorSlope(meanN, meanW, n, shape, prior)) / (varN + strength)
	return min(max(slope, 0), meanW/meanN)
}

// priorSlope is the slope to expect between the observed and the asked batch: the
// profile's, where it and the shape are known, scaled to the observed residence time,
// else the default share.
func priorSlope(meanN, meanW, n float64, shape capacity.TokenShape, prior Profile) float64 {
	fallback := defaultSlopeShare * meanW / meanN
	if n > meanN {
		fallback = meanW / (n*(1/fullSlopeShare-1) + meanN)
	}
	here, there := prior.Steady(meanN, shape).Rate, prior.Steady(n, shape).Rate
	if here <= 0 || math.Abs(n-meanN) < 1e-9 {
		return fallback
	}
	// Residence times relative to the one at the observed batch.
	relative := (n / float64(there)) / (meanN / float64(here))
	return meanW * (relative - 1) / (n - meanN)
}
