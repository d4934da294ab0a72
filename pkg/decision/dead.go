package decision

import (
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

const (
	// deadWindows is for how many metrics windows nothing may happen to requests that wait, none of
	// which is in service, before nobody is taken to serve them.
	deadWindows = 3
	// clientPatience is the same where some are in service: OpenAI's clients give up after it.
	clientPatience = 10 * time.Minute
	// cacheStands is how much the used share of a cache may change in which nothing happens.
	cacheStands = 0.01
	// mostNamed is how many replicas a text names.
	mostNamed = 3
)

// Stuck is a replica whose requests wait since so long without anything happening to them,
// whether some are in service there, and the used share of its cache since then.
type Stuck struct {
	Name    string
	Since   time.Time
	Running bool
	KVUse   float64
}

// stuckOf are the replicas of the variant whose requests wait while nothing happens to them, since
// when that is known.
func (r *round) stuckOf(m *model, v *variant) (stuck []Stuck) {
	before := make(map[string]Stuck, len(v.old.Stuck))
	for _, s := range v.old.Stuck {
		before[s.Name] = s
	}
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if !r.stands(m, v, p) {
			continue
		}
		// SGLang counts no request as running while it reads the first prompt of many tokens, which
		// fills its cache.
		since, used := before[p.Name], r.value(p.KVUse)
		if math.Abs(used-since.KVUse) > cacheStands {
			since = Stuck{KVUse: used}
		}
		stuck = append(stuck, Stuck{p.Name, r.since(since.Since), p.Running.Value > 0, since.KVUse})
	}
	return stuck
}

// stands reports whether the replica has requests and nothing happened to any within the metrics
// window: none was completed, none got a token, and either none is in service, or none came, and
// while clients wait more than chance would have been completed. A server that never completed any
// may not show how many it did (SGLang does not). Where none waits, one that writes a long answer
// tells no token until its end in some servers: its cache fills meanwhile, which must be shown.
func (r *round) stands(m *model, v *variant, p *Replica) bool {
	if !r.fresh(p.Running, p.Waiting) || p.Served.Value > 0 || p.Waiting.Value+p.Running.Value == 0 || r.fledgling(p) ||
		r.age(p.TTFT) == ageFresh || r.age(p.ITL) == ageFresh || p.Waiting.Value == 0 && !r.usable(p.KVUse) {
		return false
	}
	if p.Running.Value == 0 && (!p.Served.Present || r.fresh(p.Served)) {
		return true
	}
	if !r.fresh(p.Served) {
		return false
	}
	if came := p.InFlightGrowth.Value * r.window(p).Seconds(); r.ageSigned(p.InFlightGrowth) != ageFresh || came >= 1 {
		return false
	}
	usual := v.old.Curve.Rate(p.Running.Value, m.old.Tokens.Shape, serving.Profile{})
	return !v.old.Curve.Known() || float64(usual)*clientPatience.Seconds() > settledChance
}

// dead reports whether nobody serves what waits in the replica, or for whom it would.
func (r *round) dead(s *Stuck) bool {
	patience := deadWindows * r.policy.Window
	if s.Running {
		patience = max(patience, clientPatience)
	}
	return r.snapshot.Time.Sub(s.Since) >= patience
}

// deadOf are the dead replicas by name.
func (r *round) deadOf(v *variant) (names map[string]bool) {
	for i := range v.next.Stuck {
		if s := &v.next.Stuck[i]; r.dead(s) {
			if names == nil {
				names = map[string]bool{}
			}
			names[s.Name] = true
		}
	}
	return names
}

// StuckQueue is a gateway's queue from which nothing comes although replicas idle.
type StuckQueue struct {
	// Since is since when that is so, and zero while it is not; Queue is how many wait.
	Since time.Time
	Queue float64
}

// stuckQueue follows the model's queue in the gateway: nothing arrives, and of what waits nothing
// reaches replicas that have nothing else to do. While none serves, it stays what it was found to
// be until something arrives.
func (r *round) stuckQueue(m *model) StuckQueue {
	q, old := m.in.Queue, m.old.StuckQueue
	if r.age(q) != ageFresh {
		return old
	}
	grew := !old.Since.IsZero() && q.Value > old.Queue
	idle := m.ready() > 0 && m.evidence == evidenceFull && m.load.unsaturated > 0
	m.eachReplica(func(p *Replica) {
		idle = idle && r.value(p.Running)+r.value(p.Served) == 0
	})
	sleeps := m.ready() == 0 && r.deadQueue(&old)
	if q.Value == 0 || grew || r.value(m.in.Arrival) > 0 || !idle && !sleeps {
		return StuckQueue{}
	}
	return StuckQueue{Since: r.since(old.Since), Queue: q.Value}
}

// deadQueue reports whether nobody will serve what waits in the gateway.
func (r *round) deadQueue(q *StuckQueue) bool {
	return !q.Since.IsZero() && r.snapshot.Time.Sub(q.Since) >= deadWindows*r.policy.Window
}

// queue is how many requests wait for the model in the gateway that somebody may serve.
func (r *round) queue(m *model) float64 {
	if r.deadQueue(&m.next.StuckQueue) {
		return 0
	}
	return r.value(m.in.Queue)
}

// tellDeadQueue says that nobody will serve what waits in the gateway.
func (r *round) tellDeadQueue(m *model) {
	if q := &m.next.StuckQueue; r.deadQueue(q) {
		m.each(func(v *variant) {
			v.fact(ReasonQueueDead, "the gateway shows %s that it sends to no replica although some are idle and none arrives; they count as no demand",
				plural(int(math.Round(q.Queue)), "waiting request", "waiting requests"))
		})
	}
}

// tellDead names the replicas whose requests nobody serves.
func (v *variant) tellDead() {
	if v.load.dead == 0 {
		return
	}
	var names []string
	stuck := 0.0
	for i, c := range v.load.of {
		if c == dead {
			p := &v.in.Replicas[i]
			names, stuck = append(names, p.Name), stuck+p.Waiting.Value+p.Running.Value
		}
	}
	detail := fmt.Sprintf("nothing happens to %.0f requests in %d of %s, which count neither as demand nor as supply: %s",
		stuck, len(names), plural(v.in.Ready, "serving replica", "serving replicas"), fewOf(names))
	v.note(StageSupply, ReasonQueueDead, "%s", detail)
	v.fact(ReasonQueueDead, "%s", detail)
}

// working is how many of so many ready replicas of the variant do something. Where the choice is
// ours those go first that do not; else nobody knows which ones stay.
func (v *variant) working(n int) int {
	gone := 0
	if v.odd.first {
		gone = max(0, v.in.Ready-n)
	}
	return max(0, n-max(0, v.load.dead-gone))
}
