package rate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

const (
	// FitsPerRound is how many variants' profiles are fitted anew in one round: a fit
	// takes milliseconds, and what was learned changes slowly.
	FitsPerRound = 8
	// FitSpacing is the least time between two fits of one variant.
	FitSpacing = time.Minute
	// SamePoint is the relative change of what was seen up to which a fit stands, and of the
	// lengths of the requests up to which a rate within a promise does.
	SamePoint = 0.02

	// halved is the share of what it was below which a rate within a promise is confirmed first.
	halved = 0.5
	// LeastShown is the share of what replicas served while the promise was kept that one is counted
	// to serve at least: a minute in which few requests missed it may be chance. It is also the step
	// in which a rate falls that a latency model alone lowers.
	LeastShown = 0.85
	// SizesPerRound is how many rates within a promise are found in one round, for
	// variants that have none and about as many newer ones for the others, in turns. One
	// takes about half a millisecond.
	SizesPerRound = 400
	// sameBurst is the same for how the arrivals scatter, which changes the rate far less.
	sameBurst = 0.1
)

// answers reports whether the sizing still answers the same question.
func answers(s contract.Sizing, o contract.Sizing) bool {
	return s.Profile == o.Profile && s.SLO == o.SLO && s.Share == o.Share && s.PeakShare == o.PeakShare && signal.Near(s.Burst, o.Burst, sameBurst) &&
		signal.Near(float64(s.Shape.Input), float64(o.Shape.Input), SamePoint) && signal.Near(float64(s.Shape.Output), float64(o.Shape.Output), SamePoint)
}

// size bounds, in hybrid mode, what one replica of each variant is reckoned to serve
// by what it serves within the promised latency, and reports whether it does. A variant
// that cannot keep the promise is taken to serve nothing, unless none of them can. atTriggers
// are the numbers of requests in service that the triggers allow.
func (m *Model) size(atTriggers []float64) bool {
	// Both stay where this round has no use for them.
	for _, v := range m.Variants {
		v.Next.Latency, v.Next.Sizing = v.Old.Latency, v.Old.Sizing
	}
	if m.Promise.SLO == (capacity.SLO{}) {
		return false
	}
	if why := m.unsized(); !why.None() {
		m.Note(contract.StageSupply, contract.ReasonSLO, contract.SaysSaturationAlone.With(why))
		return false
	}
	m.WatchLatency()
	promised, found, able := make([]capacity.Rate, len(m.Variants)), make([]bool, len(m.Variants)), false
	profiles := m.Profiles()
	for i, v := range m.Variants {
		p := profiles[i]
		if !p.Known() {
			continue
		}
		if rate, known := v.sloRate(m, p); known {
			v.Show(m)
			rate = max(rate, LeastShown*v.Next.Sizing.Shown)
			usual := p.Steady(atTriggers[i], m.Demand.Tokens).Rate
			if v.Rate.Trigger == 0 {
				v.Rate.Trigger, v.Rate.Max = usual, usual
			} else if v.Next.Curve.Known() {
				// A borrowed model, too, says how the rate bends from what was seen.
				v.Rate.Trigger = v.seenAt(atTriggers[i], m.Demand.Tokens, p)
				v.Rate.Max = max(v.Rate.Max, v.Rate.Trigger)
			}
			least, full := LeastPromised, min(v.Rate.Trigger, usual)
			if v.Old.Sizing.Keeps {
				least = keptPromised
			}
			v.Next.Sizing.Keeps = float64(rate) > least*float64(full)
			if rate = max(rate, LeastPromised*full); !v.Next.Sizing.Keeps {
				rate = 0
			}
			promised[i], found[i] = rate*Factor(&m.Old.Attained), true
			able = able || rate > 0
		}
	}
	if !able {
		why := contract.SaysNoneMeetsSLO
		if !slices.Contains(found, true) {
			why = contract.SaysNoLatencyKnown
		}
		m.Note(contract.StageSupply, contract.ReasonSLO, contract.SaysSaturationAlone.With(why.With()))
		return false
	}
	for i, v := range m.Variants {
		if !found[i] {
			v.Note(contract.StageSupply, contract.ReasonSLO, contract.SaysLatencyUnknown.With())
			continue
		}
		v.Rate.Promised, v.Rate.Bound = promised[i], true
		if v.Rate.Unfit() {
			v.Note(contract.StageSupply, contract.ReasonSLO, contract.SaysMissesIdle.With())
		} else if was := &m.Old.Attained; was.Caution > 0 {
			v.Note(contract.StageSupply, contract.ReasonSLO, contract.SaysCountedAt.With(contract.Share(Factor(was)), AttainedShare(was)))
		}
	}
	m.TellBuckets()
	return true
}

// unsized says why the model's SLO does not size it now; nothing where it does.
func (m *Model) unsized() contract.Finding {
	switch {
	case !m.Round.Policy.Hybrid:
		return contract.SaysHybridOff.With()
	case m.Promise.CapacityOnly:
		return contract.SaysCapacityOnly.With(m.Promise.Class)
	case !m.Demand.Tokens.Known():
		return contract.SaysLengthsUnknown.With()
	}
	return contract.Finding{}
}

// sloRate is the greatest rate that one replica serves within the promise; it is not
// known before its turn to be found came.
func (v *Variant) sloRate(m *Model, profile serving.Profile) (rate capacity.Rate, known bool) {
	old := v.Old.Sizing
	known = !old.Found.IsZero()
	asked := contract.Sizing{Profile: profile, Shape: m.Demand.Tokens, SLO: m.Promise.SLO, Share: v.Round.Policy.Share, PeakShare: PeakShare(v.Round.Policy)}
	asked.Burst = serving.Shared(1, serving.Sharing(m.Demand.Now, old.Rate)).Burst
	if known && (answers(old, asked) || v.Round.Snapshot.Time.Sub(old.Found) < sizeSpacing(v.Round)) {
		return old.Rate, true
	}
	if !known {
		if v.Round.FirstSizes == SizesPerRound {
			return 0, false
		}
		v.Round.FirstSizes++
	}
	asked.Found = v.Round.Snapshot.Time
	rate, arrivals := serving.SharedRate(profile, asked.Shape, m.Demand.Now, 1, asked.SLO, asked.Share)
	asked.Rate, asked.Burst = rate, arrivals.Burst
	asked.PeakRate, _ = serving.SharedRate(profile, asked.Shape, m.Demand.Now, 1, asked.SLO, asked.PeakShare)
	if held := v.Doubt(m, &old, &asked); held {
		asked = old
	}
	v.Next.Sizing = asked
	return asked.Rate, true
}

// Doubt reports whether a rate is not believed yet that is less than it was, of the same requests and
// the same promise, so that the latency model alone says so. One that is wrong would buy a second
// fleet. Where replicas lack, less than half of it has a metrics window to show that it is true. Where
// nothing else says so, each further window without a start lowers it by one step, the smallest that
// tells anything.
func (v *Variant) Doubt(m *Model, old, found *contract.Sizing) bool {
	same, alone := *old, m.nothingLacks() && !v.misses(m.Promise.SLO)
	same.Profile, same.Burst = found.Profile, found.Burst
	least := halved * old.Rate
	if alone {
		least = LeastShown * old.Rate
	}
	switch {
	case found.Rate >= least, !answers(same, *found):
		old.Doubted = time.Time{}
		return false
	case alone && m.Starts():
		old.Doubted = time.Time{}
		return true
	}
	old.Doubted = v.Round.Since(old.Doubted)
	if v.Round.Snapshot.Time.Sub(old.Doubted) < v.Round.Policy.Window {
		return true
	}
	if alone {
		old.Rate, old.PeakRate, old.Doubted = LeastShown*old.Rate, LeastShown*old.PeakRate, v.Round.Snapshot.Time
	}
	return alone
}

// nothingLacks reports whether nothing that is counted says that replicas are missing.
func (m *Model) nothingLacks() bool {
	missed := m.Round.Age(m.In.Met.Sample) == signal.AgeFresh && m.In.Met.Value < m.Round.Policy.Share
	return !missed && m.Load.Saturated == 0 && m.Demand.Backlog <= m.WaitingShort()
}

// misses reports whether most of the variant's replicas miss the promise in the mean.
func (v *Variant) misses(slo capacity.SLO) bool {
	above := func(s contract.Sample, most capacity.Milliseconds) bool {
		return most > 0 && v.Round.Age(s) == signal.AgeFresh && 1000*s.Value > float64(most)
	}
	heard, missing := 0, 0
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		switch {
		case v.Odd.At(i):
		case above(p.ITL, slo.ITL), above(p.TTFT, slo.TTFT):
			heard, missing = heard+1, missing+1
		case v.Round.Age(p.ITL) == signal.AgeFresh, v.Round.Age(p.TTFT) == signal.AgeFresh:
			heard++
		}
	}
	return missing > heard-missing
}

// Show notes what the variant's replicas serve while the promise is kept: an estimate alone that
// says less is wrong. It is known no more once the promise is missed with as little, of other
// requests and of another version. Few requests tell less.
func (v *Variant) Show(m *Model) {
	s, kept := &v.Next.Sizing, &m.In.Met
	s.Shown, s.ShownOf = v.Old.Sizing.Shown, v.Old.Sizing.ShownOf
	if v.In.Rolling || v.Old.Sizing.SLO != m.Promise.SLO || !signal.SameShape(s.ShownOf, m.Demand.Tokens) {
		s.Shown, s.ShownOf = 0, m.Demand.Tokens
	}
	served, replicas := 0.0, 0
	for i := range v.In.Replicas {
		if p := &v.In.Replicas[i]; !v.Odd.At(i) && v.Round.Age(p.Served) == signal.AgeFresh {
			served, replicas = served+p.Served.Value, replicas+1
		}
	}
	if v.Round.Age(kept.Sample) != signal.AgeFresh || replicas == 0 {
		return
	}
	count := served * v.Round.Policy.Window.Seconds()
	each := capacity.Rate((count - signal.SettledChance*math.Sqrt(count)) / v.Round.Policy.Window.Seconds() / float64(replicas))
	switch {
	case kept.Sure >= v.Round.Policy.Share && m.Load.Saturated == 0:
		s.Shown = max(s.Shown, each)
	case kept.Value < v.Round.Policy.Share && each <= s.Shown:
		s.Shown = 0
	}
}

// sizeSpacing is the least time between two findings for one variant, so that all of
// them have their turn.
func sizeSpacing(r *signal.Round) time.Duration {
	return contract.FastInterval * time.Duration(r.Sized/SizesPerRound)
}

// Profiles are the latency models of the model's variants: what was learned, else what was
// given, else what can be borrowed from another variant, else the zero value. What is not
// learned is paced by what was seen, which is too little for a model of its own.
func (m *Model) Profiles() []serving.Profile {
	found := make([]serving.Profile, len(m.Variants))
	lenders := make([]serving.Lender, 0, len(m.Variants))
	for i, v := range m.Variants {
		p, confidence := v.In.Profile, 1.0
		switch l := &v.Next.Latency; {
		case l.Estimate.Usable():
			p, confidence = l.Estimate.Profile, l.Estimate.Confidence
		case l.Given == p && l.Pace > 0 && l.Pace != 1:
			p = p.Paced(l.Pace)
			v.Note(contract.StageSupply, contract.ReasonMetricsFound, contract.SaysPaced.With(l.Pace))
		}
		if !p.Known() {
			continue
		}
		found[i] = v.limited(p)
		if v.In.Request.Countable() == nil {
			lenders = append(lenders, serving.Lender{Name: v.In.Name, Shape: v.In.Request.Shape, Profile: p, Confidence: confidence})
		}
	}
	for i, v := range m.Variants {
		if found[i].Known() || v.In.Request.Countable() != nil {
			continue
		}
		if loan, ok := serving.Borrow(v.In.Request.Shape, lenders); ok && loan.Usable() {
			found[i] = v.limited(loan.Profile.Paced(v.Next.Latency.FittedTo.Pace(loan.Profile)))
			v.Note(contract.StageSupply, contract.ReasonBorrowed, contract.Words(loan.Reason))
		}
	}
	return found
}

// limited gives a latency model the limits of the variant's own server.
func (v *Variant) limited(p serving.Profile) serving.Profile {
	if p.BatchLimit = cmp.Or(v.BatchLimit(), p.BatchLimit); !fleet.Bears(&v.Next.Batch, p.BatchLimit, serving.BatchStated) {
		p.BatchLimit = 0
	}
	p.KVTokens = cmp.Or(v.kvTokens(), p.KVTokens)
	return p
}

// WatchLatency adds what the replicas show to what was learned of their latency.
func (m *Model) WatchLatency() {
	for _, v := range m.Variants {
		l := &v.Next.Latency
		if given := v.In.Profile; given.Known() && l.Given.Known() && given != l.Given {
			// Who states another one knows of another server.
			*l = contract.LatencyMemory{Given: given, Pace: 1, Fitted: l.Fitted}
		}
		if v.In.Rolling {
			// What is seen now may be either version.
			l.Changed = m.Round.Snapshot.Time
			continue
		}
		seen := make([]serving.Observation, 0, len(v.In.Replicas))
		for i := range v.In.Replicas {
			if !v.Odd.At(i) {
				seen = append(seen, m.latencyOf(&v.In.Replicas[i]))
			}
		}
		for _, o := range seen {
			l.Learned = l.Learned.Observe(o)
		}
		if l.Changed.IsZero() && Doubted(l, v.In.Profile, seen, m.Promise.SLO) {
			l.Changed = m.Round.Snapshot.Time
		}
	}
}

// Doubted reports whether what the replicas show now is of another server than the latency model:
// a token takes another time at most of them. What a few requests took is a third off; less
// than that tells where the promise is missed as well. Before anything was learned nothing is wrong
// with it but its pace.
func Doubted(l *contract.LatencyMemory, given serving.Profile, seen []serving.Observation, slo capacity.SLO) bool {
	model := signal.LearnedModel(l, given)
	var paces, tokens []float64
	for _, o := range seen {
		if expected := model.Steady(o.Point.Batch, o.Point.Shape).ITL; !o.Starting && expected > 0 && o.Point.ITL > 0 {
			paces, tokens = append(paces, float64(o.Point.ITL/expected)), append(tokens, float64(o.Point.ITL))
		}
	}
	if len(paces) == 0 || len(l.FittedTo.Seen) == 0 {
		return false
	}
	pace, misses := fleet.LowerMedian(paces), slo.ITL > 0 && fleet.LowerMedian(tokens) > float64(slo.ITL)
	return !signal.Same(pace, signal.WrongPace) || misses && pace > signal.SameServer
}

// latencyOf is what one replica showed of its latency; nothing is learned from the zero
// value of one that did not show all that is needed.
func (m *Model) latencyOf(p *contract.Replica) serving.Observation {
	if !m.Round.Fresh(p.Running, p.Served, p.ITL, p.Waiting) {
		return serving.Observation{}
	}
	// Who arrives independently finds as many in service as there are in the mean, and is one
	// more himself (PASTA): his latency is that of one more.
	o := serving.Observation{Time: p.Served.Time, Waiting: p.Waiting.Value, Starting: !m.Round.Steady(p), Point: serving.Point{
		Shape: m.Round.ShapeOf(p, m.Demand.Tokens), Rate: capacity.Rate(p.Served.Value), Batch: p.Running.Value + 1,
		ITL: capacity.Milliseconds(1000 * p.ITL.Value),
	}}
	if m.Round.Age(p.TTFT) == signal.AgeFresh {
		o.Point.TTFT = capacity.Milliseconds(1000 * p.TTFT.Value)
	}
	return o
}

// Fit makes latency models of what was learned, of the variants that waited longest
// for it; the next round decides with them.
func Fit(r *signal.Round, variants []*Variant) {
	var unfitted []*Variant
	for _, v := range variants {
		if l := &v.Next.Latency; r.Snapshot.Time.Sub(l.Fitted) >= FitSpacing && (l.Given != v.In.Profile && len(l.Learned.Seen) > 0 || !l.Changed.IsZero() || !l.Learned.Near(l.FittedTo, SamePoint)) {
			unfitted = append(unfitted, v)
		}
	}
	slices.SortStableFunc(unfitted, func(a, b *Variant) int {
		return a.Next.Latency.Fitted.Compare(b.Next.Latency.Fitted)
	})
	for _, v := range unfitted[:min(FitsPerRound, len(unfitted))] {
		l, lately := &v.Next.Latency, r.Snapshot.Time.Add(-r.Policy.Freshness.Ageing)
		if JudgeChange(l, v.In.Profile, lately) {
			v.Next.Curve, v.Next.Full = serving.Curve{}, contract.ObservedLimit{}
			// That was confirmed.
			v.Next.Sizing.Doubted = r.Snapshot.Time.Add(-r.Policy.Window)
		}
		l.Fitted, l.FittedTo = r.Snapshot.Time, l.Learned
		Estimate(l, v.In.Profile, l.Learned.After(lately))
	}
}

// Estimate makes a latency model of what was learned. While the given profile is right about
// what was seen lately, what took another time was seen in a slowdown that is over: it counts
// again when it is seen again.
func Estimate(l *contract.LatencyMemory, given serving.Profile, lately serving.Learned) {
	seen := l.Learned
	if given.Known() && len(lately.Seen) > 0 && signal.Same(lately.Pace(given), signal.SameServer) {
		seen = seen.Like(given, signal.WrongPace)
	}
	left := len(l.Learned.Seen) - len(seen.Seen)
	if Repace(l, given); left > 0 {
		l.Pace = 1
	}
	if e := seen.Estimate(given); e.Usable() || left > 0 {
		l.Estimate = e
	}
}

// JudgeChange finds out, where the server may have changed some time ago, whether it is another
// one: one that takes another time for a token than the estimate says. Then the estimate is paced,
// and what the one before showed is forgotten; so it is where it was too little for an estimate.
func JudgeChange(l *contract.LatencyMemory, given serving.Profile, before time.Time) bool {
	if l.Changed.IsZero() || l.Changed.After(before) {
		return false
	}
	young := l.Learned.After(l.Changed)
	if len(young.Seen) == 0 {
		return false
	}
	l.Changed = time.Time{}
	another, pace := !signal.Same(young.Pace(signal.LearnedModel(l, given)), signal.SameServer), young.Pace(l.Estimate.Profile)
	if another || !l.Estimate.Usable() {
		l.Estimate.Profile, l.Learned = l.Estimate.Profile.Paced(pace), young
	}
	return another
}

// Repace finds the pace of the given profile anew. It stands as it is until it showed to be
// wrong.
func Repace(l *contract.LatencyMemory, given serving.Profile) {
	pace := l.Learned.Pace(given)
	if wrong := !signal.Same(pace, signal.WrongPace) || l.Given == given && l.Pace != 1 && l.Pace != 0; !wrong {
		pace = 1
	}
	l.Given, l.Pace = given, pace
}
