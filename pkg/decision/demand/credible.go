package demand

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Disbelieve leaves out counts and lengths that cannot be. A server that shows zeros once, as while its page is
// not made yet, or because another one answers for it, seems to have done within a metrics window
// what it did in all its life: a counter that falls is taken to have begun anew from zero.
func (m *Model) Disbelieve() {
	inFlight := m.mostInFlight()
	for _, v := range m.Variants {
		wrong := func(p contract.Replica) bool { return m.Round.Cannot(&p, inFlight) || m.Round.TooLong(&p) }
		if !slices.ContainsFunc(v.In.Replicas, wrong) {
			continue
		}
		found := *v.In
		found.Replicas = slices.Clone(found.Replicas)
		for i := range found.Replicas {
			p := &found.Replicas[i]
			if m.Round.Cannot(p, inFlight) {
				p.Served, p.Recent, p.InFlightGrowth = contract.Sample{}, contract.Sample{}, contract.Sample{}
			}
			if m.Round.TooLong(p) {
				p.Input, p.Output = contract.Sample{}, contract.Sample{}
			}
		}
		v.In = &found
	}
}

// mostInFlight is the most requests that the model's replicas had lately.
func (m *Model) mostInFlight() float64 {
	most := m.InFlight()
	for _, o := range m.Old.Seen {
		most = max(most, o.InFlight)
	}
	return most
}

// DisbelieveGateway leaves out a gateway's count of which the replicas can have done next to
// nothing, and no queue shows, where all of them are heard and none refuses any, being full: they
// tell then what arrives.
func (m *Model) DisbelieveGateway() {
	if !m.Round.Usable(m.In.Queue) || !m.Round.Usable(m.In.Arrival) || m.Load.Saturated > 0 {
		return
	}
	inFlight, done, heard := m.mostInFlight(), 0.0, 0
	for _, v := range m.Variants {
		for i := range v.In.Replicas {
			p := &v.In.Replicas[i]
			most, known := m.Round.AtMost(p, inFlight)
			if m.Round.Usable(p.Served) && (!known || p.Served.Value <= most) {
				most, known = p.Served.Value, true
			}
			if known {
				done, heard = done+most, heard+1
			}
		}
	}
	window := m.WindowOf().Seconds()
	if heard == 0 || heard < m.Ready() || m.In.Arrival.Value*window <= signal.UnseenTimes*(done*window+inFlight+m.In.Queue.Value+1) {
		return
	}
	found := *m.In
	found.Arrival, found.Recent = contract.Sample{}, contract.Sample{}
	m.In = &found
}
