package decision

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

const (
	// fitsPerRound is how many variants' profiles are fitted anew in one round: a fit
	// takes milliseconds, and what was learned changes slowly.
	fitsPerRound = 8
	// fitSpacing is the least time between two fits of one variant.
	fitSpacing = time.Minute
	// samePoint is the relative change of what was seen up to which a fit stands, and of the
	// lengths of the requests up to which a rate within a promise does.
	samePoint = 0.02
	// wrongPace is the factor beyond which a given profile is wrong: what a few requests took
	// is up to a third off.
	wrongPace = 1.5
	// sameServer is the factor of the time per token up to which a server is the same after a
	// rolling update: single points are a tenth off.
	sameServer = 1.15
	// halved is the share of what it was below which a rate within a promise is confirmed first.
	halved = 0.5
	// leastShown is the share of what replicas served while the promise was kept that one is counted
	// to serve at least: a minute in which few requests missed it may be chance. It is also the step
	// in which a rate falls that a latency model alone lowers.
	leastShown = 0.85
	// sizesPerRound is how many rates within a promise are found in one round, for
	// variants that have none and about as many newer ones for the others, in turns. One
	// takes about half a millisecond.
	sizesPerRound = 400
	// sameBurst is the same for how the arrivals scatter, which changes the rate far less.
	sameBurst = 0.1
)

// Learning is what is known of one variant's latency from what its replicas showed.
type Learning struct {
	// Learned holds what was seen, FittedTo what of it an estimate was last made of, and
	// Fitted is when.
	Learned, FittedTo serving.Learned
	Fitted            time.Time
	// Estimate is the last one that could be used: what was seen then does not become
	// wrong because it is long ago.
	Estimate serving.Estimate
	// Changed is since when it may be another server, after a rolling update or by what it shows, as
	// long as nobody knows.
	Changed time.Time
	// Pace is how many times as long as by Given, the profile that was given then, a token
	// took in what an estimate was last made of; 1 as long as Given is not known to be wrong.
	Given serving.Profile
	Pace  float64
}

// Sizing is the greatest rate that one replica of a variant serves within a promise,
// with everything that it was found for.
type Sizing struct {
	// Profile is the latency model, Shape the requests, SLO what is promised, and Share the
	// share of the requests that is to keep it.
	Profile serving.Profile
	Shape   capacity.TokenShape
	SLO     capacity.SLO
	Share   float64
	// PeakShare is the share that is to keep the promise at the expected peak.
	PeakShare float64
	// Burst is how bursty the arrivals are at one of the replicas that share them.
	Burst float64
	// Rate is the greatest at which Share keeps it, in requests per second.
	Rate capacity.Rate
	// PeakRate is the rate at which PeakShare keeps it.
	PeakRate capacity.Rate
	// Keeps is set while the variant is taken to keep the promise.
	Keeps bool
	// Found is when Rate was found.
	Found time.Time
	// Doubted is since when it would be less by the latency model alone (doubt).
	Doubted time.Time
	// Shown is the most that a replica was seen to serve while the promise was kept, of requests
	// of the shape ShownOf.
	Shown   capacity.Rate
	ShownOf capacity.TokenShape
}

// holds reports whether the sizing still answers the same question.
func (s Sizing) holds(o Sizing) bool {
	return s.Profile == o.Profile && s.SLO == o.SLO && s.Share == o.Share && s.PeakShare == o.PeakShare && near(s.Burst, o.Burst, sameBurst) &&
		near(float64(s.Shape.Input), float64(o.Shape.Input), samePoint) && near(float64(s.Shape.Output), float64(o.Shape.Output), samePoint)
}

// size bounds, in hybrid mode, what one replica of each variant is reckoned to serve
// by what it serves within the promised latency, and reports whether it does. A variant
// that cannot keep the promise is taken to serve nothing, unless none of them can. atTriggers
// are the numbers of requests in service that the triggers allow.
func (r *round) size(m *model, atTriggers []float64) bool {
	// Both stay where this round has no use for them.
	for _, v := range m.variants {
		v.next.Latency, v.next.Sizing = v.old.Latency, v.old.Sizing
	}
	if m.promise.SLO == (capacity.SLO{}) {
		return false
	}
	if why := r.unsized(m); why != "" {
		m.note(StageSupply, ReasonSLO, "%s: saturation alone decides", why)
		return false
	}
	r.watchLatency(m)
	promised, found, able := make([]capacity.Rate, len(m.variants)), make([]bool, len(m.variants)), false
	profiles := r.profiles(m)
	for i, v := range m.variants {
		p := profiles[i]
		if !p.Known() {
			continue
		}
		if rate, known := r.sloRate(m, v, p); known {
			r.show(m, v)
			rate = max(rate, leastShown*v.next.Sizing.Shown)
			usual := p.Steady(atTriggers[i], m.demand.tokens).Rate
			if v.rate.trigger == 0 {
				v.rate.trigger, v.rate.max = usual, usual
			} else if v.next.Curve.Known() {
				// A borrowed model, too, says how the rate bends from what was seen.
				v.rate.trigger = v.seenAt(atTriggers[i], m.demand.tokens, p)
				v.rate.max = max(v.rate.max, v.rate.trigger)
			}
			least, full := leastPromised, min(v.rate.trigger, usual)
			if v.old.Sizing.Keeps {
				least = keptPromised
			}
			v.next.Sizing.Keeps = float64(rate) > least*float64(full)
			if rate = max(rate, leastPromised*full); !v.next.Sizing.Keeps {
				rate = 0
			}
			promised[i], found[i] = rate*m.old.Attained.factor(), true
			able = able || rate > 0
		}
	}
	if !able {
		why := "no variant meets the SLO even when idle: saturation alone decides"
		if !slices.Contains(found, true) {
			why = "no latency is known well enough yet to size for the SLO: saturation alone decides"
		}
		m.note(StageSupply, ReasonSLO, "%s", why)
		return false
	}
	for i, v := range m.variants {
		if !found[i] {
			v.note(StageSupply, ReasonSLO, "its latency is not known well enough yet to size for the SLO")
			continue
		}
		v.rate.promised, v.rate.bound = promised[i], true
		if v.rate.unfit() {
			v.note(StageSupply, ReasonSLO, "misses the SLO even when idle")
		} else if was := &m.old.Attained; was.Caution > 0 {
			v.note(StageSupply, ReasonSLO, "counted at %.0f%% of what its latency model says: %s", 100*was.factor(), was.told())
		}
	}
	r.tellBuckets(m)
	return true
}

// unsized says why the model's SLO does not size it now; empty where it does.
func (r *round) unsized(m *model) string {
	switch {
	case !r.policy.Hybrid:
		return "hybrid mode is off"
	case m.promise.CapacityOnly:
		return "service class " + m.promise.Class + " sets capacity-only for the model"
	case !m.demand.tokens.Known():
		return "no request ended yet, so lengths are unknown"
	}
	return ""
}

// sloRate is the greatest rate that one replica serves within the promise; it is not
// known before its turn to be found came.
func (r *round) sloRate(m *model, v *variant, profile serving.Profile) (rate capacity.Rate, known bool) {
	old := v.old.Sizing
	known = !old.Found.IsZero()
	asked := Sizing{Profile: profile, Shape: m.demand.tokens, SLO: m.promise.SLO, Share: r.policy.Share, PeakShare: r.policy.peakShare()}
	asked.Burst = serving.Shared(1, serving.Sharing(m.demand.now, old.Rate)).Burst
	if known && (old.holds(asked) || r.snapshot.Time.Sub(old.Found) < r.sizeSpacing()) {
		return old.Rate, true
	}
	if !known {
		if r.firstSizes == sizesPerRound {
			return 0, false
		}
		r.firstSizes++
	}
	asked.Found = r.snapshot.Time
	rate, arrivals := serving.SharedRate(profile, asked.Shape, m.demand.now, 1, asked.SLO, asked.Share)
	asked.Rate, asked.Burst = rate, arrivals.Burst
	asked.PeakRate, _ = serving.SharedRate(profile, asked.Shape, m.demand.now, 1, asked.SLO, asked.PeakShare)
	if held := r.doubt(m, v, &old, &asked); held {
		asked = old
	}
	v.next.Sizing = asked
	return asked.Rate, true
}

// doubt reports whether a rate is not believed yet that is less than it was, of the same requests and
// the same promise, so that the latency model alone says so. One that is wrong would buy a second
// fleet. Where replicas lack, less than half of it has a metrics window to show that it is true. Where
// nothing else says so, each further window without a start lowers it by one step, the smallest that
// tells anything.
func (r *round) doubt(m *model, v *variant, old, found *Sizing) bool {
	same, alone := *old, r.nothingLacks(m) && !r.misses(v, m.promise.SLO)
	same.Profile, same.Burst = found.Profile, found.Burst
	least := halved * old.Rate
	if alone {
		least = leastShown * old.Rate
	}
	switch {
	case found.Rate >= least, !same.holds(*found):
		old.Doubted = time.Time{}
		return false
	case alone && m.starts():
		old.Doubted = time.Time{}
		return true
	}
	old.Doubted = r.since(old.Doubted)
	if r.snapshot.Time.Sub(old.Doubted) < r.policy.Window {
		return true
	}
	if alone {
		old.Rate, old.PeakRate, old.Doubted = leastShown*old.Rate, leastShown*old.PeakRate, r.snapshot.Time
	}
	return alone
}

// nothingLacks reports whether nothing that is counted says that replicas are missing.
func (r *round) nothingLacks(m *model) bool {
	missed := r.age(m.in.Met.Sample) == ageFresh && m.in.Met.Value < r.policy.Share
	return !missed && m.load.saturated == 0 && m.demand.backlog <= m.waitingShort()
}

// misses reports whether most of the variant's replicas miss the promise in the mean.
func (r *round) misses(v *variant, slo capacity.SLO) bool {
	above := func(s Sample, most capacity.Milliseconds) bool {
		return most > 0 && r.age(s) == ageFresh && 1000*s.Value > float64(most)
	}
	heard, missing := 0, 0
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		switch {
		case v.odd.at(i):
		case above(p.ITL, slo.ITL), above(p.TTFT, slo.TTFT):
			heard, missing = heard+1, missing+1
		case r.age(p.ITL) == ageFresh, r.age(p.TTFT) == ageFresh:
			heard++
		}
	}
	return missing > heard-missing
}

// show notes what the variant's replicas serve while the promise is kept: an estimate alone that
// says less is wrong. It is known no more once the promise is missed with as little, of other
// requests and of another version. Few requests tell less.
func (r *round) show(m *model, v *variant) {
	s, kept := &v.next.Sizing, &m.in.Met
	s.Shown, s.ShownOf = v.old.Sizing.Shown, v.old.Sizing.ShownOf
	if v.in.Rolling || v.old.Sizing.SLO != m.promise.SLO || !sameShape(s.ShownOf, m.demand.tokens) {
		s.Shown, s.ShownOf = 0, m.demand.tokens
	}
	served, replicas := 0.0, 0
	for i := range v.in.Replicas {
		if p := &v.in.Replicas[i]; !v.odd.at(i) && r.age(p.Served) == ageFresh {
			served, replicas = served+p.Served.Value, replicas+1
		}
	}
	if r.age(kept.Sample) != ageFresh || replicas == 0 {
		return
	}
	count := served * r.policy.Window.Seconds()
	each := capacity.Rate((count - settledChance*math.Sqrt(count)) / r.policy.Window.Seconds() / float64(replicas))
	switch {
	case kept.Sure >= r.policy.Share && m.load.saturated == 0:
		s.Shown = max(s.Shown, each)
	case kept.Value < r.policy.Share && each <= s.Shown:
		s.Shown = 0
	}
}

// sameShape reports whether requests have lengths that show one state.
func sameShape(a, b capacity.TokenShape) bool {
	return near(float64(a.Input), float64(b.Input), settledWithin) && near(float64(a.Output), float64(b.Output), settledWithin)
}

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*b }

// sizeSpacing is the least time between two findings for one variant, so that all of
// them have their turn.
func (r *round) sizeSpacing() time.Duration {
	return FastInterval * time.Duration(r.sized/sizesPerRound)
}

// profiles are the latency models of the model's variants: what was learned, else what was
// given, else what can be borrowed from another variant, else the zero value. What is not
// learned is paced by what was seen, which is too little for a model of its own.
func (r *round) profiles(m *model) []serving.Profile {
	found := make([]serving.Profile, len(m.variants))
	lenders := make([]serving.Lender, 0, len(m.variants))
	for i, v := range m.variants {
		p, confidence := v.in.Profile, 1.0
		switch l := &v.next.Latency; {
		case l.Estimate.Usable():
			p, confidence = l.Estimate.Profile, l.Estimate.Confidence
		case l.Given == p && l.Pace > 0 && l.Pace != 1:
			p = p.Paced(l.Pace)
			v.note(StageSupply, ReasonMetricsFound, "a token takes %.2f times as long as the given profile says", l.Pace)
		}
		if !p.Known() {
			continue
		}
		found[i] = r.limited(v, p)
		if v.in.Request.Countable() == nil {
			lenders = append(lenders, serving.Lender{Name: v.in.Name, Shape: v.in.Request.Shape, Profile: p, Confidence: confidence})
		}
	}
	for i, v := range m.variants {
		if found[i].Known() || v.in.Request.Countable() != nil {
			continue
		}
		if loan, ok := serving.Borrow(v.in.Request.Shape, lenders); ok && loan.Usable() {
			found[i] = r.limited(v, loan.Profile.Paced(v.next.Latency.FittedTo.Pace(loan.Profile)))
			v.note(StageSupply, ReasonBorrowed, "%s", loan.Reason)
		}
	}
	return found
}

// limited gives a latency model the limits of the variant's own server.
func (r *round) limited(v *variant, p serving.Profile) serving.Profile {
	if p.BatchLimit = cmp.Or(v.batchLimit(), p.BatchLimit); !v.next.Batch.bears(p.BatchLimit, serving.BatchStated) {
		p.BatchLimit = 0
	}
	p.KVTokens = cmp.Or(r.kvTokens(v), p.KVTokens)
	return p
}

// watchLatency adds what the replicas show to what was learned of their latency.
func (r *round) watchLatency(m *model) {
	for _, v := range m.variants {
		l := &v.next.Latency
		if given := v.in.Profile; given.Known() && l.Given.Known() && given != l.Given {
			// Who states another one knows of another server.
			*l = Learning{Given: given, Pace: 1, Fitted: l.Fitted}
		}
		if v.in.Rolling {
			// What is seen now may be either version.
			l.Changed = r.snapshot.Time
			continue
		}
		seen := make([]serving.Observation, 0, len(v.in.Replicas))
		for i := range v.in.Replicas {
			if !v.odd.at(i) {
				seen = append(seen, r.latencyOf(m, &v.in.Replicas[i]))
			}
		}
		for _, o := range seen {
			l.Learned = l.Learned.Observe(o)
		}
		if l.Changed.IsZero() && l.doubted(v.in.Profile, seen, m.promise.SLO) {
			l.Changed = r.snapshot.Time
		}
	}
}

// doubted reports whether what the replicas show now is of another server than the latency model:
// a token takes another time at most of them. What a few requests took is a third off; less
// than that tells where the promise is missed as well. Before anything was learned nothing is wrong
// with it but its pace.
func (l *Learning) doubted(given serving.Profile, seen []serving.Observation, slo capacity.SLO) bool {
	model := l.model(given)
	var paces, tokens []float64
	for _, o := range seen {
		if expected := model.Steady(o.Point.Batch, o.Point.Shape).ITL; !o.Starting && expected > 0 && o.Point.ITL > 0 {
			paces, tokens = append(paces, float64(o.Point.ITL/expected)), append(tokens, float64(o.Point.ITL))
		}
	}
	if len(paces) == 0 || len(l.FittedTo.Seen) == 0 {
		return false
	}
	pace, misses := lowerMedian(paces), slo.ITL > 0 && lowerMedian(tokens) > float64(slo.ITL)
	return !same(pace, wrongPace) || misses && pace > sameServer
}

// model is the latency model as it is believed now: what was learned, else what was given at the
// pace that was seen.
func (l *Learning) model(given serving.Profile) serving.Profile {
	switch {
	case l.Estimate.Usable():
		return l.Estimate.Profile
	case l.Given == given && l.Pace > 0:
		return given.Paced(l.Pace)
	}
	return given
}

// latencyOf is what one replica showed of its latency; nothing is learned from the zero
// value of one that did not show all that is needed.
func (r *round) latencyOf(m *model, p *Replica) serving.Observation {
	if !r.fresh(p.Running, p.Served, p.ITL, p.Waiting) {
		return serving.Observation{}
	}
	// Who arrives independently finds as many in service as there are in the mean, and is one
	// more himself (PASTA): his latency is that of one more.
	o := serving.Observation{Time: p.Served.Time, Waiting: p.Waiting.Value, Starting: !r.steady(p), Point: serving.Point{
		Shape: r.shapeOf(p, m.demand.tokens), Rate: capacity.Rate(p.Served.Value), Batch: p.Running.Value + 1,
		ITL: capacity.Milliseconds(1000 * p.ITL.Value),
	}}
	if r.age(p.TTFT) == ageFresh {
		o.Point.TTFT = capacity.Milliseconds(1000 * p.TTFT.Value)
	}
	return o
}

// fit makes latency models of what was learned, of the variants that waited longest
// for it; the next round decides with them.
func (r *round) fit() {
	var unfitted []*variant
	r.each(func(v *variant) {
		if l := &v.next.Latency; r.snapshot.Time.Sub(l.Fitted) >= fitSpacing && (l.Given != v.in.Profile && len(l.Learned.Seen) > 0 || !l.Changed.IsZero() || !l.Learned.Near(l.FittedTo, samePoint)) {
			unfitted = append(unfitted, v)
		}
	})
	slices.SortStableFunc(unfitted, func(a, b *variant) int {
		return a.next.Latency.Fitted.Compare(b.next.Latency.Fitted)
	})
	for _, v := range unfitted[:min(fitsPerRound, len(unfitted))] {
		l, lately := &v.next.Latency, r.snapshot.Time.Add(-r.policy.Freshness.Ageing)
		if l.judgeChange(v.in.Profile, lately) {
			v.next.Curve, v.next.Full = serving.Curve{}, Full{}
			// That was confirmed.
			v.next.Sizing.Doubted = r.snapshot.Time.Add(-r.policy.Window)
		}
		l.Fitted, l.FittedTo = r.snapshot.Time, l.Learned
		l.estimate(v.in.Profile, l.Learned.After(lately))
	}
}

// estimate makes a latency model of what was learned. While the given profile is right about
// what was seen lately, what took another time was seen in a slowdown that is over: it counts
// again when it is seen again.
func (l *Learning) estimate(given serving.Profile, lately serving.Learned) {
	seen := l.Learned
	if given.Known() && len(lately.Seen) > 0 && same(lately.Pace(given), sameServer) {
		seen = seen.Like(given, wrongPace)
	}
	left := len(l.Learned.Seen) - len(seen.Seen)
	if l.repace(given); left > 0 {
		l.Pace = 1
	}
	if e := seen.Estimate(given); e.Usable() || left > 0 {
		l.Estimate = e
	}
}

// same reports whether a pace is 1 within a factor.
func same(pace, factor float64) bool { return max(pace, 1/pace) <= factor }

// judgeChange finds out, where the server may have changed some time ago, whether it is another
// one: one that takes another time for a token than the estimate says. Then the estimate is paced,
// and what the one before showed is forgotten; so it is where it was too little for an estimate.
func (l *Learning) judgeChange(given serving.Profile, before time.Time) bool {
	if l.Changed.IsZero() || l.Changed.After(before) {
		return false
	}
	young := l.Learned.After(l.Changed)
	if len(young.Seen) == 0 {
		return false
	}
	l.Changed = time.Time{}
	another, pace := !same(young.Pace(l.model(given)), sameServer), young.Pace(l.Estimate.Profile)
	if another || !l.Estimate.Usable() {
		l.Estimate.Profile, l.Learned = l.Estimate.Profile.Paced(pace), young
	}
	return another
}

// repace finds the pace of the given profile anew. It stands as it is until it showed to be
// wrong.
func (l *Learning) repace(given serving.Profile) {
	pace := l.Learned.Pace(given)
	if wrong := !same(pace, wrongPace) || l.Given == given && l.Pace != 1 && l.Pace != 0; !wrong {
		pace = 1
	}
	l.Given, l.Pace = given, pace
}
