package decision

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// leastBelieved is how long it is believed at first that replicas were too few. What slows servers
// down for a while is over by then, or what was learned has caught up with it.
const leastBelieved = 20 * time.Minute

// judgeLowered keeps the last scale-down in mind, and what of one before was too few; and
// notes that what the last one left does not suffice although no more load came than it was
// for, and all of them serve: whatever says later that as many suffice is wrong, of the same
// servers and the same promise. A queue is no excuse: what waited when they went is reckoned with.
func (r *round) judgeLowered(m *model, n *need) {
	last, few := m.old.Lowered, m.old.TooFew
	work := r.workSince(m, &last)
	last.Most = max(last.Most, work)
	undone := n.want == wantMore && (n.triggered || !last.Short) && m.evidence == evidenceFull && m.load.hanging == 0 && r.began(m) == 0 && last.Most <= m.about(last.Load)
	for _, v := range m.variants {
		undone = undone && v.fleet.count[statePending] == 0 && v.in.Ready <= v.old.Lowered
	}
	if undone {
		few = TooFew{At: r.snapshot.Time, Pause: pauseAfter(few.Pause), Load: work, SLO: m.promise.SLO}
		if n.queued > 0 {
			// What waits may be of the most that came, however little does now.
			few.Load = last.Most
		}
		last = Lowered{}
	}
	other := few.SLO != m.promise.SLO || slices.ContainsFunc(m.variants, (*variant).rolling)
	if other || r.snapshot.Time.Sub(few.At) >= max(repeats, again*few.Pause) {
		few = TooFew{}
	}
	m.next.Lowered, m.next.TooFew = last, few
	m.retries = r.snapshot.Time.Sub(few.At) >= few.Pause
	for _, v := range m.variants {
		v.next.Lowered, v.next.TooFew = v.old.Lowered, v.old.TooFew
		if undone {
			v.next.TooFew = v.old.Lowered
		}
	}
}

// workSince is the work that came since a scale-down. Where slow replicas went, clients who wait for
// answers have them sooner, and send more with no more in flight: that is none.
func (r *round) workSince(m *model, last *Lowered) capacity.Rate {
	if n := r.inFlight(m); 0 < n && n <= last.InFlight*modelHeadroom {
		return min(m.work(), last.Load)
	}
	return m.work()
}

// lower keeps in mind to what the model was lowered, unless a replica hangs, or goes for another
// model's sake or to a lower maximum: that tells nothing of those that stay.
func (r *round) lower(m *model, giving map[*variant][]string) {
	if !slices.ContainsFunc(m.variants, func(v *variant) bool { return v.target < min(v.in.Current, v.in.Ready) }) {
		return
	}
	now := Lowered{}
	taken := slices.ContainsFunc(m.variants, func(v *variant) bool { return len(giving[v]) > 0 || v.bounded(v.in.Current) < v.in.Current })
	if m.load.hanging == 0 && !taken {
		r.judgeSwitch(m)
		now = Lowered{Load: m.work(), InFlight: r.inFlight(m), Short: m.need.want == wantMore}
	}
	m.leave(now, func(v *variant) int { return v.target })
}

// judgeSwitch notes that replicas go which a switch had started for about this load, although all
// of these serve: they showed to serve less than they were taken to.
func (r *round) judgeSwitch(m *model) {
	came, gone, last := true, false, m.next.Lowered
	for _, v := range m.variants {
		came, gone = came && v.in.Ready >= v.next.Lowered, gone || v.target < v.next.Lowered
	}
	if last.Until.IsZero() || !came || !gone || !near(float64(m.work()), float64(last.Load), settledWithin) {
		return
	}
	m.next.TooFew = TooFew{At: r.snapshot.Time, Pause: pauseAfter(m.next.TooFew.Pause), Load: min(m.work(), last.Load), SLO: m.promise.SLO}
	for _, v := range m.variants {
		v.next.TooFew = v.next.Lowered
	}
}

// leave keeps in mind that so many replicas of each variant are to be left.
func (m *model) leave(lowered Lowered, replicas func(*variant) int) {
	m.next.Lowered = lowered
	for _, v := range m.variants {
		v.next.Lowered = replicas(v)
	}
}

// tooFew reports whether so many replicas of each variant are no more than what a
// scale-down or a switch left in vain, for about the same load or more.
func (m *model) tooFew(replicas func(*variant) int) bool {
	few := &m.next.TooFew
	return few.Load > 0 && !m.retries && m.about(m.work()) >= few.Load &&
		!slices.ContainsFunc(m.variants, func(v *variant) bool { return replicas(v) > v.next.TooFew })
}

// about is the most that is the same load: a little more, and where nobody knows what a replica
// serves, so that a trial is all that tells, as much more as chance explains.
func (m *model) about(load capacity.Rate) capacity.Rate {
	most := load * modelHeadroom
	if !m.rated && m.demand.known {
		_, variance := m.demand.forecast.Moments()
		most = max(most, load+capacity.Rate(settledChance*math.Sqrt(variance)))
	}
	return most
}

// work is the load that is carried, as work.
func (m *model) work() capacity.Rate { return m.inWork(m.carried()) }

// inWork is a rate in requests per second of the lengths that the forecast knows: longer ones are
// more of it.
func (m *model) inWork(rate capacity.Rate) capacity.Rate {
	if m.demand.forecast == nil {
		return rate
	}
	return rate * capacity.Rate(m.demand.forecast.Worth(m.demand.tokens))
}
