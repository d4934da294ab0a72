package decision

import (
	"cmp"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

const (
	// trendSpan is the past that a trend is read from, in metrics windows.
	trendSpan = 2
	// leastTrendSpan holds enough rounds to tell a ramp from a step.
	leastTrendSpan = time.Minute
	// trendCertainty is how many standard errors a rise must measure to be believed.
	trendCertainty = 3
	// trendLeast is the least rise, as a share of the mean rate, that is carried on;
	// traffic comes in bursts, and a smaller rise is left to the triggers.
	trendLeast = 0.25
	// trendGrowth is the most that a forecast may exceed the present rate.
	trendGrowth = 1.5
	// stepShare is the share of a rise from which on the two largest rises between two
	// observations make it a step: one that arrives between two scrapes shows in two.
	stepShare = 0.85
	// defaultLead is how long a replica is taken to start when none was seen.
	defaultLead = time.Minute
)

// forecast carries a rising arrival rate on until a replica that the next round
// would start serves, and over the lag of the rate itself, but no longer than it was
// seen to rise.
func (d *demand) forecast(lead time.Duration) capacity.Rate {
	ahead := lead + d.lag
	rise := max(trend(d.past, d.window, ahead, d.dispersion), trend(asWork(d.past), d.window, ahead, d.dispersion))
	return min(d.now+capacity.Rate(rise), trendGrowth*d.now)
}

// settled are the observations that a trend may be read from, and the time over which
// their rates were counted: those between scrapes where there are any, because the
// metrics window makes a ramp of every step. Where replicas count, they begin when the
// latest replica began to.
func settled(points []Observation, window time.Duration) ([]Observation, time.Duration) {
	span := time.Duration(0)
	list := make([]Observation, 0, len(points))
	for i, p := range points {
		if p.Span > 0 {
			p.Rate, span = p.Newest, max(span, p.Span)
		}
		before := points[max(0, i-1)]
		if i > 0 && (p.Span > 0) != (before.Span > 0) || !p.Gateway && p.Ready > before.Ready {
			list = list[:0]
		}
		list = append(list, p)
	}
	if span == 0 {
		span = window
	}
	return list, span
}

// asWork says the observed rates in requests of the newest length. Requests that
// become longer need as much more as requests that become more; without a length
// there is no such trend.
func asWork(points []Observation) []Observation {
	if len(points) == 0 || points[len(points)-1].Output <= 0 {
		return nil
	}
	newest := points[len(points)-1].Output
	work := make([]Observation, 0, len(points))
	for _, p := range points {
		if p.Output > 0 || p.Rate == 0 {
			p.Rate *= capacity.Rate(p.Output / newest)
			work = append(work, p)
		}
	}
	return work
}

// lead is how long a new replica takes to serve: the longest of the model's variants as
// seen, because it is not known yet which one grows. Where no start-up was seen it is no
// less than those that start have taken so far.
func (r *round) lead(m *model) time.Duration {
	seen, longest := time.Duration(0), defaultLead
	for _, v := range m.variants {
		seen = max(seen, v.in.Startup)
		for i, s := range v.fleet.of {
			if s == statePending || s == stateOverdue {
				longest = max(longest, r.snapshot.Time.Sub(v.in.Starting[i].Created))
			}
		}
	}
	return cmp.Or(seen, longest)
}

// trend is by how many requests per second the rate will have risen so far ahead, or 0
// when it does not rise by more than noise. A rise that begins suddenly would drown in
// the flat past before it, so every past of at least four points is tried, and the
// one that says the most counts; none is carried on for longer than it is.
func trend(points []Observation, window, ahead time.Duration, dispersion float64) float64 {
	if n := len(points); n < 4 || points[n-1].Span > 0 && !risen(points[n-2], points[n-1], dispersion) {
		return 0
	}
	most := 0.0
	for first := range len(points) - 3 {
		past := points[first:]
		if isStep(past) {
			continue
		}
		seen := past[len(past)-1].Time.Sub(past[0].Time)
		most = max(most, slope(past, window, dispersion)*min(ahead, seen).Seconds())
	}
	return most
}

// risen reports whether the rate between scrapes rose from one observation to the next
// by more than a standard error.
func risen(before, after Observation, dispersion float64) bool {
	return after.Rate > before.Rate+counted{rate: before.Rate, span: after.Span}.noise(dispersion)
}

// isStep reports whether nearly all of the rise came at once. What comes after a step
// is not what came before it, and while it arrives scrape by scrape it only looks like
// a ramp.
func isStep(points []Observation) bool {
	first, second := capacity.Rate(0), capacity.Rate(0)
	for i := 1; i < len(points); i++ {
		switch rise := points[i].Rate - points[i-1].Rate; {
		case rise > first:
			first, second = rise, first
		case rise > second:
			second = rise
		}
	}
	return first+second > stepShare*(points[len(points)-1].Rate-points[0].Rate)
}

// slope is the least-squares slope of the points, or 0 when they do not rise any
// more, or by no more than could be noise. A rate counted over a time of w seconds has,
// for arrivals with the index of dispersion I, the standard error sqrt(I*rate/w); that of the rise over n such
// points which do not overlap is sqrt(12*(n-1)/(n*(n+1))) times as much.
func slope(points []Observation, window time.Duration, dispersion float64) float64 {
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
	noise := math.Sqrt(dispersion * mean / window.Seconds())
	if newest.Span > 0 {
		noise *= math.Sqrt(12 * (n - 1) / (n * (n + 1)))
	}
	if rise < max(trendLeast*mean, trendCertainty*noise) {
		return 0
	}
	return slope
}
