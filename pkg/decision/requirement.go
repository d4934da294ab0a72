package decision

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// want is the direction that a model's replicas are to go; the zero want is none.
type want int

const (
	// wantMore: the supply must grow by at least model.missing, and by at least one.
	wantMore want = iota + 1
	// wantLess: less may do.
	wantLess
)

// lowerHeadroom is how much more than the demand the supply must still be after a
// scale-down, so that the next burst does not raise it again. It is the distance of
// the published token-based analyzer's thresholds: up at 0.85 of the supply, down at
// 0.70.
const lowerHeadroom = 0.85 / 0.70

// modelHeadroom is the same where sizing for the promised latency decides: that
// reckons with the scatter of arrivals already, and what is left is that of the
// estimates.
const modelHeadroom = 1.05

// requirement decides whether to act. The published thresholds decide on more, and so
// does the promised latency; less is asked for whenever nothing triggers, and proven
// safe by the allocation.
func requirement(r *round, m *model) {
	m.ask(r)
	load := m.pressure(r, &m.demand)
	waiting := false
	for _, v := range m.variants {
		// What an upper bound takes away is nothing to rely on.
		m.total += v.serves * capacity.Rate(v.bounded(v.supply))
		waiting = waiting || v.supply > v.in.Ready
	}
	m.judgeShortfall(&load)
	m.load, m.plan.Triggered = load, load.triggered
	reason, detail := ReasonSteady, load.detail
	switch {
	case m.asleep():
		reason, detail = ReasonSteady, "the model has no replica"
	case m.evidence == evidenceMissing:
		reason, detail = ReasonMetricsMissing, "no metrics of the serving replicas, so nothing changes"
	case m.evidence == evidenceStale:
		reason, detail = ReasonMetricsStale, "the metrics of the serving replicas are old, so nothing changes"
	case load.triggered:
		reason, detail = m.more(r, waiting, load.detail)
	case m.sized && m.beyond(true) > 0:
		m.wants, m.missing = wantMore, m.beyond(true)
		m.load.detail = fmt.Sprintf("%.2f requests/s are expected and the promised latency is kept up to %.2f", m.required, m.total)
		reason, detail = ReasonSLO, m.load.detail
	case m.evidence == evidencePartial:
		reason, detail = ReasonMetricsPartial, "too few replicas have fresh metrics to remove any"
	default:
		reason, detail = m.less(r, load.detail)
	}
	m.why = reason
	m.each(func(v *variant) { v.step(StageRequirement, v.target, reason, "%s", detail) })
}

// judgeShortfall fires where the triggers look elsewhere: some replicas are saturated,
// or requests wait in front of them all, and what serves or starts does not suffice.
func (m *model) judgeShortfall(load *pressure) {
	short := m.required - m.total*m.demand.caution
	if load.triggered || short <= 0 || !m.knowsRates() {
		return
	}
	var what string
	switch d := &m.demand; {
	case load.saturated > 0:
		what = plural(load.saturated, "replica is saturated", "replicas are saturated")
	case d.backlog > m.waitingShort():
		what = fmt.Sprintf("%.0f requests wait", d.backlog)
	default:
		return
	}
	load.triggered = true
	load.detail = fmt.Sprintf("%s, and what serves or starts falls %.2f requests/s short", what, short)
}

// ask sets the rate that is asked for: what is expected, and the share of the backlog
// that is to be served within the drain time.
func (m *model) ask(r *round) {
	if !m.demand.seen {
		return
	}
	waits := m.demand.backlog
	if m.knowsRates() {
		waits = r.backlogAtReady(m)
	}
	m.plan.Demand.BacklogAtReady = waits
	m.queued = capacity.Rate(waits / r.policy.Drain.Seconds())
	m.required = m.expected() + m.queued
}

// beyond is what is asked for beyond what serves and starts; 0 when that is within
// what the arrival rate may be wrong by, and no trigger says otherwise, or replicas
// start that are to meet it.
func (m *model) beyond(calm bool) capacity.Rate {
	missing := m.required - m.total*m.demand.caution
	if missing <= 1e-9*m.required {
		return 0
	}
	if (calm || m.starts()) && m.demand.insignificant(missing) {
		return 0
	}
	return missing
}

// expected is the arrival rate expected when a replica that is asked for now serves.
func (m *model) expected() capacity.Rate {
	if m.plan.Demand == nil {
		return 0
	}
	return m.plan.Demand.Forecast
}

// starts reports whether replicas start that count as supply.
func (m *model) starts() bool {
	for _, v := range m.variants {
		if v.supply > v.in.Ready {
			return true
		}
	}
	return false
}

// asleep reports whether no target of the model asks for a replica.
func (m *model) asleep() bool {
	for _, v := range m.variants {
		if v.exists() && v.in.Current > 0 {
			return false
		}
	}
	return true
}

// more sets how much is missing once a trigger fired. While nothing is known of what
// a replica serves, one more at a time is all that can be said.
func (m *model) more(r *round, starting bool, detail string) (Reason, string) {
	if m.knowsRates() {
		m.missing = m.beyond(false)
	}
	switch {
	case m.missing > 0:
	case starting:
		return ReasonStartingSuffices, detail + "; the replicas that start will carry it"
	case r.drains(m):
		return ReasonBacklog, detail + "; what serves now drains it in time"
	case m.sized && m.total*m.demand.caution > m.least()+m.smallest():
		return ReasonSteady, detail + "; the promised latency needs fewer, so nothing changes"
	}
	m.wants = wantMore
	return ReasonSaturated, detail
}

// least is what must still be served after a scale-down.
func (m *model) least() capacity.Rate {
	if m.sized {
		return modelHeadroom * m.expected()
	}
	return lowerHeadroom * m.expected()
}

// smallest is the least rate that one replica of those that exist serves.
func (m *model) smallest() capacity.Rate {
	least := capacity.Rate(0)
	for _, v := range m.variants {
		if v.supply > 0 && v.serves > 0 && (least == 0 || v.serves < least) {
			least = v.serves
		}
	}
	return least
}

// mean is what one of the replicas that serve or will serves in the mean.
func (m *model) mean() capacity.Rate {
	replicas := 0
	for _, v := range m.variants {
		replicas += v.supply
	}
	return m.total / capacity.Rate(max(1, replicas))
}

// certain is the arrival rate that a scale-down reckons with: a serving replica without
// fresh samples is taken to be as full as the triggers allow.
func (m *model) certain() capacity.Rate {
	rate := m.demand.certain
	for i, n := range m.demand.silent {
		rate += m.variants[i].serves * capacity.Rate(n)
	}
	return max(0, rate)
}

// knowsRates reports whether it is known what a replica of any variant serves.
func (m *model) knowsRates() bool {
	for _, v := range m.variants {
		if v.serves > 0 {
			return true
		}
	}
	return false
}

// less sets what must stay, when the arrival rate is known well enough to lower.
// While a backlog is worth a replica all stay, so that the replicas that drain it go
// together when it is gone, and not one by one.
func (m *model) less(r *round, detail string) (Reason, string) {
	if !m.demand.isCertain || !m.demand.seen {
		return ReasonMetricsPartial, "the arrival rate is not known well enough to remove a replica"
	}
	if m.queued > 0 && m.queued >= m.mean() {
		return ReasonBacklog, fmt.Sprintf("%s; none goes before the %.0f requests that wait are served", detail, m.plan.Demand.BacklogAtReady)
	}
	if why := r.unsettled(m); why != "" {
		return ReasonBacklog, detail + "; none goes yet, because " + why
	}
	m.wants = wantLess
	arrival := m.certain()
	m.atLeast = max(m.least(), lowerHeadroom*arrival)
	if m.sized {
		m.atLeast = max(m.least(), modelHeadroom*arrival)
	}
	return ReasonSteady, detail
}

// pressure is what the triggers found.
type pressure struct {
	triggered bool
	detail    string
	// full and queue are the mean load of the replicas that are not saturated.
	full, queue float64
	// seenFull and seenQueue are over how many replicas these means are.
	seenFull, seenQueue int
	// saturated is the number of replicas at or above a threshold.
	saturated int
	// eased is the number of replicas that are known not to be saturated.
	eased int
	// blind is the rate that the replicas serve which can take over nothing: they
	// are saturated, or their load is not known.
	blind capacity.Rate
}

// pressure looks at every serving replica: how full it is (the used share of the
// KV cache or of the batch limit, whichever is more) and how many requests wait in
// it. Replicas that are saturated have no spare; of the others the mean spare must
// not fall below the triggers.
func (m *model) pressure(r *round, d *demand) pressure {
	var p pressure
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		p.blind += v.serves * capacity.Rate(max(0, v.in.Ready-len(v.in.Replicas)))
		for i := range v.in.Replicas {
			p.add(r, v, &v.in.Replicas[i], m.saturation)
		}
	}
	p.full = mean(p.full, p.seenFull)
	p.queue = mean(p.queue, p.seenQueue)
	p.judge(m, d)
	return p
}

// add takes one replica into the sums.
func (p *pressure) add(r *round, v *variant, replica *Replica, t Saturation) {
	if r.hot(t, v, replica) {
		p.saturated++
		p.blind += v.serves
		v.saturated = true
		return
	}
	full, knowsFull := v.full(r, replica)
	queue, knowsQueue := replica.Waiting.Value, r.usable(replica.Waiting)
	if knowsFull {
		p.seenFull++
		p.full += full
	}
	if knowsQueue {
		p.seenQueue++
		p.queue += queue
	}
	if knowsFull && knowsQueue {
		p.eased++
	} else {
		p.blind += v.serves
	}
}

// judge holds the means against the triggers.
func (p *pressure) judge(m *model, d *demand) {
	t := m.saturation
	fullest, longest := t.KVCacheThreshold-t.KVSpareTrigger, t.QueueLengthThreshold-t.QueueSpareTrigger
	seen := p.seenFull > 0 || p.seenQueue > 0
	p.triggered = true
	switch {
	case p.saturated > 0 && !seen:
		p.detail = "every serving replica is saturated"
	case p.seenFull > 0 && t.KVCacheThreshold-p.full < t.KVSpareTrigger:
		p.detail = fmt.Sprintf("replicas are %.0f %% full, above %.0f %%", 100*p.full, 100*fullest)
	case p.seenQueue > 0 && t.QueueLengthThreshold-p.queue < t.QueueSpareTrigger:
		p.detail = fmt.Sprintf("%.1f requests wait per replica, more than %.1f", p.queue, longest)
	case m.ready() == 0 && d.backlog > 0:
		p.detail = fmt.Sprintf("%.0f requests wait and no replica serves", d.backlog)
	case !seen:
		p.triggered, p.detail = false, "no replica shows its load"
	default:
		p.triggered, p.detail = false, fmt.Sprintf("replicas are %.0f %% full and %.1f requests wait per replica", 100*p.full, p.queue)
	}
}

func mean(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
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
