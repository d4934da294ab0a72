package decision

import (
	"math"
	"time"
)

// zero lets a model sleep of which nothing was asked for its retention period, if it
// may, and reports whether it does; and keeps one replica of any other model. A replica
// that waits in vain for a node keeps nothing. LacksAny is set where no variant may have it.
func (r *round) zero(m *model, lacksAny bool) (idle bool) {
	rests := r.policy.IdleOf(m.key).Enabled
	switch {
	case rests && r.rest(m):
		return true
	case m.alive() > 0:
		r.stays(m, rests)
	case rests && (m.total() == 0 || r.rested(m)) && !m.called():
		r.sleepsOn(m)
	case !lacksAny:
		r.keepOne(m)
	}
	return false
}

// sleepsOn records that the model still sleeps, and whether anything would wake it.
func (r *round) sleepsOn(m *model) {
	unseen := r.unseen(m)
	m.each(func(v *variant) {
		v.note(StageZero, ReasonIdle, "the model sleeps: no requests")
		if unseen != "" {
			v.fact(ReasonMetricsPartial, "the model sleeps and a request may not wake it: %s", unseen)
		}
	})
}

// stays records that the model keeps its replicas, and why where only its gateway is in
// the way of its sleep.
func (r *round) stays(m *model, rests bool) {
	unseen := r.unseen(m)
	m.each(func(v *variant) {
		if !rests || unseen == "" || v.target <= v.policy.Min || r.quiet(m) < r.policy.IdleOf(m.key).Retention {
			v.note(StageZero, ReasonSteady, "the model has a replica")
			return
		}
		v.fact(ReasonMetricsPartial, "no requests, but nothing would wake the model, so it keeps its replica: %s", unseen)
		v.note(StageZero, ReasonMetricsPartial, "nothing would wake the model: %s", unseen)
	})
}

// gateway keeps when the model's gateway showed its queue, and when it was last not known
// what waits there; samples that are ageing are no gap yet.
func (r *round) gateway(m *model) Gateway {
	g := m.old.Gateway
	if r.age(m.in.Queue) == ageFresh {
		g.Queued = r.snapshot.Time
	}
	if known := r.usable(m.in.Queue) || !m.in.Queue.Present && r.usable(m.in.Arrival); !known && r.unseen(m) != "" {
		g.Unseen = r.snapshot.Time
	}
	return g
}

// unseen says why nobody knows what waits for the model, or would wake it; empty means
// that its gateway tells. A gateway has no queue for a model before its first request: then
// one that shows others of its namespace will do, unless it showed this one within the
// retention period: after that it may have begun anew.
func (r *round) unseen(m *model) string {
	queue, arrival := r.age(m.in.Queue), r.age(m.in.Arrival)
	last := m.old.Gateway.Queued
	switch {
	case m.in.Queue.Present && queue != ageFresh, m.in.Arrival.Present && arrival != ageFresh:
		return "the gateway's metrics are stale"
	case queue == ageFresh, arrival == ageFresh && !last.IsZero():
		return ""
	case arrival == ageFresh:
		return "the gateway has no queue metric: flow control is off"
	case r.snapshot.Time.Sub(last) < r.policy.IdleOf(m.key).Retention:
		return "the gateway no longer has a queue metric for it"
	case r.queued[m.key.Namespace]:
		return ""
	}
	return "no gateway has a queue metric for it"
}

// queues are the namespaces of the models of which a gateway shows the queue.
func (r *round) queues() map[string]bool {
	queued := map[string]bool{}
	for _, m := range r.models {
		if r.age(m.in.Queue) == ageFresh {
			queued[m.key.Namespace] = true
		}
	}
	return queued
}

// quiet is how long nothing was asked of the model.
func (r *round) quiet(m *model) time.Duration { return r.snapshot.Time.Sub(m.next.Active) }

// activity is when something was last asked of the model. What is not known is work: no
// sample says that a replica that nobody sees is idle.
func (r *round) activity(m *model) time.Time {
	if m.called() || r.works(m) {
		return r.snapshot.Time
	}
	return r.since(m.old.Active)
}

// called reports whether requests wait for the model or reach its gateway.
func (m *model) called() bool { return m.demand.backlog > 0 || m.demand.arrives }

// works reports whether a replica of the model starts, or may have something to do.
func (r *round) works(m *model) bool {
	// Where none serves, only the gateway can tell that nothing is asked.
	tells := r.age(m.in.Queue) == ageFresh || r.age(m.in.Arrival) == ageFresh
	busy := m.evidence != evidenceFull || !tells && !m.asleep() && m.ready() == 0
	for _, v := range m.variants {
		// Nobody knows what it did while no round looked. One that starts was asked for; it has a
		// grace until it serves.
		busy = busy || v.anew || v.fleet.starts() || len(v.in.Replicas) < v.in.Ready
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			if v.load.of[i] == dead {
				continue
			}
			for _, s := range []Sample{p.Running, p.Waiting} {
				busy = busy || r.age(s) != ageFresh || s.Value > 0
			}
			// Some servers have no counter of requests before the first one.
			busy = busy || p.Served.Present && (r.age(p.Served) != ageFresh || p.Served.Value > 0)
		}
	}
	return busy
}

// rest gives up all replicas beyond the minima of a model of which nothing was asked for so
// long, and reports whether there were any.
func (r *round) rest(m *model) bool {
	if !r.rested(m) {
		return false
	}
	rests := false
	m.each(func(v *variant) {
		if v.target > v.policy.Min {
			v.step(StageZero, v.policy.Min, ReasonIdle, "no requests for %s", r.quiet(m).Round(time.Second))
			rests = true
		}
	})
	return rests
}

// rested reports whether it is known that nothing was asked of the model for so long.
func (r *round) rested(m *model) bool {
	retention := r.policy.IdleOf(m.key).Retention
	return r.quiet(m) >= retention && r.snapshot.Time.Sub(m.next.Gateway.Unseen) >= retention && r.unseen(m) == ""
}

// alive is the number of replicas that do not wait in vain for a node, nor are on one that is
// not ready, nor dead.
func (m *model) alive() int {
	return m.count(func(v *variant) int {
		return max(0, min(v.target, max(v.target, v.in.Current)-v.fleet.unplaced()-v.hopeless()-v.fleet.count[stateNodeDown]-v.load.dead))
	})
}

// keepOne gives the model one replica, and reports whether any variant may have it. Where it is
// known what one serves, growth adds to it what those that wait need.
func (r *round) keepOne(m *model) bool {
	none := m.total() == 0
	keep := r.keeper(m, none)
	m.each(func(v *variant) {
		switch {
		case keep == nil && !none:
			v.note(StageZero, ReasonSteady, "no other variant fits")
		case keep == nil:
			detail := "no replica fits or is allowed"
			if why := r.crowded(v); why != "" {
				detail += "; " + why
			}
			v.note(StageZero, ReasonNoSlots, "%s", detail)
			v.settle(ReasonNoSlots, detail)
		case v != keep:
			v.note(StageZero, ReasonSteady, "%s keeps the model's replica", keep.in.Name)
			if v.price < keep.price && r.full(v) {
				v.fact(ReasonNoSlots, "%s", r.crowded(v))
			}
		case m.called():
			v.step(StageZero, v.target+1, ReasonWake, "%s, no replica serves", plural(int(math.Round(m.demand.backlog)), "request waits", "requests wait"))
		default:
			v.step(StageZero, v.target+1, ReasonKeepOne, "one replica is kept, on the cheapest variant that fits")
		}
	})
	return keep != nil
}

// keeper is the variant with the least price of which one more replica fits; one that is
// left alone or cannot keep the promise only when there is no other; in a cluster that
// grows and if anything will do, the cheapest of all when none fits. Beside others scaleUp has
// to allow it. Nil means none.
func (r *round) keeper(m *model, anything bool) *variant {
	var best *variant
	least := 0
	m.each(func(v *variant) {
		fits := v.oneAtATime(1) > 0 && !r.full(v)
		forbidden := v.policy.Up.Select == SelectDisabled || v.bounded(v.target+1) == v.target || v.target > 0 && r.mayAdd(v) == 0
		if forbidden || !fits && (!anything || r.policy.Limited || r.allowed(v) == 0) || v.fleet.paused > 0 && !anything {
			return
		}
		rank := 0
		for i, worse := range []bool{v.rate.unfit(), v.fleet.paused > 0, !fits} {
			if worse {
				rank |= 1 << i
			}
		}
		if best == nil || rank < least || rank == least && v.price < best.price {
			best, least = v, rank
		}
	})
	if best != nil && r.unknown(best) == nil {
		r.take(best, 1)
	}
	return best
}
