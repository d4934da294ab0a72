package serving

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Observation is what one replica showed between two scrapes.
type Observation struct {
	// Time is when it was seen.
	Time time.Time
	// Point holds what was measured. Its Batch must be known: without it a rate says
	// nothing of a replica that shares its load with others.
	Point Point
	// Waiting is the mean number of requests that waited in the replica; while any
	// do, its TTFT is mostly theirs and says nothing of the engine.
	Waiting float64
	// Starting says that the replica was not ready, or ready for less than it takes
	// to warm up.
	Starting bool
}

const (
	// idleBatch is the number in service that a request meets, itself among them, below which
	// a replica is idle: what it shows then are single requests on cold caches.
	idleBatch = 1.5
	// learnedPoints bounds the memory of one variant.
	learnedPoints = 64
	// learnedAge is how long a point counts at batches that were seen since: long enough for
	// a day's swing to have shown several, short enough for a new engine version to be
	// forgotten.
	learnedAge = 6 * time.Hour
	// anchor is the pull of a parameter towards where the fit starts, per point's
	// loss: what the points do not tell apart stays where it was.
	anchor = 0.01
	// UsableConfidence is the confidence from which a learned profile is used.
	UsableConfidence = 0.5
	// Enough points, spread and error for a confidence of 1, and the error at which
	// nothing is left of it.
	enoughPoints, enoughSpread, uselessError = 8, 4, 0.3
)

// Learned is what the replicas of one variant were seen to do: the newest
// observation of each neighbourhood of batch and lengths. What is old stays as long as it is
// the only word on batches as small or as large. It is a value; Observe
// returns the next one and leaves the old one as it was.
type Learned struct {
	// Seen is ordered by time, the oldest first, and holds one per neighbourhood.
	Seen []Observation
}

// After is what was seen after an instant.
func (l Learned) After(at time.Time) Learned {
	first := slices.IndexFunc(l.Seen, func(o Observation) bool { return o.Time.After(at) })
	if first < 0 {
		return Learned{}
	}
	return Learned{Seen: l.Seen[first:]}
}

// Observe adds an observation, unless nothing can be learned from it: a replica that
// starts or is idle, or numbers that cannot be.
func (l Learned) Observe(o Observation) Learned {
	if o.Starting || !o.Point.usable() || o.Point.Batch < idleBatch || math.IsNaN(o.Waiting) {
		return l
	}
	if o.Waiting > 0 {
		o.Point.TTFT = 0
	}
	kept, here := make([]Observation, 0, len(l.Seen)+1), neighbourhood(o.Point)
	least, most := o.Point.Batch, o.Point.Batch
	for _, young := range l.Seen {
		if o.Time.Sub(young.Time) < learnedAge {
			least, most = min(least, young.Point.Batch), max(most, young.Point.Batch)
		}
	}
	for _, old := range l.Seen {
		within := least <= old.Point.Batch && old.Point.Batch <= most
		if neighbourhood(old.Point) != here && (o.Time.Sub(old.Time) < learnedAge || !within) {
			kept = append(kept, old)
		} else if old.Time.After(o.Time) {
			return l
		}
	}
	kept = append(kept, o)
	slices.SortStableFunc(kept, func(a, b Observation) int { return a.Time.Compare(b.Time) })
	if len(kept) > learnedPoints {
		kept = kept[len(kept)-learnedPoints:]
	}
	return Learned{Seen: kept}
}

// Near reports whether others hold the same neighbourhoods with about the same in each, up
// to a share of it: a fit to them would find about the same.
func (l Learned) Near(o Learned, share float64) bool {
	if len(l.Seen) != len(o.Seen) {
		return false
	}
	others := make(map[[3]int]Point, len(o.Seen))
	for _, seen := range o.Seen {
		others[neighbourhood(seen.Point)] = seen.Point
	}
	return !slices.ContainsFunc(l.Seen, func(seen Observation) bool {
		other, same := others[neighbourhood(seen.Point)]
		return !same || !seen.Point.near(other, share)
	})
}

// near compares what a fit reads of a point.
func (p Point) near(o Point, share float64) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= share*b }
	return near(p.Batch, o.Batch) && near(float64(p.Shape.Input), float64(o.Shape.Input)) && near(float64(p.Shape.Output), float64(o.Shape.Output)) &&
		near(float64(p.TTFT), float64(o.TTFT)) && near(float64(p.ITL), float64(o.ITL))
}

// neighbourhood is a cell of the space of operating points: steps of a factor of the
// square root of two in the batch, and of two in the lengths.
func neighbourhood(p Point) [3]int {
	step := func(x, perDoubling float64) int { return int(math.Floor(perDoubling * math.Log2(max(x, 1e-3)))) }
	return [3]int{step(p.Batch, 2), step(float64(p.Shape.Input), 1), step(float64(p.Shape.Output), 1)}
}

// Estimate is a learned profile and how far it can be trusted.
type Estimate struct {
	Profile Profile
	// Confidence is between 0 and 1: the product of how many operating points were
	// seen, how far their batches are apart, and how well the profile explains them.
	Confidence float64
	// Reach is the largest batch that was seen; beyond it the profile extrapolates.
	Reach float64
	// Error is the median relative error of the time per output token.
	Error float64
}

// Usable reports whether the confidence is enough to decide by.
func (e Estimate) Usable() bool { return e.Confidence >= UsableConfidence && e.Profile.Known() }

// Estimate fits a profile to what was seen. The prior, where it is known, is where
// the fit starts and what it is held to where the observations say nothing; its
// limits on batch and KV tokens are kept. Every parameter stays within a factor of
// 20 of it, so that a broken exporter cannot teach an absurd one.
func (l Learned) Estimate(prior Profile) Estimate {
	points := make([]Point, len(l.Seen))
	for i, o := range l.Seen {
		points[i] = o.Point
	}
	start := prior
	if !start.Known() {
		start = Guess(Overlapped, points)
		start.BatchLimit, start.KVTokens = prior.BatchLimit, prior.KVTokens
	}
	if len(points) == 0 || !start.Known() {
		return Estimate{Profile: prior}
	}
	at := func(p Profile, i int) At { return p.Steady(points[i].Batch, points[i].Shape) }
	fitted := Fit(start, points, anchor, at)
	errors := make([]float64, len(points))
	least, most := math.Inf(1), 0.0
	for i, p := range points {
		errors[i] = math.Abs(float64(at(fitted, i).ITL/p.ITL) - 1)
		least, most = min(least, p.Batch), max(most, p.Batch)
	}
	slices.SortFunc(errors, cmp.Compare[float64])
	e := Estimate{Profile: fitted, Reach: most, Error: errors[len(errors)/2]}
	amount := min(1, float64(len(points))/enoughPoints)
	spread := min(1, math.Log(most/least)/math.Log(enoughSpread))
	e.Confidence = amount * spread * max(0, 1-e.Error/uselessError)
	return e
}
