package decision

import "fmt"

// class is how loaded a serving replica is. There is one rule of freshness: what is fresh
// or ageing may say that a replica is saturated, and only what is fresh that it is not.
type class uint8

const (
	// unknownLoad: too little of it is known, or fresh.
	unknownLoad class = iota
	// unsaturated: it is below both thresholds.
	unsaturated
	// saturated: it is at or above a threshold.
	saturated
)

// load is how loaded the serving replicas of a variant, or of a model, are.
type load struct {
	// of are the classes of Variant.Replicas, by index; a model has none.
	of []class
	// saturated and unsaturated are how many are known to be so.
	saturated, unsaturated int
	// full and queue are the sums, for a model the means, of the used share of what limits
	// a replica and of the requests that wait in it, over those that are not saturated;
	// seenFull and seenQueue are over how many.
	full, queue         float64
	seenFull, seenQueue int
	// hanging is how many complete nothing.
	hanging int
}

// loadOf classifies the variant's serving replicas. How full one is, is the used share of
// the KV cache or of the batch limit, whichever is more.
func (r *round) loadOf(v *variant, t Saturation) load {
	l := load{of: make([]class, len(v.in.Replicas))}
	if !v.exists() {
		return l
	}
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		full, knowsFull := v.full(r, p)
		queue, knowsQueue := p.Waiting.Value, r.usable(p.Waiting)
		if r.hangs(p) {
			l.hanging++
		}
		switch {
		case knowsFull && full >= t.KVCacheThreshold, knowsQueue && queue >= t.QueueLengthThreshold:
			l.of[i] = saturated
			l.saturated++
			continue
		case r.age(p.KVUse) == ageFresh && r.age(p.Waiting) == ageFresh && (v.batchLimit() == 0 || r.age(p.Running) == ageFresh):
			l.of[i] = unsaturated
			l.unsaturated++
		}
		if knowsFull {
			l.seenFull++
			l.full += full
		}
		if knowsQueue {
			l.seenQueue++
			l.queue += queue
		}
	}
	return l
}

// hangs reports whether the replica has work, and requests that wait, and completed none of
// it within the metrics window.
func (r *round) hangs(p *Replica) bool {
	for _, s := range []Sample{p.Served, p.Running, p.Waiting} {
		if r.age(s) != ageFresh {
			return false
		}
	}
	return p.Served.Value == 0 && p.Running.Value > 0 && p.Waiting.Value > 0 && !r.fledgling(p)
}

// loadOfAll is the load of all replicas of the model.
func (m *model) loadOfAll() load {
	var l load
	for _, v := range m.variants {
		l.saturated += v.load.saturated
		l.unsaturated += v.load.unsaturated
		l.full += v.load.full
		l.queue += v.load.queue
		l.seenFull += v.load.seenFull
		l.seenQueue += v.load.seenQueue
	}
	l.full /= float64(max(1, l.seenFull))
	l.queue /= float64(max(1, l.seenQueue))
	return l
}

// trigger holds the load against the published triggers: of the replicas that are not
// saturated the mean spare must not fall below them.
func (m *model) trigger(backlog float64) (fired bool, detail string) {
	l, t := &m.load, m.saturation
	fullest, longest := t.KVCacheThreshold-t.KVSpareTrigger, t.QueueLengthThreshold-t.QueueSpareTrigger
	seen := l.seenFull > 0 || l.seenQueue > 0
	switch {
	case l.saturated > 0 && !seen:
		return true, "every serving replica is saturated"
	case l.seenFull > 0 && t.KVCacheThreshold-l.full < t.KVSpareTrigger:
		return true, fmt.Sprintf("replicas are %.0f %% full, above %.0f %%", 100*l.full, 100*fullest)
	case l.seenQueue > 0 && t.QueueLengthThreshold-l.queue < t.QueueSpareTrigger:
		return true, fmt.Sprintf("%.1f requests wait per replica, more than %.1f", l.queue, longest)
	case m.ready() == 0 && backlog > 0:
		return true, fmt.Sprintf("%.0f requests wait and no replica serves", backlog)
	case !seen:
		return false, "no replica shows its load"
	}
	return false, fmt.Sprintf("replicas are %.0f %% full and %.1f requests wait per replica", 100*l.full, l.queue)
}

// ready is the number of replicas that serve.
func (m *model) ready() int {
	n := 0
	for _, v := range m.variants {
		if v.exists() {
			n += v.in.Ready
		}
	}
	return n
}

// full is the used share of what limits the replica: its KV cache or its batch.
func (v *variant) full(r *round, p *Replica) (float64, bool) {
	full, known := 0.0, false
	if r.usable(p.KVUse) {
		full, known = p.KVUse.Value, true
	}
	if b := v.batchLimit(); b > 0 && r.usable(p.Running) {
		full, known = max(full, p.Running.Value/float64(b)), true
	}
	return full, known
}
