package decision

import (
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// want is the direction that a model's replicas are to go; the zero want is none.
type want int

const (
	// wantMore: the supply must grow by at least need.missing, and by at least one.
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

// need is what a model wants: the requirement stage finds it, the allocation answers it.
type need struct {
	want want
	// reason and detail say why.
	reason Reason
	detail string
	// required is the rate that is asked for: what is expected, and queued, the part that
	// serves the backlog within the drain time. Own is what of that part only those replicas
	// can serve that it waits in.
	required, queued, own capacity.Rate
	// backlog is the number of requests that the replicas which start will meet.
	backlog float64
	// supply is the rate of the replicas that serve or will in time.
	supply capacity.Rate
	// bounded is how many of them an upper bound takes.
	bounded int
	// missing is what the supply falls short of, when more is wanted.
	missing capacity.Rate
	// least is what must still be served after a scale-down.
	least capacity.Rate
	// idle is what the saturated replicas count for and do not serve: one that hangs
	// serves nothing, however full it is.
	idle capacity.Rate
	// triggered is set when a trigger fired.
	triggered bool
}

// requirement decides whether to act. The published thresholds decide on more, and so
// does the promised latency; less is asked for whenever nothing triggers, and proven
// safe by the allocation.
func (r *round) requirement(m *model) need {
	n := r.asked(m)
	n.triggered, n.detail = m.trigger(m.demand.backlog)
	m.judgeShortfall(&n)
	switch {
	case m.asleep() && (!n.triggered || !m.rated):
		// Where requests wait one is started, which shows what it serves.
		n.reason, n.detail = ReasonSteady, "the model has no replica"
	case m.evidence == evidenceMissing:
		n.reason, n.detail = ReasonMetricsMissing, "no metrics of the serving replicas: no change"
	case m.evidence == evidenceStale:
		n.reason, n.detail = ReasonMetricsStale, "stale metrics of the serving replicas: no change"
	case n.triggered:
		r.more(m, &n)
	case m.sized && m.beyond(&n) > 0:
		n.want, n.missing, n.reason = wantMore, m.beyond(&n), ReasonSLO
		n.detail = fmt.Sprintf("%s req/s are required, the SLO is met up to %s req/s", perSecond(n.required), perSecond(n.supply))
	case m.evidence == evidencePartial:
		n.reason, n.detail = ReasonMetricsPartial, "no scale-down: too few replicas have fresh metrics"
	default:
		r.less(m, &n)
	}
	r.judgeLowered(m, &n)
	m.each(func(v *variant) { v.step(StageRequirement, v.target, n.reason, "%s", n.detail) })
	return n
}

// asked is the rate that is asked for, and that of the replicas that serve or will.
func (r *round) asked(m *model) need {
	n := need{backlog: m.demand.backlog}
	if m.rated {
		n.backlog = r.backlogAtReady(m)
		for _, v := range m.variants {
			// What an upper bound takes away is nothing to rely on, nor is what hangs.
			left := v.bounded(v.fleet.supply)
			n.supply += v.rate.serves() * v.effective(left-v.load.hanging+v.load.dead)
			n.bounded += v.fleet.supply - left
		}
	}
	r.drain(m, &n)
	n.required = m.sizeFor + n.queued
	return n
}

// judgeShortfall fires where the triggers look elsewhere: some replicas are saturated,
// or requests wait in front of them all, and what serves or starts does not suffice.
func (m *model) judgeShortfall(n *need) {
	short := m.beyond(n)
	if n.triggered || short == 0 || !m.rated {
		return
	}
	var what string
	switch backlog := m.demand.backlog; {
	case n.bounded > 0:
		what = "maxReplicas takes " + plural(n.bounded, "replica", "replicas")
	case m.load.saturated > 0:
		what = plural(m.load.saturated, "replica is saturated", "replicas are saturated")
	case m.empty() > 0:
		// What these take nobody serves, and nobody sees in the others.
		what = plural(m.empty(), "replica gives no answers", "replicas give no answers")
	case backlog > m.waitingShort():
		what = fmt.Sprintf("%.0f requests wait", backlog)
	default:
		return
	}
	n.triggered = true
	n.detail = fmt.Sprintf("%s, capacity is %s req/s short", what, perSecond(short))
}

// beyond is what is asked for beyond what serves and starts.
func (m *model) beyond(n *need) capacity.Rate {
	missing := n.required - n.supply
	if missing <= precision*n.required {
		return 0
	}
	return missing
}

// starts reports whether replicas start that count as supply.
func (m *model) starts() bool {
	return slices.ContainsFunc(m.variants, func(v *variant) bool { return v.fleet.starts() })
}

// more sets how much is missing once a trigger fired. While nothing is known of what
// a replica serves, one more at a time is all that can be said.
func (r *round) more(m *model, n *need) {
	if m.rated {
		n.missing = m.beyond(n)
	}
	switch {
	case n.missing > 0:
	case m.starts():
		n.reason, n.detail = ReasonStartingSuffices, n.detail+"; starting replicas suffice"
		return
	case r.drains(m, n):
		n.reason, n.detail = ReasonBacklog, n.detail+"; the queue drains in time"
		return
	case m.sized && n.supply > m.least()+m.smallest():
		n.reason, n.detail = ReasonSteady, n.detail+"; the SLO needs fewer: no change"
		return
	}
	n.want, n.reason = wantMore, ReasonSaturated
}

// least is what must still be served after a scale-down: what is expected, where the
// promised latency decides; the published distance of the thresholds stands for that
// elsewhere.
func (m *model) least() capacity.Rate { return m.headroom() * m.carried() }

// carried is the load that the replicas are to carry.
func (m *model) carried() capacity.Rate {
	if m.sized {
		return m.sizeFor
	}
	return m.demand.now
}

// headroom is how much more than the demand the supply must still be after a scale-down.
func (m *model) headroom() capacity.Rate {
	if m.sized {
		return modelHeadroom
	}
	return lowerHeadroom
}

// smallest is the least rate that one replica of those that exist serves; infinite where
// none serves anything.
func (m *model) smallest() capacity.Rate {
	least := capacity.Rate(math.Inf(1))
	for _, v := range m.variants {
		if each := v.rate.serves(); v.fleet.supply > 0 && each > 0 {
			least = min(least, each)
		}
	}
	return least
}

// perReplica is what one of the replicas that serve or will serves in the mean.
func (m *model) perReplica(n *need) capacity.Rate {
	return n.supply / capacity.Rate(max(1, m.count(func(v *variant) int { return v.fleet.supply })))
}

// less sets what must stay, when the arrival rate is known well enough to lower.
// While a backlog is worth a replica all stay, so that the replicas that drain it go
// together when it is gone, and not one by one. But what waits in saturated replicas keeps
// only these, where it is ours to choose who goes.
func (r *round) less(m *model, n *need) {
	if !r.spares(m) {
		n.own = 0
	}
	unsettled := r.unsettled(m, n)
	switch {
	case !m.demand.isCertain || !m.demand.seen || m.guessesSilent():
		n.reason, n.detail = ReasonMetricsPartial, "no scale-down: the arrival rate is not known well enough"+r.unrated(m)
	case n.queued > n.own && n.queued-n.own >= m.perReplica(n):
		n.reason, n.detail = ReasonBacklog, fmt.Sprintf("%s; no scale-down while %.0f requests wait", n.detail, n.backlog)
	case unsettled != "":
		n.reason, n.detail = ReasonBacklog, n.detail+"; no scale-down yet: "+unsettled
	default:
		n.want, n.reason = wantLess, ReasonSteady
		_, busy, _ := r.owed(m)
		n.least = max(m.least(), m.headroom()*m.certain()) + max(n.queued, busy)
		n.idle = r.idleOf(m)
		if m.load.saturated > 0 {
			// One that stays so has what is short of this added in the next round.
			n.least = max(n.least, n.required)
		}
	}
}

// spares reports whether no saturated replica goes while another one can.
func (r *round) spares(m *model) bool {
	return !slices.ContainsFunc(m.variants, func(v *variant) bool {
		return v.load.saturated > 0 && !r.picks(v)
	})
}

// certain is the arrival rate that a scale-down reckons with: a serving replica without
// fresh samples is taken to be as full as the triggers allow.
func (m *model) certain() capacity.Rate {
	rate := m.demand.certain
	for _, v := range m.variants {
		rate += max(v.rate.trigger, v.rate.serves()) * capacity.Rate(v.load.silent)
	}
	return max(0, rate)
}

// guessesSilent reports whether a serving replica without fresh samples is of a variant of
// which nothing was seen either: nobody knows then what it may serve.
func (m *model) guessesSilent() bool {
	return slices.ContainsFunc(m.variants, func(v *variant) bool {
		return v.load.silent > 0 && v.rate.guessed && !v.next.Curve.Known()
	})
}

// idleOf is what replicas that may be saturated count for and do not serve; none are while
// no replica is.
func (r *round) idleOf(m *model) capacity.Rate {
	idle := capacity.Rate(0)
	for _, v := range m.variants {
		for i, c := range v.load.of {
			if c == unsaturated || c == dead || m.load.saturated == 0 {
				continue
			}
			served := capacity.Rate(0)
			if p := &v.in.Replicas[i]; r.age(p.Served) == ageFresh {
				served = capacity.Rate(p.Served.Value)
			}
			idle += max(0, v.rate.serves()-served)
		}
	}
	return idle
}
