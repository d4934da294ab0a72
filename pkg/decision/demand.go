package decision

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

const (
	// tokenHalfLife is how slowly the slow mean of the token shape forgets.
	tokenHalfLife = 2 * time.Minute
	// lengthsHeeded is by which share requests must be longer than usual to be believed at
	// once.
	lengthsHeeded = 0.1
	// jumpCertainty is how many standard errors, and jumpLeast which share of the rate
	// of the window, the newest scrapes must show more to be believed before the window
	// shows it.
	jumpCertainty = 4
	jumpLeast     = 0.25
	// jumpLead is how many windows a start may take for a jump to be answered before the
	// window or a trigger shows it: what starts slower comes too late for most of them
	// anyway.
	jumpLead = 2
	// leastCaution bounds by how much a growing load may be sized for too much.
	leastCaution = 0.5
)

// demand is what is asked of one model: the only thing that the other stages know of its
// arrivals. How they are forecast, and how sure that is, is a matter of this value alone.
type demand struct {
	// known is set when the arrival rate is known, and seen when at least a backlog is:
	// that is a lower bound of what is asked.
	known, seen bool
	// now is the present arrival rate, and span the time over which it was counted.
	now  capacity.Rate
	span time.Duration
	// error is the standard error of now.
	error capacity.Rate
	// tokens is the shape of the requests that is reckoned with.
	tokens capacity.TokenShape
	// backlog is the number of requests that wait.
	backlog float64
	// dispersion is the index of dispersion of the arrivals, at least 1.
	dispersion float64
	// certain is the rate that fresh samples alone show, which is known when isCertain,
	// and silent are the serving replicas of each variant without them.
	certain   capacity.Rate
	isCertain bool
	silent    []int
	// past are the observations that a forecast is read from, whose rates were counted
	// over window, and lag is what passes between now and what is decided now.
	past        []Observation
	window, lag time.Duration
	// caution is the share of what replicas are reckoned to serve that they are trusted
	// with while the load grows, at most 1.
	caution capacity.Rate
}

// expected is the arrival rate expected when a replica that is asked for now serves, lead
// from now; never below the present one.
func (d *demand) expected(lead time.Duration) capacity.Rate {
	if !d.known {
		return 0
	}
	return d.forecast(lead)
}

// minSignificance is how many standard errors of the arrival rate more must be asked for
// than what starts already will serve, before more is started.
const minSignificance = 2

// insignificant reports whether a missing rate is within what the arrival rate may be
// wrong by.
func (d *demand) insignificant(missing capacity.Rate) bool {
	return d.seen && missing <= minSignificance*d.error
}

// told is the demand for people.
func (d *demand) told(lead time.Duration) *Demand {
	if !d.seen {
		return nil
	}
	return &Demand{Arrival: d.now, Forecast: d.expected(lead), Error: d.error, Backlog: d.backlog, Tokens: d.tokens}
}

// demandOf finds the arrival rate, its trend, the token shape and the backlog.
func (r *round) demandOf(m *model) demand {
	d := demand{tokens: r.tokens(m), dispersion: m.old.Dispersion.index(), backlog: r.backlog(m), caution: 1}
	arrival, known := r.arrival(m, &d)
	m.next.Arrivals = r.observations(m, &d, arrival, known)
	m.next.Dispersion = m.old.Dispersion.watch(r.snapshot.Time, m.next.Arrivals)
	d.known, d.seen = known, known || d.backlog > 0
	if known {
		d.now, d.span, d.error = arrival.rate, arrival.span, arrival.noise(d.dispersion)
		d.past, d.window = settled(m.next.Arrivals, r.policy.Window)
		d.lag = min(r.policy.Interval, FastInterval) + arrival.span/2
	}
	d.certain, d.silent, d.isCertain = r.certain(m)
	return d
}

// tellDemand records what was found.
func (m *model) tellDemand() {
	d := m.plan.Demand
	m.each(func(v *variant) {
		if d == nil {
			v.note(StageDemand, ReasonMetricsMissing, "the arrival rate is unknown")
			return
		}
		v.note(StageDemand, ReasonMetricsFound, "%.2f requests/s arrive, %.2f are expected, %.0f wait", d.Arrival, d.Forecast, d.Backlog)
	})
}

// certain is the arrival rate of which only fresh samples count, and how many serving
// replicas of each variant have none. It reports false when nothing fresh is known.
func (r *round) certain(m *model) (rate capacity.Rate, silent []int, known bool) {
	if m.in.Arrival.Present {
		return capacity.Rate(max(0, m.in.Arrival.Value)), nil, r.age(m.in.Arrival) == ageFresh
	}
	sum := 0.0
	silent = make([]int, len(m.variants))
	for i, v := range m.variants {
		if !v.exists() {
			continue
		}
		fresh := 0
		for j := range v.in.Replicas {
			p := &v.in.Replicas[j]
			if r.age(p.Served) == ageFresh && r.ageSigned(p.InFlightGrowth) == ageFresh {
				fresh++
				sum += p.Served.Value + p.InFlightGrowth.Value
			}
		}
		known = known || fresh > 0
		silent[i] = max(0, v.in.Ready-fresh)
	}
	return capacity.Rate(sum), silent, known
}

// caution is, while the load grows, what the replicas complete over what their
// curves predict, at most 1: what has just begun is not done yet, and the requests
// that completed are the short ones, so that curves promise too much. Sizing with it
// errs towards too much. While the load does not grow it is 1.
func (r *round) caution(m *model, shape capacity.TokenShape) capacity.Rate {
	if !m.demand.known || m.expected() <= m.demand.now {
		return 1
	}
	var served, predicted capacity.Rate
	for _, v := range m.variants {
		curve := v.next.Curve
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			if r.usable(p.Running) && r.usable(p.Served) && curve.Known() {
				served += capacity.Rate(p.Served.Value)
				predicted += curve.Rate(p.Running.Value, r.shapeOf(p, shape), v.in.Profile)
			}
		}
	}
	if predicted <= 0 {
		return 1
	}
	return min(1, max(served/predicted, leastCaution))
}

// counted is a rate with the time over which it was counted.
type counted struct {
	rate capacity.Rate
	span time.Duration
}

// noise is the standard error of a rate counted over the span, sqrt(index*rate/span) for
// arrivals with that index of dispersion, and never less than that of one arrival.
func (c counted) noise(dispersion float64) capacity.Rate {
	seconds := c.span.Seconds()
	if seconds <= 0 {
		return 0
	}
	return capacity.Rate(math.Sqrt(dispersion * max(float64(c.rate), 1/seconds) / seconds))
}

// arrival is the rate at which requests reach the model now: that of the metrics
// window, or that between the newest scrapes when it is so much higher that no chance
// explains it and replicas start fast or are short already. So a step is answered at
// once and noise is not. Where replicas count it and some of them began to serve within
// the window, that of the newest scrapes also counts when it is lower: the window holds
// what the others got before and what the new ones get now.
func (r *round) arrival(m *model, d *demand) (counted, bool) {
	steady, known := r.overWindow(m)
	newest, seen := r.betweenScrapes(m)
	switch {
	case !seen:
		return steady, known
	case !known:
		return newest, true
	case newest.rate < steady.rate && !m.in.Arrival.Present && r.grew(m):
		return newest, true
	}
	chance := counted{rate: steady.rate, span: newest.span}.noise(d.dispersion)
	if newest.rate <= steady.rate*(1+jumpLeast) || newest.rate <= steady.rate+jumpCertainty*chance {
		return steady, true
	}
	if m.lead > jumpLead*r.policy.Window && !m.strained(d) {
		return steady, true
	}
	return r.sinceJump(m, d, newest), true
}

// strained reports whether a trigger fires, or a replica or more than a few requests that
// wait say that one will.
func (m *model) strained(d *demand) bool {
	fired, _ := m.trigger(d.backlog)
	return fired || m.load.saturated > 0 || d.backlog > m.waitingShort()
}

// sinceJump is the mean of the rates between scrapes since they last rose: the longer
// ago that is, the less the scatter of one scrape counts.
func (r *round) sinceJump(m *model, d *demand, newest counted) counted {
	points, _ := settled(m.old.Arrivals, r.policy.Window)
	points = append(points, Observation{Time: r.snapshot.Time, Rate: newest.rate, Span: newest.span})
	first := len(points) - 1
	for first > 0 && points[first-1].Span > 0 && !risen(points[first-1], points[first], d.dispersion) {
		first--
	}
	sum, span := 0.0, time.Duration(0)
	for _, o := range points[first:] {
		if r.snapshot.Time.Sub(o.Time) <= r.policy.Window {
			sum += float64(o.Rate) * o.Span.Seconds()
			span += o.Span
		}
	}
	return counted{rate: capacity.Rate(sum / span.Seconds()), span: span}
}

// grew reports whether more replicas serve now than at some time within the metrics
// window.
func (r *round) grew(m *model) bool {
	for _, o := range m.old.Arrivals {
		if r.snapshot.Time.Sub(o.Time) <= r.policy.Window && o.Ready < m.ready() {
			return true
		}
	}
	return false
}

// overWindow is the arrival rate over the metrics window: as the gateway counts
// it, else completions plus the growth of what is in flight. A serving replica
// without data adds nothing: had it the mean of the others, every new replica would
// raise the demand until it is scraped, and the demand more replicas. What it really
// serves is missing from the others, and a trigger that stays on asks again.
func (r *round) overWindow(m *model) (counted, bool) {
	if r.usable(m.in.Arrival) {
		return counted{rate: capacity.Rate(max(0, m.in.Arrival.Value)), span: r.policy.Window}, true
	}
	sum, known := 0.0, false
	m.eachReplica(func(p *Replica) {
		if !r.usable(p.Served) {
			return
		}
		known = true
		sum += p.Served.Value
		if r.usableSigned(p.InFlightGrowth) {
			sum += p.InFlightGrowth.Value
		}
	})
	return counted{rate: capacity.Rate(max(0, sum)), span: r.policy.Window}, known
}

// betweenScrapes is the same between the last two scrapes alone.
func (r *round) betweenScrapes(m *model) (counted, bool) {
	if r.usableSigned(m.in.Recent) && m.in.RecentSpan > 0 {
		return counted{rate: capacity.Rate(max(0, m.in.Recent.Value)), span: m.in.RecentSpan}, true
	}
	if r.usable(m.in.Arrival) {
		return counted{}, false
	}
	sum, known, longest := 0.0, false, time.Duration(0)
	m.eachReplica(func(p *Replica) {
		if r.usableSigned(p.Recent) && p.RecentSpan > 0 {
			sum, known, longest = sum+p.Recent.Value, true, max(longest, p.RecentSpan)
		}
	})
	return counted{rate: capacity.Rate(max(0, sum)), span: longest}, known
}

// eachReplica calls f for every serving replica of the targets that are there.
func (m *model) eachReplica(f func(*Replica)) {
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		for i := range v.in.Replicas {
			f(&v.in.Replicas[i])
		}
	}
}

// backlog is the number of requests that wait, in the gateway and in the replicas; but not
// in one that hangs: nothing that is added serves these.
func (r *round) backlog(m *model) float64 {
	sum := 0.0
	if r.usable(m.in.Queue) {
		sum = m.in.Queue.Value
	}
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		for i := range v.in.Replicas {
			if p := &v.in.Replicas[i]; r.usable(p.Waiting) && !r.hangs(p) {
				sum += p.Waiting.Value
			}
		}
	}
	return max(0, sum)
}

// tokens is the mean shape of the requests, weighted by what each replica served;
// while nothing completes it is what it was.
func (r *round) tokens(m *model) capacity.TokenShape {
	var input, output, weight float64
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			if r.usable(p.Served) && r.usable(p.Input) && r.usable(p.Output) && p.Served.Value > 0 {
				input += p.Input.Value * p.Served.Value
				output += p.Output.Value * p.Served.Value
				weight += p.Served.Value
			}
		}
	}
	old := m.old.Tokens
	if weight == 0 {
		if old.Shape.Known() {
			m.next.Tokens = old
		}
		return old.Shape
	}
	now := capacity.TokenShape{Input: capacity.Tokens(input / weight), Output: capacity.Tokens(output / weight)}
	next := old.blend(r.snapshot.Time, now, weight)
	m.next.Tokens = next
	longer := func(now, usual capacity.Tokens) capacity.Tokens {
		if now > usual*(1+lengthsHeeded) {
			return now
		}
		return usual
	}
	return capacity.TokenShape{Input: longer(now.Input, next.Shape.Input), Output: longer(now.Output, next.Shape.Output)}
}

// blend takes the newest mean into the slow one, which forgets by halves.
func (t TokenMean) blend(now time.Time, shape capacity.TokenShape, rate float64) TokenMean {
	elapsed := now.Sub(t.Time).Seconds()
	kept := t.Weight * math.Exp2(-max(0, elapsed)/tokenHalfLife.Seconds())
	if t.Weight == 0 {
		elapsed = 1
	}
	added := rate * max(1, elapsed)
	mix := func(a, b capacity.Tokens) capacity.Tokens {
		return capacity.Tokens((float64(a)*kept + float64(b)*added) / (kept + added))
	}
	return TokenMean{Time: now, Weight: kept + added, Shape: capacity.TokenShape{
		Input: mix(t.Shape.Input, shape.Input), Output: mix(t.Shape.Output, shape.Output),
	}}
}

// observations are the arrival rates of the trend's span, with this round's.
func (r *round) observations(m *model, d *demand, arrival counted, known bool) []Observation {
	var kept []Observation
	for _, o := range m.old.Arrivals {
		if r.snapshot.Time.Sub(o.Time) <= max(trendSpan*r.policy.Window, leastTrendSpan) {
			kept = append(kept, o)
		}
	}
	// An event round may look at the samples of the round before; they are one
	// observation.
	if sampled := r.sampled(m); known && (len(kept) == 0 || sampled.After(kept[len(kept)-1].Sampled)) {
		o := Observation{
			Time: r.snapshot.Time, Sampled: sampled, Rate: arrival.rate, Gateway: m.in.Arrival.Present,
			Output: d.tokens.Output, Backlog: d.backlog, Ready: m.ready(),
		}
		if newest, seen := r.betweenScrapes(m); seen {
			o.Newest, o.Span = newest.rate, newest.span
		}
		kept = append(kept, o)
	}
	return kept
}

// sampled is the time of the newest sample that the arrival rate is made of.
func (r *round) sampled(m *model) time.Time {
	if r.usable(m.in.Arrival) {
		return m.in.Arrival.Time
	}
	var newest time.Time
	m.eachReplica(func(p *Replica) {
		if p.Served.Present && p.Served.Time.After(newest) {
			newest = p.Served.Time
		}
	})
	return newest
}
