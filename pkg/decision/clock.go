package decision

import (
	"maps"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// upTo is the memory without what is later than now: a clock that ran ahead and came back
// leaves times that would hold everything until they are reached. What was learned stays,
// as if it were of now; its times are those of samples, whose clock may always be ahead
// by up to skew. The memory itself is left as it is.
func (m *Memory) upTo(now time.Time, skew time.Duration) *Memory {
	later := func(t time.Time) bool { return t.After(now) }
	next := *m
	next.Arrivals = notLater(m.Arrivals, func(o Observation) bool { return later(o.Time) })
	next.Recommendations = notLater(m.Recommendations, func(c Recommendation) bool { return later(c.Time) })
	next.Changes = notLater(m.Changes, func(c Change) bool { return later(c.Time) })
	next.Missing = without(m.Missing, later)
	next.Refused = without(m.Refused, later)
	next.Cheaper = without(m.Cheaper, later)
	next.Blind = without(m.Blind, later)
	next.Active = without(m.Active, later)
	// A pause and a truce end later than now, but began before.
	next.Backoffs = without(m.Backoffs, func(b Backoff) bool { return later(b.Until.Add(-b.Pause)) })
	next.Overwriting = without(m.Overwriting, func(o Overwriting) bool {
		return later(o.Until.Add(-o.Truce)) || slices.ContainsFunc(o.Times, later)
	})
	sampledLater := func(t time.Time) bool { return t.After(now.Add(skew)) }
	next.Curves = mended(m.Curves, func(c serving.Curve) bool { return sampledLater(c.Updated) },
		func(c serving.Curve) serving.Curve { c.Updated = now; return c })
	next.Dispersion = mended(m.Dispersion, func(d Dispersion) bool { return later(d.Time) },
		func(d Dispersion) Dispersion { d.Time = now; return d })
	next.Tokens = mended(m.Tokens, func(t TokenMean) bool { return later(t.Time) },
		func(t TokenMean) TokenMean { t.Time = now; return t })
	next.Sizes = mended(m.Sizes, func(s Sizing) bool { return later(s.Found) },
		func(s Sizing) Sizing { s.Found = now; return s })
	next.Gateways = mended(m.Gateways, func(g Gateway) bool { return later(g.Queued) || later(g.Unseen) },
		func(g Gateway) Gateway { return Gateway{earlier(g.Queued, now), earlier(g.Unseen, now)} })
	seenLater := func(o serving.Observation) bool { return sampledLater(o.Time) }
	next.Learned = mended(m.Learned, func(l Learning) bool { return later(l.Fitted) || slices.ContainsFunc(l.Learned.Seen, seenLater) },
		func(l Learning) Learning {
			l.Fitted, l.Learned.Seen = earlier(l.Fitted, now), slices.DeleteFunc(slices.Clone(l.Learned.Seen), seenLater)
			return l
		})
	return &next
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// mended is the map with what mend makes of the values that are wrong; the same map where
// none is.
func mended[K comparable, V any](in map[K]V, wrong func(V) bool, mend func(V) V) map[K]V {
	next, cloned := in, false
	for key, value := range in {
		if wrong(value) {
			if !cloned {
				next, cloned = maps.Clone(in), true
			}
			next[key] = mend(value)
		}
	}
	return next
}

// without is the map without the values that are wrong.
func without[K comparable, V any](in map[K]V, wrong func(V) bool) map[K]V {
	next, cloned := in, false
	for key, value := range in {
		if wrong(value) {
			if !cloned {
				next, cloned = maps.Clone(in), true
			}
			delete(next, key)
		}
	}
	return next
}

// notLater are the lists without what is later.
func notLater[K comparable, V any](in map[K][]V, later func(V) bool) map[K][]V {
	return mended(in, func(list []V) bool { return slices.ContainsFunc(list, later) },
		func(list []V) []V { return slices.DeleteFunc(slices.Clone(list), later) })
}
