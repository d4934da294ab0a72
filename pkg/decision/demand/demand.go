package demand

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

const (
	// seenWindows is how many metrics windows back it is known what waited and served: the
	// window that a sample speaks of, and that of the sample before which it is held against.
	seenWindows = 2
)

// Demand is what is asked of one model: the only thing that the other stages know of its
// arrivals. How they are forecast, and how sure that is, is a matter of this value alone.
type Demand struct {
	// Known is set when the arrival rate is known, and seen when at least a backlog is:
	// that is a lower bound of what is asked.
	Known, Seen bool
	// arrives is set when something arrived within the metrics window.
	arrives bool
	// Now is the arrival rate that is believed now.
	Now capacity.Rate
	// Tokens is the shape of the requests that is reckoned with.
	Tokens capacity.TokenShape
	// Backlog is the number of requests that wait.
	Backlog float64
	// Certain is the rate that fresh samples alone show, which is known when isCertain.
	Certain   capacity.Rate
	IsCertain bool
	// Forecast is what is believed of the arrivals, risk the quantile of it that is sized
	// for, and lag what passes between its newest sample and the next round, which can correct
	// what is decided now.
	Forecast *forecast.Belief
	history  []forecast.History
	Risk     float64
	lag      time.Duration
}

// Expected is the arrival rate that is not exceeded with the probability risk when a
// replica that is asked for now serves, lead from now; never below the present one.
func (d *Demand) Expected(risk float64, lead time.Duration) capacity.Rate {
	if !d.Known {
		return 0
	}
	return max(d.Now, d.requests(d.Forecast.Quantile(risk, d.lag+lead, d.history)))
}

// requests is a rate of the forecast in requests of the shape that is reckoned with.
func (d *Demand) requests(rate float64) capacity.Rate {
	return capacity.Rate(rate / d.Forecast.Worth(d.Tokens))
}

// DemandOf finds what arrives and will arrive, the token shape and the backlog.
func (m *Model) DemandOf() Demand {
	m.Next.StuckQueue = m.stuckQueue()
	d := Demand{Backlog: m.backlog(), Risk: saturationRisk, history: m.earlierDays()}
	if m.Round.Policy.Sizes(&m.Promise) {
		d.Risk = m.Round.Policy.Risk
	}
	var newest capacity.TokenShape
	d.Tokens, newest = m.tokens()
	if !newest.Known() {
		// Where nothing completes, or nobody tells lengths, those that arrive are as usual.
		newest = d.Tokens
	}
	m.Next.Balance = m.balance()
	c := m.countsOf()
	var again float64
	m.Next.Forecast, again = m.Forecast(&c, newest)
	d.Forecast = &m.Next.Forecast
	m.Next.Seen = m.observations(c.At, d.Backlog, again)
	d.arrives = c.Window && c.Steady.Rate > 0 || c.Scrapes && c.Recent.Rate > 0
	d.Known = (c.Window || c.Scrapes) && d.Forecast.Known()
	d.Seen = d.Known || d.Backlog > 0
	if d.Known {
		mean, _ := d.Forecast.Moments()
		d.Now = d.requests(mean)
		d.lag = max(0, m.Round.Snapshot.Time.Sub(d.Forecast.Sampled)) + min(m.Round.Policy.Interval, contract.FastInterval)
	}
	d.Certain, d.IsCertain = m.Certain()
	d.Certain = d.requests(float64(d.Certain) * d.Forecast.Worth(newest))
	return d
}

// earlierDays are how the load went on them, as far as the forecast may know it.
func (m *Model) earlierDays() []forecast.History {
	if !m.Round.Policy.History {
		return nil
	}
	return m.In.History
}

// Counts are what arrived as it was counted until the newest sample: over the metrics window,
// and between the last two scrapes, where these are known.
type Counts struct {
	At              time.Time
	Steady, Recent  forecast.Count
	Window, Scrapes bool
	// own is set where the replicas' own count is used although a gateway counts, too.
	own bool
	// served and spoke are how many serving replicas showed their part of each.
	served, Spoke int
}

// Forecast takes what arrived since the last sample into the belief: the count between
// the last two scrapes, or where nobody tells that, or requests are in service for longer than a
// metrics window and so few that none may arrive between two scrapes, the rate of a whole one.
// What arrives while they are in service is the load, and not what chance adds to one scrape. It
// reports how many of them came again.
func (m *Model) Forecast(c *Counts, shape capacity.TokenShape) (f forecast.Belief, again float64) {
	f = m.Old.Forecast
	// What was looked at before may have been no more than a lower bound, which it stays.
	if last := len(m.Old.Seen) - 1; !c.At.After(f.Sampled) || last >= 0 && !c.At.After(m.Old.Seen[last].Sampled) {
		return f, 0
	}
	var seen forecast.Count
	switch {
	case c.Scrapes && !(c.Window && m.InService() > m.Round.Policy.Window && float64(c.Steady.Rate)*c.Recent.Span.Seconds() < signal.SettledChance*signal.SettledChance):
		if seen = c.Recent; c.own || !m.In.Recent.Present {
			m.Complete(&seen, c.At, c.Spoke)
		}
	case c.Window && c.At.Sub(f.Sampled) >= c.Steady.Span:
		if seen = c.Steady; c.own || !m.In.Arrival.Present {
			m.Complete(&seen, c.At, c.served)
			seen.LowerBound = seen.LowerBound || m.Began() > 0
		}
	default:
		return f, 0
	}
	seen.Shape = shape
	again = m.Again(&seen)
	return f.Observe(c.At, seen, m.earlierDays()), again
}

// Again takes out of a count, as far as it is more than is expected, what replicas had in flight
// that went within the metrics window: their clients send it again. It returns how much that is.
func (m *Model) Again(seen *forecast.Count) (requests float64) {
	if !m.Old.Forecast.Known() {
		return 0
	}
	gone, last := 0.0, m.Ready()
	for _, o := range slices.Backward(m.Old.Seen) {
		if m.Round.Snapshot.Time.Sub(o.Time) > m.Round.Policy.Window {
			break
		}
		if o.Ready > last {
			gone += o.InFlight * (1 - float64(last)/float64(o.Ready))
		}
		gone, last = gone-o.Again, o.Ready
	}
	mean, _ := m.Old.Forecast.Moments()
	usual := capacity.Rate(mean / m.Old.Forecast.Worth(seen.Shape))
	requests = max(0, min(gone, float64(seen.Rate-usual)*seen.Span.Seconds()))
	seen.Rate -= capacity.Rate(requests / seen.Span.Seconds())
	return requests
}

// InService is the mean time for which a request is in service, by Little's law; 0 where it is
// not known.
func (m *Model) InService() time.Duration {
	running, served := 0.0, 0.0
	m.EachReplica(func(p *contract.Replica) {
		if m.Round.Usable(p.Running) && m.Round.Usable(p.Served) {
			running, served = running+p.Running.Value, served+p.Served.Value
		}
	})
	if served <= 0 {
		return 0
	}
	return time.Duration(running / served * float64(time.Second))
}

// Complete counts for serving replicas that say nothing what the others did in the mean. Where
// some just began or went, or may have, or most say nothing, the count is a lower bound.
func (m *Model) Complete(seen *forecast.Count, at time.Time, heard int) {
	ready := m.Ready()
	silent := max(0, ready-heard)
	switch {
	case m.Shrank(at, seen.Span), silent > 0 && (silent >= heard || m.Began() > 0 || len(m.Old.Seen) == 0):
		seen.LowerBound = true
	case silent > 0:
		seen.Rate *= capacity.Rate(ready) / capacity.Rate(heard)
	}
}

// Certain is the arrival rate of which only fresh samples count. It reports false when nothing
// fresh is known, and notes how many serving replicas of each variant have none that matters.
func (m *Model) Certain() (rate capacity.Rate, known bool) {
	part := m.Next.Balance.Part
	if m.In.Arrival.Present && part == contract.PartNone {
		return capacity.Rate(max(0, m.In.Arrival.Value)), m.Round.Age(m.In.Arrival) == signal.AgeFresh
	}
	for _, v := range m.Variants {
		fresh := 0
		for i := range v.In.Replicas {
			switch p := &v.In.Replicas[i]; {
			case m.Round.Age(p.Served) == signal.AgeFresh && m.Round.AgeSigned(p.InFlightGrowth) == signal.AgeFresh:
				fresh++
				rate += capacity.Rate(p.Served.Value + p.InFlightGrowth.Value)
			case v.Load.Dead > 0 && v.Load.Of[i] == fleet.Dead:
				fresh++ // It is known to do nothing, though it may not show how much.
			}
		}
		known = known || fresh > 0
		v.Load.Silent = max(0, v.In.Ready-fresh)
	}
	if part == contract.PartGateway {
		rate = max(rate, capacity.Rate(m.Round.Value(m.In.Arrival)))
	}
	return rate, known
}

// Began is how many more replicas serve now than at some time within the metrics window.
func (m *Model) Began() int {
	most := 0
	for _, o := range m.Old.Seen {
		if m.Round.Snapshot.Time.Sub(o.Time) <= m.Round.Policy.Window {
			most = max(most, m.Ready()-o.Ready)
		}
	}
	return most
}

// Shrank reports whether more replicas served within a span before a sample than now, or when
// last seen before it: what those did that went is missing from what the others show.
func (m *Model) Shrank(at time.Time, span time.Duration) bool {
	last := len(m.Old.Seen) - 1
	for i, o := range m.Old.Seen {
		if o.Ready > m.Ready() && (i == last || at.Sub(o.Sampled) <= span) {
			return true
		}
	}
	return false
}

// countsOf finds what arrived as the gateway counts it, else, or where the two counts differ, as the
// replicas show it: over the metrics window completions plus the growth of what is in flight. A serving replica without data
// adds nothing here: complete counts for it where none just began. Each new replica would raise
// the demand until it is scraped else, and the demand would add more replicas.
func (m *Model) countsOf() Counts {
	c := Counts{Steady: forecast.Count{Span: m.WindowOf()}}
	m.EachReplica(func(p *contract.Replica) {
		if p.Served.Time.After(c.At) {
			c.At = p.Served.Time
		}
		if m.Round.Usable(p.Served) {
			c.Steady.Rate, c.served = c.Steady.Rate+capacity.Rate(p.Served.Value), c.served+1
			if m.Round.UsableSigned(p.InFlightGrowth) {
				c.Steady.Rate += capacity.Rate(p.InFlightGrowth.Value)
			}
		}
		if m.Round.UsableSigned(p.Recent) {
			c.Recent.Rate, c.Recent.Span, c.Spoke = c.Recent.Rate+capacity.Rate(p.Recent.Value), max(c.Recent.Span, p.RecentSpan), c.Spoke+1
		}
	})
	// Less than nothing arrives where all that was in flight is gone from what is shown.
	c.Window, c.Scrapes = c.served > 0, c.Spoke > 0 && c.Recent.Rate >= 0
	switch part := m.Next.Balance.Part; {
	case part == contract.PartReplicas && c.Window:
		c.own = true
	case part == contract.PartGateway && c.Window:
		// Both are lower bounds of what arrives.
		c.own = true
		c.Steady.Rate = max(c.Steady.Rate, capacity.Rate(m.Round.Value(m.In.Arrival)))
		c.Recent.Rate = max(c.Recent.Rate, capacity.Rate(m.Round.Value(m.In.Recent)))
	}
	if c.own {
		c.Steady.Rate, c.Recent.Rate = max(0, c.Steady.Rate), max(0, c.Recent.Rate)
		return c
	}
	if m.Round.Usable(m.In.Arrival) {
		c.At, c.Steady.Rate = m.In.Arrival.Time, capacity.Rate(m.In.Arrival.Value)
		c.Window, c.Scrapes = true, false
	}
	if m.Round.Usable(m.In.Recent) {
		c.Recent, c.Scrapes = forecast.Count{Rate: capacity.Rate(m.In.Recent.Value), Span: m.In.RecentSpan}, true
	}
	c.Steady.Rate, c.Recent.Rate = max(0, c.Steady.Rate), max(0, c.Recent.Rate)
	return c
}

// backlog is the number of requests that wait, in the gateway and in the replicas; but not
// in one that hangs, or is slow alone, nor where nobody will serve it: nothing that is added serves
// these.
func (m *Model) backlog() float64 {
	sum := m.queue()
	for _, v := range m.Variants {
		for i := range v.In.Replicas {
			if !v.Load.Hung(i) && !v.Odd.At(i) {
				sum += m.Round.Value(v.In.Replicas[i].Waiting)
			}
		}
	}
	return sum
}

// tokens is the mean shape of the requests, weighted by what each replica served, and
// that of the newest alone, which is unknown while nothing completes.
func (m *Model) tokens() (usual, newest capacity.TokenShape) {
	var input, output, weight float64
	for _, v := range m.Variants {
		for i := range v.In.Replicas {
			if p := &v.In.Replicas[i]; !v.Odd.At(i) && m.Round.Usable(p.Served) && m.Round.Usable(p.Input) && m.Round.Usable(p.Output) {
				input += p.Input.Value * p.Served.Value
				output += p.Output.Value * p.Served.Value
				weight += p.Served.Value
			}
		}
	}
	old := m.Old.Tokens
	if weight == 0 {
		if old.Shape.Known() {
			m.Next.Tokens = old
		}
		return old.Shape, capacity.TokenShape{}
	}
	now := capacity.TokenShape{Input: capacity.Tokens(input / weight), Output: capacity.Tokens(output / weight)}
	next := old.Blend(m.Round.Snapshot.Time, now, weight)
	m.Next.Tokens = next
	return next.Shape, now
}

// observations are what was seen lately, with this round's.
func (m *Model) observations(sampled time.Time, backlog, again float64) []contract.Observation {
	old := func(o contract.Observation) bool {
		return m.Round.Snapshot.Time.Sub(o.Time) > seenWindows*m.Round.Policy.Window
	}
	kept := slices.DeleteFunc(append(make([]contract.Observation, 0, len(m.Old.Seen)+1), m.Old.Seen...), old)
	// An event round may look at the samples of the round before; they are one
	// observation.
	if !sampled.IsZero() && (len(kept) == 0 || sampled.After(kept[len(kept)-1].Sampled)) {
		kept = append(kept, contract.Observation{Time: m.Round.Snapshot.Time, Sampled: sampled, Backlog: backlog, Queue: m.Round.Value(m.In.Queue), Ready: m.Ready(), InFlight: m.InFlight(), Again: again})
	}
	return kept
}

// saturationRisk is the quantile where saturation alone decides: its thresholds keep a
// distance of their own.
const saturationRisk = 0.85

// Called reports whether requests wait for the model or reach its gateway.
func (m *Model) Called() bool { return m.Demand.Backlog > 0 || m.Demand.arrives }
