package decision

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// class is how loaded a serving replica is. There is one rule of freshness: what is fresh
// or ageing may say that a replica is saturated, and only what is fresh that it is not.
type class uint8

const (
	// unsaturated: it is below both thresholds. The zero class is unknown: too little of the
	// load is known, or fresh.
	unsaturated class = iota + 1
	// saturated: it is at or above a threshold.
	saturated
	// dead: requests wait in it to which nothing happens. It serves nothing, and what waits in it
	// is nobody's demand.
	dead
)

// load is how loaded the serving replicas of a variant, or of a model, are.
type load struct {
	// of are the classes of Variant.Replicas by index; a model has none.
	of []class
	// fresh is how many show fresh metrics of all that says how loaded one is, and newest the age
	// of the newest one of any.
	fresh  int
	newest age
	// saturated and unsaturated are how many are known to be so, hanging how many complete
	// nothing, and silent how many of a variant show nothing fresh of what they serve where no
	// gateway counts the arrivals.
	saturated, unsaturated, hanging, silent int
	// dead is how many of those that hang are dead.
	dead int
	// hangs is which of them hang, by index; a model, and a variant of which none does, has none.
	hangs []bool
	// saturation and queue are the sums, for a model the means, of the used share of what
	// limits a replica and of the requests that wait in it, over those that are not
	// saturated; sawSaturation and sawQueue are over how many.
	saturation, queue       float64
	sawSaturation, sawQueue int
}

// loadOf classifies the variant's serving replicas.
func (r *round) loadOf(m *model, v *variant) load {
	n, t := len(v.in.Replicas), m.saturation
	gone := r.deadOf(v)
	v.next.Batch, v.next.Cache = r.batchOf(v), r.cacheOf(v)
	l := load{of: make([]class, n), newest: ageAbsent}
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		used, knowsUsed := r.saturation(v, p)
		queue, knowsQueue := p.Waiting.Value, r.usable(p.Waiting)
		oldest, newest := ages(r.readings(v, p))
		if l.newest = min(l.newest, newest); oldest == ageFresh {
			l.fresh++
		}
		if gone[p.Name] || r.hangs(m, v, p) {
			if l.hanging++; l.hangs == nil {
				l.hangs = make([]bool, n)
			}
			l.hangs[i] = true
		}
		switch {
		case gone[p.Name]:
			l.of[i] = dead
			l.dead++
			continue
		case v.odd.at(i) && oldest == ageFresh && (!knowsUsed || used < t.KVCacheThreshold) && queue < t.QueueLengthThreshold:
			l.of[i] = unsaturated
			l.unsaturated++
			continue
		case v.odd.at(i):
			// It may be full of what others would have served long ago, which says nothing of them.
			continue
		case knowsUsed && used >= t.KVCacheThreshold, knowsQueue && queue >= t.QueueLengthThreshold:
			l.of[i] = saturated
			l.saturated++
			continue
		case oldest == ageFresh:
			l.of[i] = unsaturated
			l.unsaturated++
		}
		if knowsUsed {
			l.sawSaturation++
			l.saturation += used
		}
		if knowsQueue {
			l.sawQueue++
			l.queue += queue
		}
	}
	return l
}

// saturation is the used share of what limits the replica: its KV cache or its batch.
func (r *round) saturation(v *variant, p *Replica) (share float64, known bool) {
	if r.ageOfShare(p.KVUse) <= ageAgeing {
		share, known = p.KVUse.Value, true
	}
	if b := v.batchLimit(); b > 0 && r.usable(p.Running) {
		share, known = max(share, p.Running.Value/float64(b)), true
	}
	return share, known
}

// hangs reports whether the replica has work, and requests that wait, and completed none of
// it within the metrics window although more than chance would have been.
func (r *round) hangs(m *model, v *variant, p *Replica) bool {
	if !r.fresh(p.Served, p.Running, p.Waiting) || p.Served.Value > 0 || p.Running.Value == 0 || p.Waiting.Value == 0 || r.fledgling(p) {
		return false
	}
	usual, known := v.old.Curve.Rate(p.Running.Value, m.old.Tokens.Shape, serving.Profile{}), v.old.Curve.Known()
	if !known && m.old.Forecast.Known() {
		// By Little's law it completes as large a part of what arrives as it has in service.
		running := m.sum(func(p *Replica) float64 { return r.value(p.Running) })
		mean, _ := m.old.Forecast.Moments()
		usual, known = capacity.Rate(mean/m.old.Forecast.Worth(m.old.Tokens.Shape)*p.Running.Value/running), true
	}
	return !known || float64(usual)*r.window(p).Seconds() > settledChance
}

// hung reports whether the replica of that index hangs.
func (l *load) hung(i int) bool { return l.hangs != nil && l.hangs[i] }

// loadOfAll is the load of all replicas of the model.
func (m *model) loadOfAll() load {
	l := load{newest: ageAbsent}
	for _, v := range m.variants {
		l.fresh += v.load.fresh
		l.newest = min(l.newest, v.load.newest)
		l.saturated += v.load.saturated
		l.hanging += v.load.hanging
		l.dead += v.load.dead
		l.unsaturated += v.load.unsaturated
		l.saturation += v.load.saturation
		l.queue += v.load.queue
		l.sawSaturation += v.load.sawSaturation
		l.sawQueue += v.load.sawQueue
	}
	l.saturation /= float64(max(1, l.sawSaturation))
	l.queue /= float64(max(1, l.sawQueue))
	return l
}

// aside says which replicas are left out of the mean of the load, so that nobody holds it against
// the sum of all.
func (m *model) aside() string {
	text := ""
	if n := m.load.saturated; n > 0 {
		text = fmt.Sprintf(", beside %d that %s saturated", n, map[bool]string{true: "is", false: "are"}[n == 1])
	}
	if n := m.load.dead; n > 0 {
		text += fmt.Sprintf(", beside %d whose queue nobody serves", n)
	}
	return text
}

// trigger holds the load against the published triggers: of the replicas that are not
// saturated the mean spare must not fall below them.
func (m *model) trigger(backlog float64) (fired bool, detail string) {
	l, t := &m.load, m.saturation
	seen := l.sawSaturation > 0 || l.sawQueue > 0
	switch {
	case l.saturated > 0 && !seen:
		return true, "all serving replicas are saturated"
	case l.sawSaturation > 0 && t.KVCacheThreshold-l.saturation < t.KVSpareTrigger:
		return true, fmt.Sprintf("replicas are %.0f %% full, above %.0f %%", 100*l.saturation, 100*(t.KVCacheThreshold-t.KVSpareTrigger)) + m.aside()
	case l.sawQueue > 0 && t.QueueLengthThreshold-l.queue < t.QueueSpareTrigger:
		return true, fmt.Sprintf("%.1f requests wait per replica, more than %.1f", l.queue, t.QueueLengthThreshold-t.QueueSpareTrigger) + m.aside()
	case m.ready() == l.dead && backlog > 0:
		return true, fmt.Sprintf("%.0f requests wait, no replica serves", backlog)
	case !seen && l.dead > 0:
		return false, "no replica serves what waits in it"
	case !seen:
		return false, "no load metrics of the replicas"
	}
	return false, fmt.Sprintf("replicas are %.0f %% full, %.1f requests wait per replica", 100*l.saturation, l.queue) + m.aside()
}
