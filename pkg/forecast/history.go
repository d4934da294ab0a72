package forecast

import (
	"math"
	"time"
)

const (
	// HistoryStep is the time over which a rate of a History is counted. A shorter one says
	// more exactly when a load rose, and less exactly by how much.
	HistoryStep = 5 * time.Minute
	// HistoryBehind is from how far before the present time of day a History reaches.
	HistoryBehind = 10 * time.Minute
	// HistoryAhead is how far a History reaches beyond it.
	HistoryAhead = 2 * time.Hour
	// historyScale is how many times as large as on an earlier day a load may be to grow as
	// many times as much. One that is larger yet has more to it than that day had: ten
	// requests that became a thousand say nothing of it.
	historyScale = 2
	// historyPeak is how many times as much as before and after it one step may count. More is
	// no load that people's hours bring, but a counter that was taken for another one.
	historyPeak = 10
)

// HistoryAgo says how long ago a load may have moved as it does now: people and their
// machines keep the hours of the day and the days of the week.
var HistoryAgo = [...]time.Duration{24 * time.Hour, 7 * 24 * time.Hour}

// History is the rate at which a model was asked for around the present time of day, some
// time ago. Only how it grew counts: a day of twice the size is the same day.
type History struct {
	// Ago is how long ago that was.
	Ago time.Duration
	// From is the beginning of the first count, and Step the time over which each was made; they
	// follow one another.
	From time.Time
	Step time.Duration
	// Rates are in requests per second; NaN means unknown.
	Rates []float64
}

// course is how a load went on some time ago: the rate that it had and by how much that
// changed, in requests per second, and the variance of the change. It is zero where a load
// moves in any other way.
type course struct {
	before, change, variance float64
	// known is set unless a history is needed for it that nobody knows.
	known bool
}

// courses are those of the motions from the newest sample on.
func (b *Belief) courses(elapsed time.Duration, history []History) (all [len(motions)]course) {
	for i, o := range motions {
		if o.ago == 0 {
			all[i].known = true
			continue
		}
		for _, h := range history {
			if h.Ago == o.ago {
				all[i] = h.course(b.Sampled.Add(-o.ago), elapsed, b.index())
			}
		}
	}
	return all
}

// course is how the load went on from an instant, with so high an index of dispersion.
func (h *History) course(from time.Time, elapsed time.Duration, index float64) course {
	before, after := h.rate(from), h.rate(from.Add(elapsed))
	if !(before > 0 && after > 0) {
		return course{}
	}
	// Both are counted, and from the same arrivals where they overlap.
	apart := min(1, elapsed.Seconds()/h.Step.Seconds())
	return course{before: before, change: after - before, variance: apart * apart * index * (before + after) / h.Step.Seconds(), known: true}
}

// along is a load some time later that went on so.
func (m Mode) along(c course) Mode {
	if c.before == 0 {
		return m
	}
	times := max(0, m.Level/c.before)
	if times < historyScale {
		growth := 1 + c.change/c.before
		m.Variance *= growth * growth
	}
	times = min(times, historyScale)
	m.Level += times * c.change
	m.Variance += times * times * c.variance
	return m
}

// rate is that of a step around an instant; NaN where it is unknown.
func (h *History) rate(around time.Time) float64 {
	from := float64(around.Sub(h.From))/float64(h.Step) - 0.5
	i := int(math.Floor(from))
	if i < 0 || i+1 >= len(h.Rates) {
		return math.NaN()
	}
	part := from - float64(i)
	return h.count(i)*(1-part) + h.count(i+1)*part
}

// count is the rate of one step; NaN where it is unknown.
func (h *History) count(i int) float64 {
	if i > 0 && i+1 < len(h.Rates) && h.Rates[i] > historyPeak*max(h.Rates[i-1], h.Rates[i+1]) {
		return math.NaN()
	}
	return h.Rates[i]
}

// LikeEarlier is how likely the load moves as on an earlier day.
func (b *Belief) LikeEarlier() float64 {
	sum := 0.0
	for i, o := range motions {
		if o.ago > 0 {
			sum += b.Modes[i].Probability
		}
	}
	return sum
}
