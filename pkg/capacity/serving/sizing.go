package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// latencies are what a request sees that finds n others in the system, a whole number or
// not: as one of n+1 in service, and the time to its first token without the wait. What a cold
// prefill adds is left out: it falls with the rate, and sizes are decided where it is
// small.
func (s Queueing) latencies(n float64) (first, itl float64) {
	q := s.queue
	busy := min(n+1, float64(q.batch()))
	return q.profile.first(busy, q.shape, capacity.Rate(math.Inf(1))), q.profile.decode(busy, q.shape)
}

// waiting is the share of requests that find no free place in service.
func (s Queueing) waiting() float64 { return s.share[s.queue.batch()] / (1 - s.load) }

func within(value float64, target capacity.Milliseconds) bool {
	return target <= 0 || value <= float64(target)
}

// Quantile is the least TTFT and the least ITL that the given share of requests
// keep, each for itself. Both are infinite where the replica cannot keep up.
//
// An arriving request finds the steady state. One that finds k others before it in the
// waiting room, which counts as endless here, waits for k+1 departures: the wait of those
// that wait is exponential with the rate of the batch limit less the arrivals. A request's
// own ITL is taken as that of the state it came into, though a long one sees many: that
// errs to the safe side for high shares. A state stands for half a request more and less, over
// which its share is spread. Without that an estimate that is off by a thousandth could move
// the greatest rate by a whole state, which is a tenth of the rate of ten in service.
func (s Queueing) Quantile(share float64) capacity.SLO {
	endless := capacity.Milliseconds(math.Inf(1))
	if s.load >= 1 || share >= 1 {
		return capacity.SLO{TTFT: endless, ITL: endless}
	}
	batch, sum := s.queue.batch(), 0.0
	for n := range batch {
		before := sum
		if sum += s.share[n]; sum >= share {
			// First tokens and decode times grow with the number in service.
			first, itl := s.latencies(max(0, float64(n)-0.5+(share-before)/s.share[n]))
			return capacity.SLO{TTFT: capacity.Milliseconds(first), ITL: capacity.Milliseconds(itl)}
		}
	}
	first, itl := s.latencies(float64(batch))
	spare := s.queue.service[batch] - s.arrival
	wait := math.Max(0, math.Log(s.waiting()/(1-share))) / spare * s.queue.burstiness()
	return capacity.SLO{TTFT: capacity.Milliseconds(first + wait), ITL: capacity.Milliseconds(itl)}
}

// coldSteps is how finely MaxRate looks for a rate that keeps the SLO when an idle
// replica does not.
const coldSteps = 32

// MeanShare asks MaxRate and Promise for means instead of a quantile.
const MeanShare = 0

// Promise is the SLO that the replica can be said to keep at an arrival rate: at the
// quantile, or in the mean for MeanShare. It is the inverse of MaxRate.
func (q Queue) Promise(rate capacity.Rate, share float64) capacity.SLO {
	return q.promise(rate, share, make([]float64, len(q.service)))
}

func (q Queue) promise(rate capacity.Rate, share float64, room []float64) capacity.SLO {
	if share > 0 {
		return q.quantileAt(rate, share, room)
	}
	s := q.At(rate)
	return capacity.SLO{TTFT: s.TTFT, ITL: s.ITL}
}

// MaxRate is the largest rate at which the given share of requests keeps the TTFT
// of the SLO and the same share the ITL, or at which the means keep it for
// MeanShare. A promise that was not made binds nothing; then it is the rate of the
// full batch, less what keeps the queue finite. It is 0 when no rate keeps the SLO.
func (q Queue) MaxRate(slo capacity.SLO, share float64) capacity.Rate {
	if len(q.service) == 0 {
		return 0
	}
	room := make([]float64, len(q.service))
	keeps := func(perMs float64) bool {
		got := q.promise(capacity.Rate(1000*perMs), share, room)
		return within(float64(got.TTFT), slo.TTFT) && within(float64(got.ITL), slo.ITL)
	}
	low, high := leastLoad*q.service[1], mostLoad*q.service[q.batch()]
	if keeps(high) {
		return capacity.Rate(1000 * high)
	}
	if !keeps(low) {
		// A cold first token may miss what a warm one keeps.
		step := (high - low) / coldSteps
		found := false
		for k := 1; k < coldSteps && !found; k++ {
			high -= step
			found = keeps(high)
		}
		if !found {
			return 0
		}
		low, high = high, high+step
	}
	// 30 halvings leave a relative error far below that of any measured rate.
	for range 30 {
		if mid := (low + high) / 2; keeps(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return capacity.Rate(1000 * low)
}
