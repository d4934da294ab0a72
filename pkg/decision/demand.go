package decision

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

const (
	// tokenHalfLife is how slowly the slow mean of the token shape forgets.
	tokenHalfLife = 2 * time.Minute
	// trendSpan is the past that a trend is read from, in metrics windows.
	trendSpan = 2
	// trendCertainty is how many standard errors a rise must measure to be believed.
	trendCertainty = 3
	// trendLeast is the least rise, as a share of the mean rate, that is carried on;
	// traffic comes in bursts, and a smaller rise is left to the triggers.
	trendLeast = 0.25
	// trendGrowth is the most that a forecast may exceed the present rate.
	trendGrowth = 3
	// defaultLead is how long a replica is taken to start when none was seen.
	defaultLead = time.Minute
)

// demand finds the arrival rate, its trend, the token shape and the backlog.
func demand(r *round, m *model) {
	m.tokens = r.tokens(m)
	d := Demand{Tokens: m.tokens, Backlog: r.backlog(m)}
	arrival, ok := r.arrival(m)
	m.remember(r, arrival, ok)
	if ok {
		d.Arrival, d.Forecast = arrival, r.forecast(m, arrival)
		m.plan.Demand = &d
		m.required = d.Forecast + capacity.Rate(d.Backlog/r.policy.Drain.Seconds())
	} else if d.Backlog > 0 {
		// A backlog alone is a lower bound of what is asked.
		m.plan.Demand = &d
		m.required = capacity.Rate(d.Backlog / r.policy.Drain.Seconds())
	}
	m.each(func(v *variant) {
		if m.plan.Demand == nil {
			v.note(StageDemand, ReasonMetricsMissing, "the arrival rate is unknown")
			return
		}
		v.note(StageDemand, ReasonMetricsFound, "%.2f requests/s arrive, %.2f are expected, %.0f wait", d.Arrival, d.Forecast, d.Backlog)
	})
}

// cautious is the arrival rate that a scale-down reckons with: only fresh samples
// count, and a serving replica without them is taken to be as full as the triggers
// allow. It reports false when nothing fresh is known.
func (r *round) cautious(m *model) (capacity.Rate, bool) {
	if m.in.Arrival.Present {
		return capacity.Rate(max(0, m.in.Arrival.Value)), r.age(m.in.Arrival) == ageFresh
	}
	sum, known := 0.0, false
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		fresh := 0
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			if r.age(p.Served) != ageFresh || r.age(p.InFlightGrowth) != ageFresh {
				continue
			}
			fresh++
			sum += p.Served.Value + p.InFlightGrowth.Value
		}
		known = known || fresh > 0
		sum += float64(v.serves) * float64(max(0, v.in.Ready-fresh))
	}
	return capacity.Rate(max(0, sum)), known
}

// arrival is the rate at which requests reach the model now: as the gateway counts
// it, else completions plus the growth of what is in flight. A serving replica
// without data adds nothing: had it the mean of the others, every new replica would
// raise the demand until it is scraped, and the demand more replicas. What it really
// serves is missing from the others, and a trigger that stays on asks again.
func (r *round) arrival(m *model) (capacity.Rate, bool) {
	if r.usable(m.in.Arrival) {
		return capacity.Rate(max(0, m.in.Arrival.Value)), true
	}
	sum, known := 0.0, 0
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			if !r.usable(p.Served) {
				continue
			}
			known++
			sum += p.Served.Value
			if r.usable(p.InFlightGrowth) {
				sum += p.InFlightGrowth.Value
			}
		}
	}
	if known == 0 {
		return 0, false
	}
	return capacity.Rate(max(0, sum)), true
}

// backlog is the number of requests that wait, in the gateway and in the replicas.
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
			if w := v.in.Replicas[i].Waiting; r.usable(w) {
				sum += w.Value
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
	old := r.old.Tokens[m.key]
	if weight == 0 {
		if old.Shape.Known() {
			r.next.Tokens[m.key] = old
		}
		return old.Shape
	}
	now := capacity.TokenShape{Input: capacity.Tokens(input / weight), Output: capacity.Tokens(output / weight)}
	next := old.blend(r.snapshot.Time, now, weight)
	r.next.Tokens[m.key] = next
	return capacity.TokenShape{Input: max(now.Input, next.Shape.Input), Output: max(now.Output, next.Shape.Output)}
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

// remember keeps the arrival rates of the trend's span.
func (m *model) remember(r *round, arrival capacity.Rate, ok bool) {
	var kept []Observation
	for _, o := range r.old.Arrivals[m.key] {
		if r.snapshot.Time.Sub(o.Time) <= trendSpan*r.policy.Window {
			kept = append(kept, o)
		}
	}
	// An event round may look at the samples of the round before; they are one
	// observation.
	if sampled := r.sampled(m); ok && (len(kept) == 0 || sampled.After(kept[len(kept)-1].Sampled)) {
		kept = append(kept, Observation{Time: r.snapshot.Time, Sampled: sampled, Rate: arrival, Output: m.tokens.Output})
	}
	if len(kept) > 0 {
		r.next.Arrivals[m.key] = kept
	}
}

// sampled is the time of the newest sample that the arrival rate is made of.
func (r *round) sampled(m *model) time.Time {
	if r.usable(m.in.Arrival) {
		return m.in.Arrival.Time
	}
	var newest time.Time
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			if s := v.in.Replicas[i].Served; s.Present && s.Time.After(newest) {
				newest = s.Time
			}
		}
	}
	return newest
}

// forecast carries a rising arrival rate on until a replica that the next round
// would start serves, and over the lag of the rate itself.
func (r *round) forecast(m *model, arrival capacity.Rate) capacity.Rate {
	points := r.next.Arrivals[m.key]
	slope := max(trend(points, r.policy.Window), trend(asWork(points), r.policy.Window))
	ahead := m.lead() + min(r.policy.Interval, FastInterval) + r.policy.Window/2
	return min(arrival+capacity.Rate(slope*ahead.Seconds()), trendGrowth*arrival)
}

// asWork says the observed rates in requests of the newest length. Requests that
// become longer need as much more as requests that become more; without a length
// there is no such trend.
func asWork(points []Observation) []Observation {
	newest := points[len(points)-1].Output
	if newest <= 0 {
		return nil
	}
	work := make([]Observation, 0, len(points))
	for _, p := range points {
		if p.Output > 0 || p.Rate == 0 {
			p.Rate *= capacity.Rate(p.Output / newest)
			work = append(work, p)
		}
	}
	return work
}

// lead is how long a new replica takes to serve: the longest of the model's
// variants as seen, because it is not known yet which one grows.
func (m *model) lead() time.Duration {
	var seen time.Duration
	for _, v := range m.variants {
		seen = max(seen, v.in.Startup)
	}
	if seen == 0 {
		return defaultLead
	}
	return seen
}

// trend is the steepest slope in requests per second per second that ends in the
// newest point and is no noise, or 0. A rise that begins suddenly would drown in the
// flat past before it, so every past of at least three points is tried.
func trend(points []Observation, window time.Duration) float64 {
	steepest := 0.0
	for first := range max(0, len(points)-2) {
		steepest = max(steepest, slope(points[first:], window))
	}
	return steepest
}

// slope is the least-squares slope of the points, or 0 when they do not rise any
// more, or by no more than could be noise: a rate counted over a window of w seconds
// has, for Poisson arrivals, the standard error sqrt(rate/w).
func slope(points []Observation, window time.Duration) float64 {
	n, origin, newest := float64(len(points)), points[0].Time, points[len(points)-1]
	var sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := p.Time.Sub(origin).Seconds(), float64(p.Rate)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	varX, mean := sxx-sx*sx/n, sy/n
	if varX <= 0 || window <= 0 || float64(newest.Rate) <= mean {
		return 0
	}
	slope := (sxy - sx*mean) / varX
	rise := slope * newest.Time.Sub(origin).Seconds()
	if rise < max(trendLeast*mean, trendCertainty*math.Sqrt(mean/window.Seconds())) {
		return 0
	}
	return slope
}
