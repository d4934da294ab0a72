package podmetrics

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// point is one value of a series, with the time of its scrape in milliseconds.
type point struct {
	at    int64
	value float64
}

// points are in the order of time.
type points []point

// span is a stretch of time in milliseconds, without its begin and with its end, as
// Prometheus has it since version 3.
type span struct{ from, to int64 }

func spanOf(at time.Time, window time.Duration) span {
	return span{from: at.Add(-window).UnixMilli(), to: at.UnixMilli()}
}

func (s span) seconds() float64 { return float64(s.to-s.from) / 1000 }

func (p points) in(s span) points {
	after := func(limit int64) int {
		i, _ := slices.BinarySearchFunc(p, limit+1, func(x point, at int64) int { return cmp.Compare(x.at, at) })
		return i
	}
	return p[after(s.from):max(after(s.from), after(s.to))]
}

// A reduction makes one number of the points within a span; it reports false when
// there are too few.
type reduction func(p points, s span) (float64, bool)

// mean is avg_over_time.
func mean(p points, _ span) (float64, bool) {
	sum := 0.0
	for _, x := range p {
		sum += x.value
	}
	return sum / float64(len(p)), len(p) > 0
}

// last is last_over_time.
func last(p points, _ span) (float64, bool) {
	if len(p) == 0 {
		return 0, false
	}
	return p[len(p)-1].value, true
}

// rate is PromQL's rate, per second: what the counter grew by between the first and
// the last point, carried on to the borders of the span where the next scrape would
// have lain beyond them (up to 1.1 times the mean distance of the scrapes), else by
// half that distance, and never to before the counter was zero. A value below the one
// before means that the counter began anew at zero.
func rate(p points, s span) (float64, bool) {
	if len(p) < 2 {
		return 0, false
	}
	first, end := p[0], p[len(p)-1]
	growth := end.value - first.value
	for i, x := range p[1:] {
		if x.value < p[i].value {
			growth += p[i].value
		}
	}
	sampled := float64(end.at-first.at) / 1000
	distance := sampled / float64(len(p)-1)
	before, after := float64(first.at-s.from)/1000, float64(s.to-end.at)/1000
	if before >= 1.1*distance {
		before = distance / 2
	}
	if growth > 0 && first.value >= 0 {
		before = min(before, sampled*first.value/growth)
	}
	if after >= 1.1*distance {
		after = distance / 2
	}
	return growth * (sampled + before + after) / sampled / s.seconds(), true
}

// slope is deriv, per second: that of the line with the least squares.
func slope(p points, _ span) (float64, bool) {
	if len(p) < 2 {
		return 0, false
	}
	var x, y, xx, xy float64
	for _, q := range p {
		t := float64(q.at-p[0].at) / 1000
		x, y, xx, xy = x+t, y+q.value, xx+t*t, xy+t*q.value
	}
	n := float64(len(p))
	return (xy - x*y/n) / (xx - x*x/n), true
}

// change is idelta: that between the last two points.
func change(p points, _ span) (float64, bool) {
	if len(p) < 2 {
		return 0, false
	}
	return p[len(p)-1].value - p[len(p)-2].value, true
}

// latest is irate, per second: a counter's rate between the last two points.
func latest(p points, s span) (float64, bool) {
	grown, ok := change(p, s)
	if !ok {
		return 0, false
	}
	if grown < 0 {
		grown = p[len(p)-1].value
	}
	return grown / interval(p), true
}

// interval is the time between the last two points in seconds.
func interval(p points) float64 { return float64(p[len(p)-1].at-p[len(p)-2].at) / 1000 }

// resets is how often a counter began anew.
func resets(p points, _ span) (float64, bool) {
	n := 0.0
	for i := 1; i < len(p); i++ {
		if p[i].value < p[i-1].value {
			n++
		}
	}
	return n, len(p) > 0
}

// sumOf and largest are how the series of one pod become one number.
func sumOf(a, b float64) float64 { return a + b }

// largest prefers any number to NaN, as PromQL's max does.
func largest(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return max(a, b)
}
