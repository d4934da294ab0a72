package demand

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// stuckQueue follows the model's queue in the gateway: nothing arrives, and of what waits nothing
// reaches replicas that have nothing else to do. While none serves, it stays what it was found to
// be until something arrives.
func (m *Model) stuckQueue() contract.StuckQueue {
	q, old := m.In.Queue, m.Old.StuckQueue
	if m.Round.Age(q) != signal.AgeFresh {
		return old
	}
	grew := !old.Since.IsZero() && q.Value > old.Queue
	idle := m.Ready() > 0 && m.Evidence == signal.EvidenceFull && m.Load.Unsaturated > 0
	m.EachReplica(func(p *contract.Replica) {
		idle = idle && m.Round.Value(p.Running)+m.Round.Value(p.Served) == 0
	})
	sleeps := m.Ready() == 0 && deadQueue(m.Round, &old)
	if q.Value == 0 || grew || m.Round.Value(m.In.Arrival) > 0 || !idle && !sleeps {
		return contract.StuckQueue{}
	}
	return contract.StuckQueue{Since: m.Round.Since(old.Since), Queue: q.Value}
}

// deadQueue reports whether nobody will serve what waits in the gateway.
func deadQueue(r *signal.Round, q *contract.StuckQueue) bool {
	return !q.Since.IsZero() && r.Snapshot.Time.Sub(q.Since) >= fleet.DeadWindows*r.Policy.Window
}

// queue is how many requests wait for the model in the gateway that somebody may serve.
func (m *Model) queue() float64 {
	if deadQueue(m.Round, &m.Next.StuckQueue) {
		return 0
	}
	return m.Round.Value(m.In.Queue)
}

// TellDeadQueue says that nobody will serve what waits in the gateway.
func (m *Model) TellDeadQueue() {
	if q := &m.Next.StuckQueue; deadQueue(m.Round, q) {
		signal.Each(m.Variants, func(v *fleet.Variant) {
			v.Fact(contract.ReasonQueueDead, contract.SaysQueueStands.With(int(math.Round(q.Queue))))
		})
	}
}
