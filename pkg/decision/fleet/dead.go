package fleet

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

const (
	// DeadWindows is for how many metrics windows nothing may happen to requests that wait, none of
	// which is in service, before nobody is taken to serve them.
	DeadWindows = 3
	// clientPatience is the same where some are in service: OpenAI's clients give up after it.
	clientPatience = 10 * time.Minute
	// cacheStands is how much the used share of a cache may change in which nothing happens.
	cacheStands = 0.01
)

// StuckOf are the replicas of the variant whose requests wait while nothing happens to them, since
// when that is known.
func (v *Variant) StuckOf(m *Model) (stuck []contract.Stuck) {
	before := make(map[string]contract.Stuck, len(v.Old.Stuck))
	for _, s := range v.Old.Stuck {
		before[s.Name] = s
	}
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		if !v.stands(m, p) {
			continue
		}
		// SGLang counts no request as running while it reads the first prompt of many tokens, which
		// fills its cache.
		since, used := before[p.Name], v.Round.Value(p.KVUse)
		if math.Abs(used-since.KVUse) > cacheStands {
			since = contract.Stuck{KVUse: used}
		}
		stuck = append(stuck, contract.Stuck{Name: p.Name, Since: v.Round.Since(since.Since), Running: p.Running.Value > 0, KVUse: since.KVUse})
	}
	return stuck
}

// stands reports whether the replica has requests and nothing happened to any within the metrics
// window: none was completed, none got a token, and either none is in service, or none came, and
// while clients wait more than chance would have been completed. A server that never completed any
// may not show how many it did (SGLang does not). Where none waits, one that writes a long answer
// tells no token until its end in some servers: its cache fills meanwhile, which must be shown.
func (v *Variant) stands(m *Model, p *contract.Replica) bool {
	if !v.Round.Fresh(p.Running, p.Waiting) || p.Served.Value > 0 || p.Waiting.Value+p.Running.Value == 0 || v.Round.Fledgling(p) ||
		v.Round.Age(p.TTFT) == signal.AgeFresh || v.Round.Age(p.ITL) == signal.AgeFresh || p.Waiting.Value == 0 && !v.Round.Usable(p.KVUse) {
		return false
	}
	if p.Running.Value == 0 && (!p.Served.Present || v.Round.Fresh(p.Served)) {
		return true
	}
	if !v.Round.Fresh(p.Served) {
		return false
	}
	if came := p.InFlightGrowth.Value * v.Round.Window(p).Seconds(); v.Round.AgeSigned(p.InFlightGrowth) != signal.AgeFresh || came >= 1 {
		return false
	}
	usual := v.Old.Curve.Rate(p.Running.Value, m.Old.Tokens.Shape, serving.Profile{})
	return !v.Old.Curve.Known() || float64(usual)*clientPatience.Seconds() > signal.SettledChance
}

// isDead reports whether nobody serves what waits in the replica, or for whom it would.
func isDead(r *signal.Round, s *contract.Stuck) bool {
	patience := DeadWindows * r.Policy.Window
	if s.Running {
		patience = max(patience, clientPatience)
	}
	return r.Snapshot.Time.Sub(s.Since) >= patience
}

// deadOf are the dead replicas by name.
func (v *Variant) deadOf() (names map[string]bool) {
	for i := range v.Next.Stuck {
		if s := &v.Next.Stuck[i]; isDead(v.Round, s) {
			if names == nil {
				names = map[string]bool{}
			}
			names[s.Name] = true
		}
	}
	return names
}

// TellDead names the replicas whose requests nobody serves.
func (v *Variant) TellDead() {
	if v.Load.Dead == 0 {
		return
	}
	var names []string
	stuck := 0.0
	for i, c := range v.Load.Of {
		if c == Dead {
			p := &v.In.Replicas[i]
			names, stuck = append(names, p.Name), stuck+p.Waiting.Value+p.Running.Value
		}
	}
	slices.Sort(names)
	detail := contract.SaysRequestsStand.With(stuck, len(names), v.In.Ready, names)
	v.Note(contract.StageSupply, contract.ReasonQueueDead, detail)
	v.Fact(contract.ReasonQueueDead, detail)
}

// Working is how many of so many ready replicas of the variant do something. Where the choice is
// ours those go first that do not; else nobody knows which ones stay.
func (v *Variant) Working(n int) int {
	gone := 0
	if v.Odd.First {
		gone = max(0, v.In.Ready-n)
	}
	return max(0, n-max(0, v.Load.Dead-gone))
}
