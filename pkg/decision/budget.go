package decision

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// leastPeakShare is the least share of the requests that is to keep the promise at the
// expected peak, however rare that is.
const leastPeakShare = 0.5

// precision is that of a number which is looked for, as a share of it, and the share up to which
// two sums of rates are the same.
const precision = 1e-5

// peakShare is the share of the requests that is to keep the promise while the demand is at
// the quantile that is sized for. It is beyond that for 1-risk of the time, and the misses of
// the whole time may fall into it.
func (p *Policy) peakShare() float64 {
	return min(p.Share, max(leastPeakShare, 1-(1-p.Share)/(1-p.Risk)))
}

// sizedFor is the arrival rate that replicas are sized for: that which, served within the
// promise, leaves just the promised misses. The promise is a budget of misses: the rare
// peak may spend what the load of now, which is less, does not. Where both are the same it
// is the peak.
func (r *round) sizedFor(m *model, peak capacity.Rate) capacity.Rate {
	now := m.demand.now
	best := m.cheapestSized()
	if best == nil {
		return peak
	}
	found := best.next.Sizing
	growth := found.growth()
	part, low, high := float64(now/peak), 1.0, float64(found.PeakRate/found.Rate)
	for high-low > precision*high {
		each := (low + high) / 2
		misses := r.policy.Risk*math.Exp(growth*(part*each-1)) + (1-r.policy.Risk)*math.Exp(growth*(each-1))
		if misses < 1 {
			low = each
		} else {
			high = each
		}
	}
	return max(now, peak/capacity.Rate(low))
}

// growth is the logarithm of how many times as many requests miss the promise when a replica
// serves twice its rate: the share of misses grows about exponentially with the rate.
func (s *Sizing) growth() float64 {
	return math.Log((1-s.PeakShare)/(1-s.Share)) / (float64(s.PeakRate/s.Rate) - 1)
}

// cheapestSized is the variant that serves within the promise for least, of those that serve
// more where more may miss it; nil where none does.
func (m *model) cheapestSized() *variant {
	var best *variant
	for _, v := range m.variants {
		s := v.next.Sizing
		if v.rate.bound && v.rate.promised > 0 && s.PeakRate > s.Rate && s.PeakShare < s.Share && (best == nil || v.unitPrice() < best.unitPrice()) {
			best = v
		}
	}
	return best
}
