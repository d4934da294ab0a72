package decision

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

const (
	// trendSpan is the past that a trend is read from.
	trendSpan = 75 * time.Second
	// trendCertainty is how many standard errors a rise must measure to be believed.
	trendCertainty = 3
	// trendGrowth is the most that a forecast may exceed the present rate.
	trendGrowth = 2
	// defaultLead is how long a replica is taken to start when none was seen.
	defaultLead = time.Minute
)

// demand finds the arrival rate, its trend, the token shape and the backlog.
func demand(r *round, m *model) {
	d := Demand{Tokens: r.tokens(m), Backlog: r.backlog(m)}
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
// without data is taken to be like the mean of the others.
func (r *round) arrival(m *model) (capacity.Rate, bool) {
	if r.usable(m.in.Arrival) {
		return capacity.Rate(max(0, m.in.Arrival.Value)), true
	}
	sum, known, ready := 0.0, 0, 0
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		ready += v.in.Ready
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
	return capacity.Rate(max(0, sum*float64(max(ready, known))/float64(known))), true
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
	shape := r.old.Tokens[m.key]
	if weight > 0 {
		shape = capacity.TokenShape{Input: capacity.Tokens(input / weight), Output: capacity.Tokens(output / weight)}
	}
	if shape.Known() {
		r.next.Tokens[m.key] = shape
	}
	return shape
}

// remember keeps the arrival rates of the trend's span.
func (m *model) remember(r *round, arrival capacity.Rate, ok bool) {
	var kept []Observation
	for _, o := range r.old.Arrivals[m.key] {
		if r.snapshot.Time.Sub(o.Time) < trendSpan {
			kept = append(kept, o)
		}
	}
	if ok {
		kept = append(kept, Observation{r.snapshot.Time, arrival})
	}
	if len(kept) > 0 {
		r.next.Arrivals[m.key] = kept
	}
}

// forecast carries a rising arrival rate on until a replica that is started now
// serves and the next full round can answer, and over the lag of the rate itself.
func (r *round) forecast(m *model, arrival capacity.Rate) capacity.Rate {
	slope := trend(r.next.Arrivals[m.key], r.policy.Window)
	if slope <= 0 {
		return arrival
	}
	ahead := m.lead() + r.policy.Interval + r.policy.Window/2
	return min(arrival+capacity.Rate(slope*ahead.Seconds()), trendGrowth*arrival)
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

// trend is the least-squares slope in requests per second per second, or 0 when
// the rate does not rise any more, or by no more than could be noise: a rate counted
// over a window of w seconds has, for Poisson arrivals, the standard error
// sqrt(rate/w).
func trend(points []Observation, window time.Duration) float64 {
	n := float64(len(points))
	if n < 3 || window <= 0 {
		return 0
	}
	origin := points[0].Time
	var sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := p.Time.Sub(origin).Seconds(), float64(p.Rate)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	varX := sxx - sx*sx/n
	if varX <= 0 {
		return 0
	}
	slope := (sxy - sx*sy/n) / varX
	rise := slope * points[len(points)-1].Time.Sub(origin).Seconds()
	over := float64(points[len(points)-1].Rate) > sy/n
	if !over || rise < trendCertainty*math.Sqrt(sy/n/window.Seconds()) {
		return 0
	}
	return slope
}
