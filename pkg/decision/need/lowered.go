package need

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// LeastBelieved is how long it is believed at first that replicas were too few. What slows servers
// down for a while is over by then, or what was learned has caught up with it.
const LeastBelieved = 20 * time.Minute

// JudgeLowered keeps the last scale-down in mind, and what of one before was too few; and
// notes that what the last one left does not suffice although no more load came than it was
// for, and all of them serve: whatever says later that as many suffice is wrong, of the same
// servers and the same promise. A queue is no excuse: what waited when they went is reckoned with.
func (m *Model) JudgeLowered(n *Need) {
	last, few := m.Old.Lowered, m.Old.TooFew
	work := m.Work()
	last.Most = max(last.Most, work)
	undone := n.Want == WantMore && (n.Triggered || !last.Short) && m.Evidence == signal.EvidenceFull && m.Load.Hanging == 0 && m.Began() == 0 && last.Most <= m.About(last.Load)
	for _, v := range m.Variants {
		undone = undone && v.Fleet.Count[fleet.StatePending] == 0 && v.In.Ready <= v.Old.Lowered
	}
	if undone {
		few = contract.TooFew{At: m.Round.Snapshot.Time, Pause: PauseAfter(few.Pause), Load: work, SLO: m.Promise.SLO}
		if n.Queued > 0 {
			// What waits may be of the most that came, however little does now.
			few.Load = last.Most
		}
		last = contract.Lowered{}
	}
	other := few.SLO != m.Promise.SLO || slices.ContainsFunc(m.Variants, (*rate.Variant).Rolling)
	if other || m.Round.Snapshot.Time.Sub(few.At) >= max(rate.Repeats, signal.Again*few.Pause) {
		few = contract.TooFew{}
	}
	m.Next.Lowered, m.Next.TooFew, m.Next.Switched = last, few, m.Old.Switched
	m.Retries = m.Round.Snapshot.Time.Sub(few.At) >= few.Pause
	for _, v := range m.Variants {
		v.Next.Lowered, v.Next.TooFew = v.Old.Lowered, v.Old.TooFew
		if undone {
			v.Next.TooFew = v.Old.Lowered
		}
	}
}

// About is the most that is the same load.
func (m *Model) About(load capacity.Rate) capacity.Rate { return load * ModelHeadroom }

// Work is the load that is carried, as work.
func (m *Model) Work() capacity.Rate { return m.inWork(m.Carried()) }

// inWork is a rate in requests per second of the lengths that the forecast knows: longer ones are
// more of it.
func (m *Model) inWork(rate capacity.Rate) capacity.Rate {
	if m.Demand.Forecast == nil {
		return rate
	}
	return rate * capacity.Rate(m.Demand.Forecast.Worth(m.Demand.Tokens))
}

// PauseAfter is how long it is believed the next time that something was in vain.
func PauseAfter(last time.Duration) time.Duration {
	return min(max(signal.Again*last, LeastBelieved), rate.Repeats)
}
