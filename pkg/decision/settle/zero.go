package settle

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// ToZero lets a model sleep of which nothing was asked for its retention period, if it
// may, and reports whether it does; and keeps one replica of any other model. A replica
// that waits in vain for a node keeps nothing. LacksAny is set where no variant may have it.
func ToZero(r *limit.Round, m *limit.Model, lacksAny bool) (idle bool) {
	rests := r.Policy.IdleOf(m.Key).Enabled
	switch {
	case rests && restModel(r, m):
		return true
	case m.Alive() > 0:
		staysAwake(r, m, rests)
	case rests && (m.Total() == 0 || isRested(r, m)) && !m.Called():
		sleepsOn(r, m)
	case !lacksAny:
		allocate.KeepOne(r, m, contract.StageZero)
	}
	return false
}

// sleepsOn records that the model still sleeps, and whether anything would wake it.
func sleepsOn(r *limit.Round, m *limit.Model) {
	unseen := unseenWhy(r, m)
	signal.Each(m.Variants, func(v *limit.Variant) {
		v.Note(contract.StageZero, contract.ReasonIdle, contract.SaysSleeps.With())
		if !unseen.None() {
			v.Fact(contract.ReasonMetricsPartial, contract.SaysSleepsUnseen.With(unseen))
		}
	})
}

// staysAwake records that the model keeps its replicas, and why where only its gateway is in
// the way of its sleep.
func staysAwake(r *limit.Round, m *limit.Model, rests bool) {
	unseen := unseenWhy(r, m)
	signal.Each(m.Variants, func(v *limit.Variant) {
		if !rests || unseen.None() || v.Target <= v.Policy.Min || quietFor(r, m) < r.Policy.IdleOf(m.Key).Retention {
			v.Note(contract.StageZero, contract.ReasonSteady, contract.SaysHasReplica.With())
			return
		}
		v.Fact(contract.ReasonMetricsPartial, contract.SaysStaysAwake.With(unseen))
		v.Note(contract.StageZero, contract.ReasonMetricsPartial, contract.SaysNothingWakes.With(unseen))
	})
}

// GatewayOf keeps when the model's gateway showed its queue, and when it was last not known
// what waits there; samples that are ageing are no gap yet.
func GatewayOf(r *limit.Round, m *limit.Model) contract.Gateway {
	g := m.Old.Gateway
	if r.Age(m.In.Queue) == signal.AgeFresh {
		g.Queued = r.Snapshot.Time
	}
	if known := r.Usable(m.In.Queue) || !m.In.Queue.Present && r.Usable(m.In.Arrival); !known && !unseenWhy(r, m).None() {
		g.Unseen = r.Snapshot.Time
	}
	return g
}

// unseenWhy says why nobody knows what waits for the model, or would wake it; nothing where
// its gateway tells. A gateway has no queue for a model before its first request: then
// one that shows others of its namespace will do, unless it showed this one within the
// retention period: after that it may have begun anew.
func unseenWhy(r *limit.Round, m *limit.Model) contract.Finding {
	queue, arrival := r.Age(m.In.Queue), r.Age(m.In.Arrival)
	last := m.Old.Gateway.Queued
	switch {
	case m.In.Queue.Present && queue != signal.AgeFresh, m.In.Arrival.Present && arrival != signal.AgeFresh:
		return contract.SaysGatewayStale.With()
	case queue == signal.AgeFresh, arrival == signal.AgeFresh && !last.IsZero():
		return contract.Finding{}
	case arrival == signal.AgeFresh:
		return contract.SaysNoFlowControl.With()
	case r.Snapshot.Time.Sub(last) < r.Policy.IdleOf(m.Key).Retention:
		return contract.SaysQueueGone.With()
	case r.Queued[m.Key.Namespace]:
		return contract.Finding{}
	}
	return contract.SaysNoQueue.With()
}

// QueuesOf are the namespaces of the models of which a gateway shows the queue.
func QueuesOf(r *limit.Round) map[string]bool {
	queued := map[string]bool{}
	for _, m := range r.Models {
		if r.Age(m.In.Queue) == signal.AgeFresh {
			queued[m.Key.Namespace] = true
		}
	}
	return queued
}

// quietFor is how long nothing was asked of the model.
func quietFor(r *limit.Round, m *limit.Model) time.Duration {
	return r.Snapshot.Time.Sub(m.Next.Active)
}

// ActivityOf is when something was last asked of the model. What is not known is work: no
// sample says that a replica that nobody sees is idle.
func ActivityOf(r *limit.Round, m *limit.Model) time.Time {
	if m.Called() || worksOn(r, m) {
		return r.Snapshot.Time
	}
	return r.Since(m.Old.Active)
}

// worksOn reports whether a replica of the model starts, or may have something to do.
func worksOn(r *limit.Round, m *limit.Model) bool {
	// Where none serves, only the gateway can tell that nothing is asked.
	tells := r.Age(m.In.Queue) == signal.AgeFresh || r.Age(m.In.Arrival) == signal.AgeFresh
	busy := m.Evidence != signal.EvidenceFull || !tells && !m.Asleep() && m.Ready() == 0
	for _, v := range m.Variants {
		// Nobody knows what it did while no round looked. One that starts was asked for; it has a
		// grace until it serves.
		busy = busy || v.Anew || v.Fleet.Starts() || len(v.In.Replicas) < v.In.Ready
		for i := range v.In.Replicas {
			p := &v.In.Replicas[i]
			if v.Load.Of[i] == fleet.Dead {
				continue
			}
			for _, s := range []contract.Sample{p.Running, p.Waiting} {
				busy = busy || r.Age(s) != signal.AgeFresh || s.Value > 0
			}
			// Some servers have no counter of requests before the first one.
			busy = busy || p.Served.Present && (r.Age(p.Served) != signal.AgeFresh || p.Served.Value > 0)
		}
	}
	return busy
}

// restModel gives up all replicas beyond the minima of a model of which nothing was asked for so
// long, and reports whether there were any.
func restModel(r *limit.Round, m *limit.Model) bool {
	if !isRested(r, m) {
		return false
	}
	rests := false
	signal.Each(m.Variants, func(v *limit.Variant) {
		if v.Target > v.Policy.Min {
			v.Step(contract.StageZero, v.Policy.Min, contract.ReasonIdle, contract.SaysIdle.With(quietFor(r, m).Round(time.Second)))
			rests = true
		}
	})
	return rests
}

// isRested reports whether it is known that nothing was asked of the model for so long.
func isRested(r *limit.Round, m *limit.Model) bool {
	retention := r.Policy.IdleOf(m.Key).Retention
	return quietFor(r, m) >= retention && r.Snapshot.Time.Sub(m.Next.Gateway.Unseen) >= retention && unseenWhy(r, m).None()
}
