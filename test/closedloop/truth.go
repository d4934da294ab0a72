package closedloop

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// truth is what one replica of a variant serves in this world, of its model's load. Two
// numbers bound what a replica may be said to serve: most is the most generous and least
// the strictest defensible reading of the contract. Whether replicas suffice is judged by
// most, and whether they are too many by least, so that no reading is called wrong.
type truth struct {
	curve *curve
	// saturation is the rate at which a saturation trigger fires.
	saturation bound
	// promise is the greatest rate within the promise. It counts where promised is set;
	// otherwise there is no promise, or no sizing for it.
	promise  bound
	promised bool
	// stated is the same by a profile that is given and wrong by less than is corrected.
	stated bound
	// misses is the rate at which as many requests miss the promise as may, the share allowed.
	misses, allowed float64
	// told says that the decision knows the profile; without it the promise has to be
	// learned, and may never be.
	told bool
}

// exact says that the decision is given what a replica truly does.
func (v *Variant) exact() bool { return v.Told && v.Wrong == 0 && v.Budget == 0 }

// bound is the range of a rate.
type bound struct {
	most, least float64
}

// The published distance between growing and shrinking: replicas are added when the load is
// above addedShare of what they serve at kvCacheThreshold, and taken away as far as the rest
// serves it at no more than keptShare of that.
const (
	addedShare = 0.85
	keptShare  = 0.70
)

// learnedShare is how far below the truth a rate may be held that nobody told.
const learnedShare = 0.8

// standsUpTo is the factor up to which a given profile may be wrong and stands: 1.5 is stated,
// and by a few points that factor is known to a few percent.
const standsUpTo = 1.5 * 1.05

// leastCounted is how far below what its latency model says a replica may be counted where
// more requests miss the promise than may: that is stated.
const leastCounted = 0.85

// missGrowth is how fast misses grow with the rate, as an exponent over its share: tenfold
// with a quarter more, as with servers that were measured.
const missGrowth = 9.2

// A variant keeps the promise where its rate within it is at least a fifth of its rate at
// the triggers, and a tenth once it does: that is stated. Between hardlyShare and
// edgeShare it may count as either, because the rates themselves depend on how many share
// the load.
const (
	edgeShare   = 0.22
	hardlyShare = 0.09
)

// newTruth is the truth about one replica, for the load that stays in the end.
func newTruth(m *Model, v *Variant, s *Scenario, load float64) truth {
	t := truth{allowed: 1 - s.share(), curve: newCurve(v.Profile, m, v.Budget), told: v.exact(), promised: s.Hybrid && m.SLO != capacity.SLO{}}
	settings := s.thresholds()
	perRequest := float64(m.Shape.Input) + float64(m.Shape.Output)/2
	// At most: the KV cache is full to kvCacheThreshold less kvSpareTrigger, or the batch is
	// full and a queue begins. At least: the batch counts as full like the cache, because
	// requests that come by chance queue before a mean batch is full. A trigger that is further
	// below the threshold than the default one fires earlier.
	spare := (settings.KVCacheThreshold - settings.KVSpareTrigger) * float64(v.Profile.KVTokens) / perRequest
	t.saturation = bound{
		most: t.curve.rateAt(min(t.curve.limit, spare)),
		least: min(keptShare*t.curve.rateAt(settings.KVCacheThreshold*t.curve.limit),
			keptShare/addedShare*t.curve.rateAt((settings.KVCacheThreshold-settings.KVSpareTrigger)*t.curve.limit)),
	}
	if t.promised {
		if v.Told && v.Wrong > 0 && max(v.Wrong, 1/v.Wrong) <= standsUpTo {
			stated := *v
			stated.Profile, stated.Wrong = v.given(), 0
			t.stated = newTruth(m, &stated, s, load).promise
		}
		// The more replicas share the arrivals, the more the formula lets each serve. How many
		// of this variant do is for the decision to choose: at most all of them, at least one.
		all, _ := serving.SharedRate(v.Profile, m.Shape, capacity.Rate(max(1e-9, load)), 1, m.SLO, s.share())
		alone, _ := serving.SharedRate(v.Profile, m.Shape, 1e-9, 1, m.SLO, s.share())
		t.promise = bound{
			most:  min(max(float64(all), float64(alone)), t.saturation.most),
			least: min(float64(all), float64(alone), t.saturation.least),
		}
		if m.Misses > 0 {
			t.misses = m.Misses * t.promise.most
			t.promise.least *= leastCounted
		}
	}
	if !v.exact() {
		// What is learned from a few points is extrapolated to a full replica.
		t.saturation.least *= learnedShare
		t.promise.least *= learnedShare
		if !t.keeps() {
			// Near the edge an error of a few percent in a latency is a factor in this rate.
			t.promise.least = min(t.promise.least, hardlyShare*t.saturation.most)
		}
	}
	return t
}

// readings are the rates that a replica may be said to count, all of which are
// defensible; by most or by least of each.
func (t *truth) readings(of func(bound) float64) []float64 {
	saturation, promise := of(t.saturation), of(t.promise)
	switch {
	case !t.promised:
		return []float64{saturation}
	case !t.told:
		// Learned, learned as a variant that misses it, not learned yet, or as it is stated.
		readings := []float64{saturation, promise, 0}
		if stated := of(t.stated); stated > 0 {
			readings = append(readings, learnedShare*stated)
		}
		return readings
	case t.promise.most < hardlyShare*t.saturation.least:
		return []float64{0}
	case !t.keeps():
		return []float64{promise, 0}
	default:
		return []float64{promise}
	}
}

// keeps says whether the variant certainly counts as one that keeps the promise.
func (t *truth) keeps() bool { return t.promise.least >= edgeShare*t.saturation.most }

// missed is the share of the requests that miss the promise at a rate.
func (t *truth) missed(rate float64) float64 {
	if t.misses == 0 {
		return 1
	}
	return min(1, t.allowed*math.Exp(missGrowth*(rate/t.misses-1)))
}
