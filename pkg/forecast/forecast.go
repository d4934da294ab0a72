package forecast

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// motion is one way in which a load may move. All amounts are shares of the load itself.
type motion struct {
	// drift is by how much the level wanders within a second, as a random walk; jump by how
	// much it may have changed at once since it was last seen; slope how fast it climbs or
	// falls in a second. Each is one standard deviation.
	drift, jump, slope float64
	// ago is set where the load moves as it did so long ago, beside what it wanders.
	ago time.Duration
	// lasts is how long a load goes on to move so, in the mean; a jump is over at once.
	lasts time.Duration
	// first is how likely a load of which one count was seen moves so, and next how likely a
	// load does that moved in another way before.
	first, next float64
}

// motions are the ways in which a load may move: it wanders, each time three times as fast
// and the shorter; it jumps; it climbs. They are few and far apart, so that no load lies far
// from one of them and what comes tells them apart. One leap does not: a load that begins is
// taken for one that climbs, a load that was there for one that jumps.
var motions = [...]motion{
	{drift: 0.001, lasts: 10 * time.Minute, first: 0.2, next: 0.1},
	{drift: 0.003, lasts: 10 * time.Minute, first: 0.04, next: 0.1},
	{drift: 0.01, lasts: 5 * time.Minute, first: 0.04, next: 0.1},
	{drift: 0.03, lasts: 2 * time.Minute, first: 0.04, next: 0.1},
	{drift: 0.1, lasts: 30 * time.Second, first: 0.04, next: 0.1},
	{drift: 0.001, jump: 1, first: 0.04, next: 0.4},
	{drift: 0.001, slope: 0.125, lasts: 20 * time.Second, first: 0.6, next: 0.1},
	{drift: 0.001, ago: HistoryAgo[0], lasts: time.Hour, next: 0.1},
	{drift: 0.001, ago: HistoryAgo[1], lasts: time.Hour, next: 0.1},
}

const (
	// firstSlope is how many times its first count, per span of that, a load may climb at
	// first: it need not have been there for the whole span. Of one that is seen to begin it is
	// how many times the error of the count, per half the span.
	firstSlope = 8
	// outputWeight is how many prompt tokens cost a replica as much as one token of the
	// answer. Alone it costs more; but prompts hold up the answers of all the others, and it is
	// they who break the promise.
	outputWeight = 2
	// dispersionHalfLife is how slowly the index of dispersion is forgotten.
	dispersionHalfLife = 10 * time.Minute
	// dispersionPrior is how many observations the assumption of independent arrivals
	// counts as.
	dispersionPrior = 2
	// dispersionTrim is how many times what is known one observation may say at most:
	// independent arrivals exceed that once in two hundred, while a step of the load,
	// which is no burst, says any number.
	dispersionTrim = 8
)

// Belief is what is believed of the rate at which work arrives at one model: how likely
// each motion is, and where the rate would be with it. It is a bank of Kalman filters of
// level and slope, mixed by how well each predicted what came (interacting multiple
// models, Blom and Bar-Shalom 1988).
type Belief struct {
	// Sampled is the time of the newest sample that it has seen; zero before the first.
	Sampled time.Time
	// Shape is that of the requests in which the levels are counted; requests of another
	// shape count for as many as they are worth.
	Shape capacity.TokenShape
	// Modes are in the order of the motions.
	Modes [len(motions)]Mode
	// Dispersion is the index of dispersion of the arrivals, variance over mean of their
	// counts: 1 for independent ones and n for those that come n at a time. Weight is the
	// number of observations behind it, which are forgotten by halves.
	Dispersion, Weight float64
	// Last is the rate that was observed last, and Span the time over which it was counted.
	Last float64
	Span time.Duration
	// Lately is where the load was, to which it may return.
	Lately Lately
}

// Mode is what would be believed if the load moved in one way.
type Mode struct {
	// Probability that it does.
	Probability float64
	// Level is the mean rate in requests per second, and Variance how unsure it is.
	Level, Variance float64
	// Slope is per second, with its variance and covariance with the level.
	Slope, SlopeVariance, Covariance float64
}

// work is what one request costs, in prompt tokens.
func work(shape capacity.TokenShape) float64 {
	return float64(shape.Input) + outputWeight*float64(shape.Output)
}

// Worth is how many requests of the belief's shape one of another is; 1 where either is
// unknown.
func (b *Belief) Worth(shape capacity.TokenShape) float64 {
	if !shape.Known() || !b.Shape.Known() {
		return 1
	}
	return work(shape) / work(b.Shape)
}

// Known reports whether anything was observed.
func (b *Belief) Known() bool { return !b.Sampled.IsZero() }

// onlyOne reports whether it was made of one count.
func (b *Belief) onlyOne() bool { return b.Lately.Seconds == 0 }

// index is the index of dispersion, at least 1.
func (b *Belief) index() float64 { return max(1, b.Dispersion) }

// Count is the rate of arrivals over a span of time.
type Count struct {
	Rate capacity.Rate
	Span time.Duration
	// Shape is that of the requests, as far as it is known.
	Shape capacity.TokenShape
	// LowerBound is set where some of the arrivals may be missing: it only raises the belief.
	LowerBound bool
}

// Observe takes in what was counted until a time. A count that is no number changes nothing.
func (b Belief) Observe(at time.Time, seen Count, history []History) Belief {
	if !b.Shape.Known() {
		b.Shape = seen.Shape
	}
	// One request of those that were counted.
	one := b.Worth(seen.Shape)
	rate, span := float64(seen.Rate)*one, seen.Span.Seconds()
	if span <= 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		return b
	}
	elapsed := max(at.Sub(b.Sampled), time.Second)
	// As long as nothing ever arrived, the first count is still to come.
	if !b.Known() || b.onlyOne() && b.Last == 0 {
		silent := 0.0
		if b.Known() {
			silent = max(elapsed.Seconds(), span)
		}
		b.Sampled, b.Last, b.Span, b.Modes = at, rate, seen.Span, atFirst(rate, span, silent, one)
		return b
	}
	if seen.LowerBound && rate <= b.mean() {
		return b
	}
	if !seen.LowerBound && elapsed >= seen.Span {
		b.watch(elapsed, rate, seen.Span, one)
	}
	courses := b.courses(elapsed, history)
	b.mix(elapsed, &courses)
	b.correct(elapsed.Seconds(), rate, span, one, &courses)
	b.Lately = b.Lately.after(elapsed, rate, b.jumped())
	b.Sampled, b.Last, b.Span = at, rate, seen.Span
	return b
}

// atFirst is what is believed after one count: the load stays about as it is, or it began
// within the time of the count and climbs on. Where nothing had arrived yet so many seconds
// before, it has climbed since: as fast as that takes, which is as unsure as it is steep, or as
// a few requests are by chance.
func atFirst(rate, span, silent, one float64) (modes [len(motions)]Mode) {
	scale := max(rate, one/span)
	for i, o := range motions {
		m := Mode{Probability: o.first, Level: rate, Variance: scale * one / span}
		steep := 0.0
		switch {
		case o.slope > 0 && silent > 0:
			// What was counted is the rate in the middle of the span.
			m.Slope = rate / (silent - span/2)
			m.Level += m.Slope * span / 2
			steep = max(m.Slope, firstSlope*math.Sqrt(m.Variance)/(span/2))
		case o.slope > 0:
			steep = firstSlope * scale / span
		}
		m.SlopeVariance = steep * steep
		modes[i] = m
	}
	return modes
}

// watch takes the difference between two rates, which were counted over times that do not
// overlap, into the index of dispersion. It has the variance I*(r1/s1 + r2/s2) for the
// rates r, the spans s in seconds and the index I; the difference, and not that from a
// mean, because the mean moves.
func (b *Belief) watch(elapsed time.Duration, rate float64, span time.Duration, one float64) {
	chance := one * (max(b.Last, one/b.Span.Seconds())/b.Span.Seconds() + max(rate, one/span.Seconds())/span.Seconds())
	difference := rate - b.Last
	seen := min(difference*difference/chance, dispersionTrim*b.index())
	kept := b.Weight * math.Exp2(-elapsed.Seconds()/dispersionHalfLife.Seconds())
	// What is not known, or was forgotten, is assumed.
	assumed := max(0, dispersionPrior-kept)
	b.Dispersion = (b.Dispersion*kept + assumed + seen) / (kept + assumed + 1)
	b.Weight = kept + assumed + 1
}

// mix lets the load begin to move in another way: every motion ends in its time, and the next
// one begins with the mean and the variance of what ended.
func (b *Belief) mix(elapsed time.Duration, courses *[len(motions)]course) {
	var stays [len(motions)]float64
	ended, possible := Mode{}, 0.0
	for i, m := range b.Modes {
		if courses[i].known {
			possible += motions[i].next
		}
		if motions[i].lasts > 0 && courses[i].known {
			stays[i] = math.Exp(-elapsed.Seconds() / motions[i].lasts.Seconds())
		}
		ended.Probability += m.Probability * (1 - stays[i])
	}
	for i, m := range b.Modes {
		share := m.Probability * (1 - stays[i]) / ended.Probability
		ended.Level += share * m.Level
		ended.Slope += share * m.Slope
	}
	for i, m := range b.Modes {
		ended.spread(m, m.Probability*(1-stays[i])/ended.Probability)
	}
	for i, m := range b.Modes {
		ended := ended
		if o := motions[i]; o.slope > 0 {
			// A load that begins to climb has a slope of its own.
			slope := o.slope * max(ended.Level, 0)
			ended.Slope, ended.SlopeVariance, ended.Covariance = 0, slope*slope, 0
		}
		if !courses[i].known {
			b.Modes[i] = Mode{}
			continue
		}
		kept, begun := m.Probability*stays[i], ended.Probability*motions[i].next/possible
		own, other := kept/(kept+begun), begun/(kept+begun)
		next := Mode{Probability: kept + begun, Level: own*m.Level + other*ended.Level, Slope: own*m.Slope + other*ended.Slope}
		next.spread(m, own)
		next.spread(ended, other)
		if motions[i].slope == 0 {
			next.Slope, next.SlopeVariance, next.Covariance = 0, 0, 0
		}
		b.Modes[i] = next
	}
}

// spread adds what another belief adds to the variances around its own means.
func (m *Mode) spread(o Mode, weight float64) {
	level, slope := o.Level-m.Level, o.Slope-m.Slope
	m.Variance += weight * (o.Variance + level*level)
	m.SlopeVariance += weight * (o.SlopeVariance + slope*slope)
	m.Covariance += weight * (o.Covariance + level*slope)
}

// correct is the step of each Kalman filter: the level moves, and what was counted draws
// it to itself; modes that expected it become more likely.
func (b *Belief) correct(elapsed, rate, span, one float64, courses *[len(motions)]course) {
	var likelihood [len(motions)]float64
	best := math.Inf(-1)
	for i := range b.Modes {
		likelihood[i] = math.Inf(-1)
		if b.Modes[i].Probability == 0 {
			continue
		}
		scale := max(b.Modes[i].Level, rate, one/span)
		m := b.Modes[i].after(i, scale, elapsed, courses[i])
		m.Variance += motions[i].jump * motions[i].jump * scale * scale
		// What was counted is the rate in the middle of the span.
		back := -span / 2
		expected := m.Level + back*m.Slope
		noise := b.index() * max((max(expected, 0)+rate)/2, one/span) * one / span
		spread := m.Variance + 2*back*m.Covariance + back*back*m.SlopeVariance + noise
		miss := rate - expected
		likelihood[i] = math.Log(m.Probability) - (math.Log(spread)+miss*miss/spread)/2
		best = max(best, likelihood[i])
		level, slope := m.Variance+back*m.Covariance, m.Covariance+back*m.SlopeVariance
		m.Level += level / spread * miss
		m.Slope += slope / spread * miss
		m.Variance -= level * level / spread
		m.Covariance -= level * slope / spread
		m.SlopeVariance -= slope * slope / spread
		b.Modes[i] = m
	}
	sum := 0.0
	for i := range b.Modes {
		b.Modes[i].Probability = math.Exp(likelihood[i] - best)
		sum += b.Modes[i].Probability
	}
	for i := range b.Modes {
		b.Modes[i].Probability /= sum
	}
}

// after is the mode some seconds later, with nothing observed meanwhile.
func (m Mode) after(i int, scale, seconds float64, c course) Mode {
	o := motions[i]
	m = m.along(c)
	lasts := o.lasts.Seconds()
	keep, reach := 0.0, 0.0
	if lasts > 0 {
		keep = math.Exp(-seconds / lasts)
		reach = lasts * (1 - keep)
	}
	m.Variance += o.drift * o.drift * scale * scale * reach
	if o.slope == 0 {
		return m
	}
	gained := o.slope * o.slope * scale * scale * (1 - keep*keep)
	m.Level += reach * m.Slope
	m.Variance += 2*reach*m.Covariance + reach*reach*m.SlopeVariance + gained*reach*reach/3
	m.Covariance = keep*(m.Covariance+reach*m.SlopeVariance) + gained*reach/2
	m.Slope *= keep
	m.SlopeVariance = keep*keep*m.SlopeVariance + gained
	return m
}

// mean is the rate that is believed now, in requests per second of the belief's shape.
func (b *Belief) mean() float64 {
	mean, _ := b.Moments()
	return mean
}

// Moments are the mean of that, at least 0, and its variance.
func (b *Belief) Moments() (mean, variance float64) {
	for _, m := range b.Modes {
		mean += m.Probability * m.Level
	}
	for _, m := range b.Modes {
		variance += m.Probability * (m.Variance + (m.Level-mean)*(m.Level-mean))
	}
	return max(mean, 0), variance
}

// Quantile is the rate that is not exceeded with the probability p after a time, in
// requests per second of the belief's shape. One count does not say how sure it is: until the
// second it is that to which any motion leads.
func (b *Belief) Quantile(p float64, ahead time.Duration, history []History) float64 {
	// One more than the motions: the load may return to where it was lately.
	var ends [len(motions) + 1]normal
	courses, most := b.courses(ahead, history), 0.0
	for i, m := range b.Modes {
		if m.Probability > 0 {
			m = m.after(i, max(0, m.Level), ahead.Seconds(), courses[i])
			ends[i], most = normalOf(m.Probability, m.Level, m.Variance), max(most, m.Level)
		}
	}
	if b.onlyOne() {
		return most
	}
	rate := quantile(ends[:], p)
	lately := normalOf(b.Lately.Returns(ahead), b.Lately.Mean, b.Lately.Variance)
	if lately.weight == 0 || lately.below(rate) >= p {
		// That it may fall back is no reason to expect less.
		return rate
	}
	for i := range ends {
		ends[i].weight *= 1 - lately.weight
	}
	ends[len(motions)] = lately
	return quantile(ends[:], p)
}
