package need

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// SizedFor is the arrival rate that replicas are sized for: that which, served within the
// promise, leaves just the promised misses. The promise is a budget of misses: the rare
// peak may spend what the load of now, which is less, does not. Where both are the same it
// is the peak.
func (m *Model) SizedFor(peak capacity.Rate) capacity.Rate {
	now := m.Demand.Now
	best := m.CheapestSized()
	if best == nil {
		return peak
	}
	found := best.Next.Sizing
	growth := rate.Growth(&found)
	part, low, high := float64(now/peak), 1.0, float64(found.PeakRate/found.Rate)
	for high-low > signal.Precision*high {
		each := (low + high) / 2
		misses := m.Round.Policy.Risk*math.Exp(growth*(part*each-1)) + (1-m.Round.Policy.Risk)*math.Exp(growth*(each-1))
		if misses < 1 {
			low = each
		} else {
			high = each
		}
	}
	return max(now, peak/capacity.Rate(low))
}

// TellDemand records what was found. It runs after the rates are made: how far ahead the forecast
// looks follows from how long the replicas take to start that would be bought.
func (m *Model) TellDemand() {
	m.TellPart()
	d := &m.Demand
	if !d.Seen {
		m.Note(contract.StageDemand, contract.ReasonMetricsMissing, contract.SaysArrivalUnknown.With())
		return
	}
	found := contract.SaysDemand.With(max(0, d.Now), m.Ahead, int(math.RoundToEven(d.Backlog)))
	if like := d.Forecast.LikeEarlier(); like > 1-like {
		found = contract.Clauses(found, contract.SaysAsEarlier.With())
	}
	m.Note(contract.StageDemand, contract.ReasonMetricsFound, found)
}
