package podmetrics

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// history is what the scrapes of one target showed lately. It is not safe for
// concurrent use.
type history struct {
	series map[shelf][]*series
	// newest is the time of the last good scrape in milliseconds, 0 before the first.
	newest int64
}

// shelf is where the series of one quantity lie, for a gateway those of one model.
type shelf struct {
	quantity modelserver.Quantity
	model    decision.ModelKey
}

// series is one series of a target.
type series struct {
	key    key
	points points
}

// append takes a scrape in and forgets what is older than the keep, but for the last
// point of each series that is not older than the lookback.
func (h *history) append(at time.Time, found exposition, keep, lookback time.Duration) {
	now := at.UnixMilli()
	if now <= h.newest { // the clock was set back: begin anew
		*h = history{}
	}
	if h.series == nil {
		h.series = map[shelf][]*series{}
	}
	h.newest = now
	taken := make(map[key]bool, len(found))
	for at, all := range h.series {
		for _, s := range all {
			if value, ok := found[s.key]; ok {
				s.points = append(s.points, point{now, value})
				taken[s.key] = true
			}
			s.points = s.points.since(now-keep.Milliseconds(), now-lookback.Milliseconds())
		}
		h.series[at] = slices.DeleteFunc(all, func(s *series) bool { return len(s.points) == 0 })
		if len(h.series[at]) == 0 {
			delete(h.series, at)
		}
	}
	for k, value := range found {
		if !taken[k] {
			at := shelf{k.quantity, k.model}
			h.series[at] = append(h.series[at], &series{key: k, points: points{{now, value}}})
		}
	}
}

// since drops points before the time, but not the last one, unless it is before the
// limit. What is dropped is overwritten, so that memory does not grow.
func (p points) since(from, limit int64) points {
	if len(p) == 0 || p[len(p)-1].at < limit {
		return nil
	}
	first := min(len(p)-len(p.in(span{from, p[len(p)-1].at})), len(p)-1)
	if first == 0 {
		return p
	}
	return p[:copy(p, p[first:])]
}

// view is a history as seen at an instant.
type view struct {
	*history
	window, lookback span
	// older and twice are the names under which a gateway showed anything before the
	// window, and twice within it; see aged.
	older, twice map[int]bool
}

// view never looks at less than all: a scrape that began just after the instant
// belongs to it.
func (h *history) view(at time.Time, window, lookback time.Duration) view {
	if newest := time.UnixMilli(h.newest); newest.After(at) {
		at = newest
	}
	return view{history: h, window: spanOf(at, window), lookback: spanOf(at, lookback)}
}

// names is how many names each quantity has.
var names = func() map[modelserver.Quantity]int {
	counts := map[modelserver.Quantity]int{}
	for _, m := range append(modelserver.OfServer(), modelserver.OfGateway()...) {
		counts[m.Quantity] = len(m.Names)
	}
	return counts
}()

// choice says which series count.
type choice struct {
	shelf
	part part
}

// of chooses a quantity of a pod.
func of(q modelserver.Quantity) choice { return choice{shelf: shelf{quantity: q}} }

// total makes one number of a quantity's series: each is reduced, and they are joined.
// Of several names the first one that shows anything counts.
func (v view) total(c choice, s span, reduce reduction, join func(a, b float64) float64) (float64, bool) {
	for name := range names[c.quantity] {
		if total, ok := v.named(c, name, s, reduce, join); ok {
			return total, true
		}
	}
	return 0, false
}

// named is the total of one name.
func (v view) named(c choice, name int, s span, reduce reduction, join func(a, b float64) float64) (total float64, found bool) {
	return v.whole(c, name, s, func(p points, s span) (float64, bool) { return reduce(p.in(s), s) }, join)
}

// whole is the total of one name, of reductions that look beyond the span.
func (v view) whole(c choice, name int, s span, reduce reduction, join func(a, b float64) float64) (total float64, found bool) {
	for _, x := range v.series[c.shelf] {
		if x.key.name != name || x.key.part != c.part {
			continue
		}
		value, ok := reduce(x.points, s)
		switch {
		case !ok:
		case !found:
			total, found = value, true
		default:
			total = join(total, value)
		}
	}
	return total, found
}

// sum is the total over the window, all series added up.
func (v view) sum(c choice, reduce reduction) (float64, bool) {
	return v.total(c, v.window, reduce, sumOf)
}

// within is the total over the window, or the last value before it.
func (v view) within(c choice, reduce reduction, join func(a, b float64) float64) (float64, bool) {
	if total, ok := v.total(c, v.window, reduce, join); ok {
		return total, true
	}
	return v.total(c, v.lookback, last, join)
}

// ratio is the mean of a histogram's observations; without one it is 0/0, which is
// NaN and so absent.
func (v view) ratio(quantity modelserver.Quantity) (float64, bool) {
	for name := range names[quantity] {
		sum, ok := v.named(choice{shelf{quantity: quantity}, sumPart}, name, v.window, rate, sumOf)
		count, counted := v.named(choice{shelf{quantity: quantity}, countPart}, name, v.window, rate, sumOf)
		if ok && counted {
			return sum / count, true
		}
	}
	return 0, false
}

// added is the sum of two quantities when both are known.
func (v view) added(a, b choice, reduce reduction) (float64, bool) {
	x, ok := v.sum(a, reduce)
	y, other := v.sum(b, reduce)
	return x + y, ok && other
}

// any reports whether a reduction of some series of a quantity, under whatever name,
// is true.
func (v view) any(c choice, reduce reduction, is func(float64) bool) bool {
	for _, x := range v.series[c.shelf] {
		if value, ok := reduce(x.points.in(v.window), v.window); ok && is(value) {
			return true
		}
	}
	return false
}

// seen is the time of the newest point of some quantities, and the time between it
// and the one before of the same series, 0 when that is unknown.
func (v view) seen(choices ...choice) (at time.Time, between time.Duration) {
	var newest int64
	for _, c := range choices {
		for _, x := range v.series[c.shelf] {
			if p := x.points.in(v.lookback); len(p) > 0 {
				newest = max(newest, p[len(p)-1].at)
			}
			if p := x.points.in(v.window); len(p) > 1 && p[len(p)-1].at == v.newest {
				between = max(between, time.Duration(p[len(p)-1].at-p[len(p)-2].at)*time.Millisecond)
			}
		}
	}
	if newest == 0 {
		return time.Time{}, 0
	}
	return time.UnixMilli(newest).UTC(), between
}
