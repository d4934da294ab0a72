package decision

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

const (
	// trendSpan is the past that a trend is read from, in metrics windows.
	trendSpan = 2
	// trendCertainty is how many standard errors a rise must measure to be believed.
	trendCertainty = 3
	// trendLeast is the least rise, as a share of the mean rate, that is carried on;
	// traffic comes in bursts, and a smaller rise is left to the triggers.
	trendLeast = 0.25
	// trendGrowth is the most that a forecast may exceed the present rate.
	trendGrowth = 3
	// jumpSettles is how many observations a jump may take until all scrapes show it.
	jumpSettles = 2
	// defaultLead is how long a replica is taken to start when none was seen.
	defaultLead = time.Minute
)

// forecast carries a rising arrival rate on until a replica that the next round
// would start serves, and over the lag of the rate itself.
func (r *round) forecast(m *model, arrival counted) capacity.Rate {
	points := settled(r.next.Arrivals[m.key])
	slope := max(trend(points, r.policy.Window), trend(asWork(points), r.policy.Window))
	ahead := m.lead() + min(r.policy.Interval, FastInterval) + arrival.span/2
	return min(arrival.rate+capacity.Rate(slope*ahead.Seconds()), trendGrowth*arrival.rate)
}

// settled are the observations since the latest jump. A step is no ramp: what was
// before it says nothing of what comes, and while it arrives scrape by scrape it only
// looks like one.
func settled(points []Observation) []Observation {
	for i := len(points) - 1; i >= 0; i-- {
		if points[i].Jumped && (i == 0 || !points[i-1].Jumped) {
			return points[min(len(points), i+jumpSettles):]
		}
	}
	return points
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
