package fleet

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Class is how loaded a serving replica is. There is one rule of freshness: what is fresh
// or ageing may say that a replica is saturated, and only what is fresh that it is not.
type Class uint8

// The classes of a replica.
const (
	// Unsaturated: it is below both thresholds. The zero class is unknown: too little of the
	// load is known, or fresh.
	Unsaturated Class = iota + 1
	// Saturated: it is at or above a threshold.
	Saturated
	// Dead: requests wait in it to which nothing happens. It serves nothing, and what waits in it
	// is nobody's demand.
	Dead
)

// Load is how loaded the serving replicas of a variant, or of a model, are.
type Load struct {
	// Of are the classes of Variant.Replicas by index; a model has none.
	Of []Class
	// fresh is how many show fresh metrics of all that says how loaded one is, and newest the age
	// of the newest one of any.
	fresh  int
	newest signal.Age
	// Saturated and unsaturated are how many are known to be so, hanging how many complete
	// nothing, and silent how many of a variant show nothing fresh of what they serve where no
	// gateway counts the arrivals.
	Saturated, Unsaturated, Hanging, Silent int
	// Dead is how many of those that hang are dead.
	Dead int
	// hangs is which of them hang, by index; a model, and a variant of which none does, has none.
	hangs []bool
	// Saturation and queue are the sums, for a model the means, of the used share of what
	// limits a replica and of the requests that wait in it, over those that are not
	// saturated; sawSaturation and sawQueue are over how many.
	Saturation, Queue       float64
	SawSaturation, SawQueue int
}

// LoadOf classifies the variant's serving replicas.
func (v *Variant) LoadOf(m *Model) Load {
	n, t := len(v.In.Replicas), m.Saturation
	gone := v.deadOf()
	v.Next.Batch, v.Next.Cache = v.BatchOf(), v.cacheOf()
	l := Load{Of: make([]Class, n), newest: signal.AgeAbsent}
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		used, knowsUsed := v.Saturation(p)
		queue, knowsQueue := p.Waiting.Value, v.Round.Usable(p.Waiting)
		oldest, newest := ages(v.readings(p))
		if l.newest = min(l.newest, newest); oldest == signal.AgeFresh {
			l.fresh++
		}
		if gone[p.Name] || v.hangs(m, p) {
			if l.Hanging++; l.hangs == nil {
				l.hangs = make([]bool, n)
			}
			l.hangs[i] = true
		}
		switch {
		case gone[p.Name]:
			l.Of[i] = Dead
			l.Dead++
			continue
		case v.Odd.At(i) && oldest == signal.AgeFresh && (!knowsUsed || used < t.KVCacheThreshold) && queue < t.QueueLengthThreshold:
			l.Of[i] = Unsaturated
			l.Unsaturated++
			continue
		case v.Odd.At(i):
			// It may be full of what others would have served long ago, which says nothing of them.
			continue
		case knowsUsed && used >= t.KVCacheThreshold, knowsQueue && queue >= t.QueueLengthThreshold:
			l.Of[i] = Saturated
			l.Saturated++
			continue
		case oldest == signal.AgeFresh:
			l.Of[i] = Unsaturated
			l.Unsaturated++
		}
		if knowsUsed {
			l.SawSaturation++
			l.Saturation += used
		}
		if knowsQueue {
			l.SawQueue++
			l.Queue += queue
		}
	}
	return l
}

// Saturation is the used share of what limits the replica: its KV cache or its batch.
func (v *Variant) Saturation(p *contract.Replica) (share float64, known bool) {
	if v.Round.AgeOfShare(p.KVUse) <= signal.AgeAgeing {
		share, known = p.KVUse.Value, true
	}
	if b := v.BatchLimit(); b > 0 && v.Round.Usable(p.Running) {
		share, known = max(share, p.Running.Value/float64(b)), true
	}
	return share, known
}

// hangs reports whether the replica has work, and requests that wait, and completed none of
// it within the metrics window although more than chance would have been.
func (v *Variant) hangs(m *Model, p *contract.Replica) bool {
	if !v.Round.Fresh(p.Served, p.Running, p.Waiting) || p.Served.Value > 0 || p.Running.Value == 0 || p.Waiting.Value == 0 || v.Round.Fledgling(p) {
		return false
	}
	usual, known := v.Old.Curve.Rate(p.Running.Value, m.Old.Tokens.Shape, serving.Profile{}), v.Old.Curve.Known()
	if !known && m.Old.Forecast.Known() {
		// By Little's law it completes as large a part of what arrives as it has in service.
		running := m.Sum(func(p *contract.Replica) float64 { return v.Round.Value(p.Running) })
		mean, _ := m.Old.Forecast.Moments()
		usual, known = capacity.Rate(mean/m.Old.Forecast.Worth(m.Old.Tokens.Shape)*p.Running.Value/running), true
	}
	return !known || float64(usual)*v.Round.Window(p).Seconds() > signal.SettledChance
}

// Hung reports whether the replica of that index hangs.
func (l *Load) Hung(i int) bool { return l.hangs != nil && l.hangs[i] }

// LoadOfAll is the load of all replicas of the model.
func (m *Model) LoadOfAll() Load {
	l := Load{newest: signal.AgeAbsent}
	for _, v := range m.Variants {
		l.fresh += v.Load.fresh
		l.newest = min(l.newest, v.Load.newest)
		l.Saturated += v.Load.Saturated
		l.Hanging += v.Load.Hanging
		l.Dead += v.Load.Dead
		l.Unsaturated += v.Load.Unsaturated
		l.Saturation += v.Load.Saturation
		l.Queue += v.Load.Queue
		l.SawSaturation += v.Load.SawSaturation
		l.SawQueue += v.Load.SawQueue
	}
	l.Saturation /= float64(max(1, l.SawSaturation))
	l.Queue /= float64(max(1, l.SawQueue))
	return l
}

// Trigger holds the load against the published triggers: of the replicas that are not
// saturated the mean spare must not fall below them.
func (m *Model) Trigger(backlog float64) (fired bool, detail contract.Finding) {
	l, t := &m.Load, m.Saturation
	seen := l.SawSaturation > 0 || l.SawQueue > 0
	switch {
	case l.Saturated > 0 && !seen:
		return true, contract.SaysAllSaturated.With()
	case l.SawSaturation > 0 && t.KVCacheThreshold-l.Saturation < t.KVSpareTrigger:
		return true, contract.SaysTooFull.With(contract.Share(l.Saturation), contract.Share(t.KVCacheThreshold-t.KVSpareTrigger), l.Saturated, l.Dead)
	case l.SawQueue > 0 && t.QueueLengthThreshold-l.Queue < t.QueueSpareTrigger:
		return true, contract.SaysTooManyWait.With(l.Queue, t.QueueLengthThreshold-t.QueueSpareTrigger, l.Saturated, l.Dead)
	case m.Ready() == l.Dead && backlog > 0:
		return true, contract.SaysWaitingForNone.With(backlog)
	case !seen && l.Dead > 0:
		return false, contract.SaysNoneServesWhatWaits.With()
	case !seen:
		return false, contract.SaysNoLoad.With()
	}
	return false, contract.SaysLoad.With(contract.Share(l.Saturation), l.Queue, l.Saturated, l.Dead)
}

// WaitingShort is the number of requests per serving replica that wait in the normal
// course of things: less than what fires the queue trigger is no backlog.
func (m *Model) WaitingShort() float64 {
	return max(0, m.Saturation.QueueLengthThreshold-m.Saturation.QueueSpareTrigger) * float64(m.Ready())
}

// Used is how much the replicas that are not saturated have in use, as a share of what the
// triggers allow.
func (m *Model) Used() float64 {
	t := m.Saturation
	return max(Share(m.Load.Saturation, t.KVCacheThreshold-t.KVSpareTrigger), Share(m.Load.Queue, t.QueueLengthThreshold-t.QueueSpareTrigger))
}

// Share is the share of the room that a load takes; infinite where there is none.
func Share(load, room float64) float64 {
	switch {
	case room > 0:
		return load / room
	case room == 0 && load <= 0:
		return 0
	}
	return math.Inf(1)
}
