package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

const (
	// defaultLead is how long a replica is taken to start when none was seen.
	defaultLead = time.Minute
	// seenWindows is how many metrics windows back it is known what waited and served: the
	// window that a sample speaks of, and that of the sample before which it is held against.
	seenWindows = 2
)

// demand is what is asked of one model: the only thing that the other stages know of its
// arrivals. How they are forecast, and how sure that is, is a matter of this value alone.
type demand struct {
	// known is set when the arrival rate is known, and seen when at least a backlog is:
	// that is a lower bound of what is asked.
	known, seen bool
	// arrives is set when something arrived within the metrics window.
	arrives bool
	// now is the arrival rate that is believed now.
	now capacity.Rate
	// tokens is the shape of the requests that is reckoned with.
	tokens capacity.TokenShape
	// backlog is the number of requests that wait.
	backlog float64
	// certain is the rate that fresh samples alone show, which is known when isCertain.
	certain   capacity.Rate
	isCertain bool
	// forecast is what is believed of the arrivals, risk the quantile of it that is sized
	// for, and lag what passes between its newest sample and the next round, which can correct
	// what is decided now.
	forecast *forecast.Belief
	history  []forecast.History
	risk     float64
	lag      time.Duration
}

// expected is the arrival rate that is not exceeded with the probability risk when a
// replica that is asked for now serves, lead from now; never below the present one.
func (d *demand) expected(risk float64, lead time.Duration) capacity.Rate {
	if !d.known {
		return 0
	}
	return max(d.now, d.requests(d.forecast.Quantile(risk, d.lag+lead, d.history)))
}

// requests is a rate of the forecast in requests of the shape that is reckoned with.
func (d *demand) requests(rate float64) capacity.Rate {
	return capacity.Rate(rate / d.forecast.Worth(d.tokens))
}

// demandOf finds what arrives and will arrive, the token shape and the backlog.
func (r *round) demandOf(m *model) demand {
	m.next.StuckQueue = r.stuckQueue(m)
	d := demand{backlog: r.backlog(m), risk: saturationRisk, history: r.earlierDays(m)}
	if r.policy.sizes(&m.promise) {
		d.risk = r.policy.Risk
	}
	var newest capacity.TokenShape
	d.tokens, newest = r.tokens(m)
	if !newest.Known() {
		// Where nothing completes, or nobody tells lengths, those that arrive are as usual.
		newest = d.tokens
	}
	m.next.Balance = r.balance(m)
	c := r.countsOf(m)
	var again float64
	m.next.Forecast, again = r.forecast(m, &c, newest)
	d.forecast = &m.next.Forecast
	m.next.Seen = r.observations(m, c.at, d.backlog, again)
	d.arrives = c.window && c.steady.Rate > 0 || c.scrapes && c.recent.Rate > 0
	d.known = (c.window || c.scrapes) && d.forecast.Known()
	d.seen = d.known || d.backlog > 0
	if d.known {
		mean, _ := d.forecast.Moments()
		d.now = d.requests(mean)
		d.lag = max(0, r.snapshot.Time.Sub(d.forecast.Sampled)) + min(r.policy.Interval, FastInterval)
	}
	d.certain, d.isCertain = r.certain(m)
	d.certain = d.requests(float64(d.certain) * d.forecast.Worth(newest))
	return d
}

// earlierDays are how the load went on them, as far as the forecast may know it.
func (r *round) earlierDays(m *model) []forecast.History {
	if !r.policy.History {
		return nil
	}
	return m.in.History
}

// counts are what arrived as it was counted until the newest sample: over the metrics window,
// and between the last two scrapes, where these are known.
type counts struct {
	at              time.Time
	steady, recent  forecast.Count
	window, scrapes bool
	// own is set where the replicas' own count is used although a gateway counts, too.
	own bool
	// served and spoke are how many serving replicas showed their part of each.
	served, spoke int
}

// forecast takes what arrived since the last sample into the belief: the count between
// the last two scrapes, or where nobody tells that, or requests are in service for longer than a
// metrics window and so few that none may arrive between two scrapes, the rate of a whole one.
// What arrives while they are in service is the load, and not what chance adds to one scrape. It
// reports how many of them came again.
func (r *round) forecast(m *model, c *counts, shape capacity.TokenShape) (f forecast.Belief, again float64) {
	f = m.old.Forecast
	// What was looked at before may have been no more than a lower bound, which it stays.
	if last := len(m.old.Seen) - 1; !c.at.After(f.Sampled) || last >= 0 && !c.at.After(m.old.Seen[last].Sampled) {
		return f, 0
	}
	var seen forecast.Count
	switch {
	case c.scrapes && !(c.window && r.inService(m) > r.policy.Window && float64(c.steady.Rate)*c.recent.Span.Seconds() < settledChance*settledChance):
		if seen = c.recent; c.own || !m.in.Recent.Present {
			r.complete(m, &seen, c.at, c.spoke)
		}
	case c.window && c.at.Sub(f.Sampled) >= c.steady.Span:
		if seen = c.steady; c.own || !m.in.Arrival.Present {
			r.complete(m, &seen, c.at, c.served)
			seen.LowerBound = seen.LowerBound || r.began(m) > 0
		}
	default:
		return f, 0
	}
	seen.Shape = shape
	again = r.again(m, &seen)
	return f.Observe(c.at, seen, r.earlierDays(m)), again
}

// again takes out of a count, as far as it is more than is expected, what replicas had in flight
// that went within the metrics window: their clients send it again. It returns how much that is.
func (r *round) again(m *model, seen *forecast.Count) (requests float64) {
	if !m.old.Forecast.Known() {
		return 0
	}
	gone, last := 0.0, m.ready()
	for _, o := range slices.Backward(m.old.Seen) {
		if r.snapshot.Time.Sub(o.Time) > r.policy.Window {
			break
		}
		if o.Ready > last {
			gone += o.InFlight * (1 - float64(last)/float64(o.Ready))
		}
		gone, last = gone-o.Again, o.Ready
	}
	mean, _ := m.old.Forecast.Moments()
	usual := capacity.Rate(mean / m.old.Forecast.Worth(seen.Shape))
	requests = max(0, min(gone, float64(seen.Rate-usual)*seen.Span.Seconds()))
	seen.Rate -= capacity.Rate(requests / seen.Span.Seconds())
	return requests
}

// inService is the mean time for which a request is in service, by Little's law; 0 where it is
// not known.
func (r *round) inService(m *model) time.Duration {
	running, served := 0.0, 0.0
	m.eachReplica(func(p *Replica) {
		if r.usable(p.Running) && r.usable(p.Served) {
			running, served = running+p.Running.Value, served+p.Served.Value
		}
	})
	if served <= 0 {
		return 0
	}
	return time.Duration(running / served * float64(time.Second))
}

// complete counts for serving replicas that say nothing what the others did in the mean. Where
// some just began or went, or may have, or most say nothing, the count is a lower bound.
func (r *round) complete(m *model, seen *forecast.Count, at time.Time, heard int) {
	ready := m.ready()
	silent := max(0, ready-heard)
	switch {
	case r.shrank(m, at, seen.Span), silent > 0 && (silent >= heard || r.began(m) > 0 || len(m.old.Seen) == 0):
		seen.LowerBound = true
	case silent > 0:
		seen.Rate *= capacity.Rate(ready) / capacity.Rate(heard)
	}
}

// told is the demand for people; nil means unknown.
func (m *model) told() *Demand {
	d := &m.demand
	if !d.seen {
		return nil
	}
	return &Demand{Arrival: d.now, Forecast: m.ahead, Backlog: d.backlog, BacklogAtReady: m.need.backlog, Tokens: d.tokens}
}

// tellDemand records what was found, in front of what the rates told of the supply since: how far
// ahead it looks follows from these.
func (m *model) tellDemand() {
	step := Step{Stage: StageDemand, Reason: ReasonMetricsMissing, Detail: "the arrival rate is unknown"}
	if d := &m.demand; d.seen {
		as := ""
		if like := d.forecast.LikeEarlier(); like > 1-like {
			as = "; the load moves as on an earlier day"
		}
		step.Reason = ReasonMetricsFound
		step.Detail = fmt.Sprintf("%.2f req/s arrive, %.2f req/s forecast, %s%s", max(0, d.now), m.ahead,
			plural(int(math.RoundToEven(d.backlog)), "request waits", "requests wait"), as)
	}
	m.each(func(v *variant) {
		step.Before, step.After = v.target, v.target
		at := slices.IndexFunc(v.plan.Steps, func(s Step) bool { return s.Stage == StageSupply })
		if v.tell(step); at >= 0 {
			last := len(v.plan.Steps) - 1
			copy(v.plan.Steps[at+1:], v.plan.Steps[at:last])
			v.plan.Steps[at] = step
		}
	})
}

// certain is the arrival rate of which only fresh samples count. It reports false when nothing
// fresh is known, and notes how many serving replicas of each variant have none that matters.
func (r *round) certain(m *model) (rate capacity.Rate, known bool) {
	part := m.next.Balance.Part
	if m.in.Arrival.Present && part == PartNone {
		return capacity.Rate(max(0, m.in.Arrival.Value)), r.age(m.in.Arrival) == ageFresh
	}
	for _, v := range m.variants {
		fresh := 0
		for i := range v.in.Replicas {
			switch p := &v.in.Replicas[i]; {
			case r.age(p.Served) == ageFresh && r.ageSigned(p.InFlightGrowth) == ageFresh:
				fresh++
				rate += capacity.Rate(p.Served.Value + p.InFlightGrowth.Value)
			case v.load.dead > 0 && v.load.of[i] == dead:
				fresh++ // It is known to do nothing, though it may not show how much.
			}
		}
		known = known || fresh > 0
		v.load.silent = max(0, v.in.Ready-fresh)
	}
	if part == PartGateway {
		rate = max(rate, capacity.Rate(r.value(m.in.Arrival)))
	}
	return rate, known
}

// began is how many more replicas serve now than at some time within the metrics window.
func (r *round) began(m *model) int {
	most := 0
	for _, o := range m.old.Seen {
		if r.snapshot.Time.Sub(o.Time) <= r.policy.Window {
			most = max(most, m.ready()-o.Ready)
		}
	}
	return most
}

// shrank reports whether more replicas served within a span before a sample than now, or when
// last seen before it: what those did that went is missing from what the others show.
func (r *round) shrank(m *model, at time.Time, span time.Duration) bool {
	last := len(m.old.Seen) - 1
	for i, o := range m.old.Seen {
		if o.Ready > m.ready() && (i == last || at.Sub(o.Sampled) <= span) {
			return true
		}
	}
	return false
}

// countsOf finds what arrived as the gateway counts it, else, or where the two counts differ, as the
// replicas show it: over the metrics window completions plus the growth of what is in flight. A serving replica without data
// adds nothing here: complete counts for it where none just began. Each new replica would raise
// the demand until it is scraped else, and the demand would add more replicas.
func (r *round) countsOf(m *model) counts {
	c := counts{steady: forecast.Count{Span: r.windowOf(m)}}
	m.eachReplica(func(p *Replica) {
		if p.Served.Time.After(c.at) {
			c.at = p.Served.Time
		}
		if r.usable(p.Served) {
			c.steady.Rate, c.served = c.steady.Rate+capacity.Rate(p.Served.Value), c.served+1
			if r.usableSigned(p.InFlightGrowth) {
				c.steady.Rate += capacity.Rate(p.InFlightGrowth.Value)
			}
		}
		if r.usableSigned(p.Recent) {
			c.recent.Rate, c.recent.Span, c.spoke = c.recent.Rate+capacity.Rate(p.Recent.Value), max(c.recent.Span, p.RecentSpan), c.spoke+1
		}
	})
	// Less than nothing arrives where all that was in flight is gone from what is shown.
	c.window, c.scrapes = c.served > 0, c.spoke > 0 && c.recent.Rate >= 0
	switch part := m.next.Balance.Part; {
	case part == PartReplicas && c.window:
		c.own = true
	case part == PartGateway && c.window:
		// Both are lower bounds of what arrives.
		c.own = true
		c.steady.Rate = max(c.steady.Rate, capacity.Rate(r.value(m.in.Arrival)))
		c.recent.Rate = max(c.recent.Rate, capacity.Rate(r.value(m.in.Recent)))
	}
	if c.own {
		c.steady.Rate, c.recent.Rate = max(0, c.steady.Rate), max(0, c.recent.Rate)
		return c
	}
	if r.usable(m.in.Arrival) {
		c.at, c.steady.Rate = m.in.Arrival.Time, capacity.Rate(m.in.Arrival.Value)
		c.window, c.scrapes = true, false
	}
	if r.usable(m.in.Recent) {
		c.recent, c.scrapes = forecast.Count{Rate: capacity.Rate(m.in.Recent.Value), Span: m.in.RecentSpan}, true
	}
	c.steady.Rate, c.recent.Rate = max(0, c.steady.Rate), max(0, c.recent.Rate)
	return c
}

// eachReplica calls f for every serving replica of the targets that are there.
func (m *model) eachReplica(f func(*Replica)) {
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			f(&v.in.Replicas[i])
		}
	}
}

// sum adds up a number of the serving replicas.
func (m *model) sum(of func(*Replica) float64) float64 {
	sum := 0.0
	m.eachReplica(func(p *Replica) { sum += of(p) })
	return sum
}

// backlog is the number of requests that wait, in the gateway and in the replicas; but not
// in one that hangs, or is slow alone, nor where nobody will serve it: nothing that is added serves
// these.
func (r *round) backlog(m *model) float64 {
	sum := r.queue(m)
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			if !v.load.hung(i) && !v.odd.at(i) {
				sum += r.value(v.in.Replicas[i].Waiting)
			}
		}
	}
	return sum
}

// tokens is the mean shape of the requests, weighted by what each replica served, and
// that of the newest alone, which is unknown while nothing completes.
func (r *round) tokens(m *model) (usual, newest capacity.TokenShape) {
	var input, output, weight float64
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			if p := &v.in.Replicas[i]; !v.odd.at(i) && r.usable(p.Served) && r.usable(p.Input) && r.usable(p.Output) {
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
		return old.Shape, capacity.TokenShape{}
	}
	now := capacity.TokenShape{Input: capacity.Tokens(input / weight), Output: capacity.Tokens(output / weight)}
	next := old.Blend(r.snapshot.Time, now, weight)
	m.next.Tokens = next
	return next.Shape, now
}

// observations are what was seen lately, with this round's.
func (r *round) observations(m *model, sampled time.Time, backlog, again float64) []Observation {
	old := func(o Observation) bool { return r.snapshot.Time.Sub(o.Time) > seenWindows*r.policy.Window }
	kept := slices.DeleteFunc(append(make([]Observation, 0, len(m.old.Seen)+1), m.old.Seen...), old)
	// An event round may look at the samples of the round before; they are one
	// observation.
	if !sampled.IsZero() && (len(kept) == 0 || sampled.After(kept[len(kept)-1].Sampled)) {
		kept = append(kept, Observation{Time: r.snapshot.Time, Sampled: sampled, Backlog: backlog, Queue: r.value(m.in.Queue), Ready: m.ready(), InFlight: r.inFlight(m), Again: again})
	}
	return kept
}

// inFlight is how many requests the replicas have, as far as is known.
func (r *round) inFlight(m *model) float64 {
	return m.sum(func(p *Replica) float64 { return r.value(p.Running) + r.value(p.Waiting) })
}

// lead is how long a new replica takes to serve: the longest of those variants, as seen. Where no
// start-up was seen it is no less than those that start have taken so far.
func (r *round) lead(variants []*variant) time.Duration {
	seen, longest := time.Duration(0), defaultLead
	for _, v := range variants {
		seen = max(seen, v.in.Startup)
		if since := v.fleet.since; !since.IsZero() {
			longest = max(longest, r.snapshot.Time.Sub(since))
		}
	}
	return cmp.Or(seen, longest)
}

// growing are the variants that would grow if there came what is expected by the time when the
// slowest of all could serve; all, where none may. One that is never bought does not say how far
// to look ahead.
func (r *round) growing(m *model) []*variant {
	longest := r.lead(m.variants)
	if !slices.ContainsFunc(m.variants, func(v *variant) bool { return r.lead([]*variant{v}) < longest }) {
		return m.variants
	}
	first, reserves, misfits := r.growable(m)
	supply := m.served(func(v *variant) int { return v.fleet.supply })
	need := max(oneMore, r.sizedFor(m, m.demand.expected(m.demand.risk, longest))-supply)
	for _, candidates := range [][]*variant{first, reserves, misfits} {
		most := r.mayAdd
		if r.policy.Limited {
			most = r.fitting
		}
		work := allocation.Work(workExplained)
		mix := work.Cheapest((&purchase{model: m}).options(candidates, most), need)
		var grow []*variant
		for i, v := range candidates {
			if mix.Replicas[i] > 0 {
				grow = append(grow, v)
			}
		}
		if len(grow) > 0 {
			return grow
		}
	}
	return m.variants
}
