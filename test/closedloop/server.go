package closedloop

import (
	"math"
	"sort"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// curve is what a replica does with n requests in service, for n up to its limit, at
// points that are closer together where n is small.
type curve struct {
	// limit is the most that is in service at once.
	limit float64
	// n and rate are the points; both rise.
	n, rate []float64
	// ttft and itl are in seconds, without waiting.
	ttft, itl []float64
	// max is the rate at the limit.
	max float64
}

const curvePoints = 128

func newCurve(p serving.Profile, m *Model, budget capacity.Tokens) *curve {
	c := &curve{limit: math.Floor(p.Concurrency(m.Shape))}
	if budget > 0 {
		// With n in service each iteration completes one in so many as a request has tokens, and
		// takes in as many prompts.
		c.limit = min(c.limit, max(1, math.Floor(float64(budget)*float64(m.Shape.Output)/float64(m.Shape.Input))))
	}
	for i := range curvePoints + 1 {
		n := c.limit * math.Pow(float64(i)/curvePoints, 2)
		if i == 0 {
			n = 1e-6 * c.limit
		}
		at := p.Steady(n, m.Shape)
		c.n, c.rate = append(c.n, n), append(c.rate, float64(at.Rate))
		c.ttft, c.itl = append(c.ttft, float64(at.TTFT)/1000), append(c.itl, float64(at.ITL)/1000)
	}
	c.max = c.rate[curvePoints]
	return c
}

// along is the value of y at x between the points of xs, and the nearest outside.
func along(xs, ys []float64, x float64) float64 {
	i := sort.SearchFloat64s(xs, x)
	if i == 0 {
		return ys[0] * max(0, x) / xs[0]
	}
	if i == len(xs) {
		return ys[len(ys)-1]
	}
	return ys[i-1] + (x-xs[i-1])/(xs[i]-xs[i-1])*(ys[i]-ys[i-1])
}

func (c *curve) rateAt(n float64) float64 { return along(c.n, c.rate, n) }
func (c *curve) inService(rate float64) float64 {
	return along(c.rate, c.n, rate)
}

// latency is the mean time to the first token, without waiting, and per further one.
func (c *curve) latency(n float64) (ttft, itl float64) {
	n = max(n, c.n[0])
	return along(c.n, c.ttft, n), along(c.n, c.itl, n)
}

// lastRequest is how little of a request is left when it is done, where no others come:
// a fluid alone would never be empty.
const lastRequest = 0.01

// queue is the requests of one replica as a fluid.
type queue struct {
	// running are in service, waiting are before it.
	running, waiting float64
	// completed counts requests; ttft, itl and service are sums of seconds over them.
	completed, ttft, itl, service float64
}

func (q *queue) inFlight() float64 { return q.running + q.waiting }

// serve lets a step of the world pass in which so many requests arrive evenly.
func (q *queue) serve(c *curve, arrived float64) {
	seconds := step.Seconds()
	before := q.inFlight()
	after := q.after(c, arrived, seconds)
	if arrived == 0 && after < lastRequest {
		after = 0
	}
	completed := max(0, before+arrived-after)
	after = before + arrived - completed
	mean := min(c.limit, (before+after)/2)
	q.running = min(c.limit, after)
	q.waiting = after - q.running
	if completed > 0 {
		// Who comes finds the mean in service, and is one more.
		ttft, itl := c.latency(mean + 1)
		q.completed += completed
		q.ttft += completed * (ttft + q.waiting/c.max)
		q.itl += completed * itl
		q.service += completed * max(mean, c.n[0]) / c.rateAt(max(mean, c.n[0]))
	}
}

// after is how many are in flight after the time: a full replica completes at its
// greatest rate, and none at a greater one; any other comes as near to the number that the
// arrivals keep in service as a request's time in service allows.
func (q *queue) after(c *curve, arrived, seconds float64) float64 {
	before := q.inFlight()
	rate := arrived / seconds
	full := before + arrived - c.max*seconds
	if rate >= c.max {
		return max(full, min(c.limit, q.nearing(c, before, c.limit, rate, seconds)))
	}
	steady := c.inService(rate)
	if before > c.limit {
		return max(steady, full)
	}
	return max(full, q.nearing(c, before, steady, rate, seconds))
}

// nearing relaxes from before to the steady number with the time in service there.
func (q *queue) nearing(c *curve, before, steady, rate, seconds float64) float64 {
	held := max(before, steady, c.n[0])
	residence := held / max(c.rateAt(held), 1e-12)
	after := steady + (before-steady)*math.Exp(-seconds/residence)
	return min(after, before+rate*seconds)
}

// takes is how many arrivals within the time bring the replica to a share of its limit,
// or above 1, to a queue of that many limits more.
func (q *queue) takes(c *curve, share, seconds float64) float64 {
	level := share * c.limit
	return max(0, c.rateAt(min(level, c.limit))*seconds+level-q.inFlight())
}
