package need

import (
	"math"
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
	work := m.workSince(&last)
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

// workSince is the work that came since a scale-down. Where slow replicas went, clients who wait for
// answers have them sooner, and send more with no more in flight: that is none.
func (m *Model) workSince(last *contract.Lowered) capacity.Rate {
	if n := m.InFlight(); 0 < n && n <= last.InFlight*ModelHeadroom {
		return min(m.Work(), last.Load)
	}
	return m.Work()
}

// About is the most that is the same load: a little more, and where nobody knows what a replica
// serves, so that a trial is all that tells, as much more as chance explains.
func (m *Model) About(load capacity.Rate) capacity.Rate {
	most := load * ModelHeadroom
	if !m.Rated && m.Demand.Known {
		_, variance := m.Demand.Forecast.Moments()
		most = max(most, load+capacity.Rate(signal.SettledChance*math.Sqrt(variance)))
	}
	return most
}

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
