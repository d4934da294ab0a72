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
	// LeastKVUse is the least use of the KV cache from which a replica's size in
	// requests can be told.
	LeastKVUse = 0.02
)

// leastPromised is the share of its rate at the triggers that a replica must serve within
// the promise to be taken to keep it, and is counted at least; keptPromised suffices once it is. Near the edge of what a
// device can do an error of a few percent in an estimate is a factor in that rate. The rate
// at the triggers is the less of what was seen and what the latency model says: what was
// seen with a few in service tells little of that with hundreds.
const (
	LeastPromised = 0.2
	keptPromised  = 0.1
)

// Rate is what one replica of a variant serves, in requests per second. It is made once
// per variant and round.
type Rate struct {
	// Trigger is at the load that the triggers allow, and max at the fullest; 0 means
	// unknown.
	Trigger, Max capacity.Rate
	// Promised is the greatest within the promised latency, where bound.
	Promised capacity.Rate
	Bound    bool
	// Guessed is set where no profile, given or learned, says how the rate bends far from the
	// load at which it was seen.
	Guessed bool
}

// Serves is what one replica is reckoned with, by everybody: the least that binds. It is 0
// for one that cannot keep the promise that decides, and else positive once the rates of
// the model are made.
func (r Rate) Serves() capacity.Rate {
	switch {
	case !r.Bound:
		return r.Trigger
	case r.Trigger == 0:
		return r.Promised
	}
	return min(r.Trigger, r.Promised)
}

// Unfit reports whether no load is so small that a replica keeps the promise.
func (r Rate) Unfit() bool { return r.Bound && r.Promised == 0 }

// Times is the rate of a replica that is so many times as fast.
func (r Rate) Times(factor capacity.Rate) Rate {
	return Rate{Trigger: r.Serves() * factor, Max: r.Max * factor, Guessed: true}
}

// Rates makes what one replica of each variant serves. It reports whether the promise
// takes part, and whether any rate is known; where none is, all replicas count the same.
func (m *Model) Rates() (sized, rated bool) {
	m.Prices()
	shape := m.Demand.Tokens
	atTriggers := make([]float64, len(m.Variants))
	for i, v := range m.Variants {
		v.Next.Curve = v.learn(shape)
		v.Rate, atTriggers[i] = v.SeenRate(m, shape)
	}
	sized = m.size(atTriggers)
	Infer(m)
	rated = slices.ContainsFunc(m.Variants, func(v *Variant) bool { return v.Rate.Serves() > 0 })
	if !rated {
		each := m.eachHardlyAsked()
		for _, v := range m.Variants {
			v.Rate = Rate{Trigger: each, Max: each, Guessed: true}
		}
	}
	return sized, rated
}

// eachHardlyAsked is what a replica serves where all are so little asked that they show no
// rate: as full as it may be, as many times what it does now. It is 1 where nobody knows how
// full they are, as while they fill for the first time.
func (m *Model) eachHardlyAsked() capacity.Rate {
	full := capacity.Rate(m.Used() * float64(m.Ready()))
	began := slices.ContainsFunc(m.Variants, func(v *Variant) bool {
		return slices.ContainsFunc(v.In.Replicas, func(p contract.Replica) bool { return m.Round.Fledgling(&p) })
	})
	if full <= 0 || m.Demand.Now <= 0 || began {
		return 1
	}
	return max(OneMore, m.Demand.Now/full)
}

// TellSupply records what the replicas serve.
func (m *Model) TellSupply() {
	m.TellDeadQueue()
	signal.Each(m.Variants, func(v *Variant) {
		v.TellDead()
		if m.Rated {
			v.Note(contract.StageSupply, contract.ReasonMetricsFound, contract.SaysServesEach.With(v.Rate.Serves(), v.Fleet.Supply))
		} else {
			v.Note(contract.StageSupply, contract.ReasonRateUnknown, contract.SaysServesUnknown.With(v.Fleet.Supply))
		}
		if n := v.In.Current - v.Plan.Current; n > 0 {
			v.Note(contract.StageSupply, contract.ReasonMetricsFound, contract.SaysOnlyPublished.With(n))
		}
		if v.In.KVSource != serving.CacheUnknown && v.reportedKVTokens() == 0 {
			v.Note(contract.StageSupply, contract.ReasonMetricsFound, contract.SaysCacheNotReported.With(v.In.KVTokens, v.In.KVSource))
		}
	})
}

// learn adds what the replicas show to the variant's curve. What those show that are hardly asked
// is taken together: one of them completes too few requests to tell anything.
func (v *Variant) learn(shape capacity.TokenShape) serving.Curve {
	curve := v.Old.Curve
	seen := curve.Updated
	var all point
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		if !v.Odd.At(i) && v.Round.Fresh(p.Running, p.Served) && p.Served.Time.After(seen) && v.Round.Settled(p) {
			served := capacity.Rate(p.Served.Value)
			if v.Round.Age(p.InService) == signal.AgeFresh {
				served = capacity.Rate(p.Running.Value / p.InService.Value)
			}
			own := v.Round.ShapeOf(p, shape)
			curve = curve.Observe(p.Served.Time, p.Running.Value, served, own)
			all.add(p, v.Round.Window(p), served, own)
		}
	}
	if curve.Updated.Equal(seen) && all.completed >= fleet.LeastJudged {
		served := all.served / capacity.Rate(all.replicas)
		lengths := capacity.TokenShape{Input: capacity.Tokens(all.input / float64(all.served)), Output: capacity.Tokens(all.output / float64(all.served))}
		curve = curve.ObserveIdle(all.at, all.running/all.replicas, served, lengths, signal.WrongPace)
	}
	return curve
}

// point is what replicas of a variant show together.
type point struct {
	at                                          time.Time
	replicas, running, completed, input, output float64
	served                                      capacity.Rate
}

// add adds one replica that serves such requests at that rate.
func (s *point) add(p *contract.Replica, window time.Duration, served capacity.Rate, shape capacity.TokenShape) {
	s.replicas++
	s.running += p.Running.Value
	s.completed += p.Served.Value * window.Seconds()
	s.served += served
	s.input += float64(served) * float64(shape.Input)
	s.output += float64(served) * float64(shape.Output)
	if p.Served.Time.After(s.at) {
		s.at = p.Served.Time
	}
}

// SeenRate is the rate of one replica at the load that the triggers allow, which is
// the threshold minus the spare trigger as a share of what it holds, and at its
// fullest; and how many requests are in service at that load. Where nobody knows what it
// holds, it holds what one was seen to, if its server shows no cache; else both are what it
// serves now.
func (v *Variant) SeenRate(m *Model, shape capacity.TokenShape) (seen Rate, atTriggers float64) {
	share := m.Saturation.KVCacheThreshold - m.Saturation.KVSpareTrigger
	limit, running := v.Holds(shape)
	if math.IsInf(limit, 1) {
		limit, share = running, 1
		if held := v.Next.Cache.Held; v.Uncached() && held > running {
			limit, share = held, max(running/held, m.Saturation.KVCacheThreshold-m.Saturation.KVSpareTrigger)
		}
	}
	atTriggers = limit * share
	seen = Rate{Trigger: v.RateAt(m, atTriggers, shape), Max: v.RateAt(m, limit, shape)}
	seen.Guessed = !v.In.Profile.Known() && !v.usesLearned(m)
	return seen, atTriggers
}

// RateAt is the rate of one replica with n requests in service, as it was seen, else
// as its profile says; 0 means unknown. What was seen lately may be far from n, and then
// the profile says how the rate bends in between: the learned one, where there is one.
func (v *Variant) RateAt(m *Model, n float64, shape capacity.TokenShape) capacity.Rate {
	profile := v.In.Profile
	if v.usesLearned(m) {
		profile = v.Old.Latency.Estimate.Profile
	}
	if !v.Next.Curve.Known() {
		return profile.Steady(n, shape).Rate
	}
	return v.seenAt(n, shape, profile)
}

// usesLearned reports whether a profile was learned that counts.
func (v *Variant) usesLearned(m *Model) bool {
	return v.Round.Policy.Sizes(&m.Promise) && v.Old.Latency.Estimate.Usable()
}

// seenAt is the rate with n requests in service as it was seen, where the given profile is one
// observation more of how long a request takes.
func (v *Variant) seenAt(n float64, shape capacity.TokenShape, bends serving.Profile) capacity.Rate {
	seen, given := v.Next.Curve.Rate(n, shape, bends), v.In.Profile.Steady(n, shape).Rate
	if seen <= 0 || given <= 0 {
		return seen
	}
	weight := capacity.Rate(v.Next.Curve.Weight)
	return (weight + 1) / (weight/seen + 1/given)
}

// Holds is the largest number of requests in service: the batch limit, what the KV cache
// holds, or what a full replica was seen to have, whichever is least; +Inf means that none is known. Beside it is the mean
// number that is in service now.
func (v *Variant) Holds(shape capacity.TokenShape) (limit, mean float64) {
	limit = math.Inf(1)
	if b := v.BatchLimit(); b > 0 {
		limit = float64(b)
	}
	profile := v.In.Profile
	profile.KVTokens = v.kvTokens()
	limit = min(limit, profile.Concurrency(shape))
	sum, seen, running, kv := 0.0, 0, 0.0, 0.0
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		if !v.Round.Usable(p.Running) || v.Odd.At(i) {
			continue
		}
		sum, seen = sum+p.Running.Value, seen+1
		if v.Round.AgeOfShare(p.KVUse) <= signal.AgeAgeing && p.KVUse.Value > LeastKVUse {
			running, kv = running+p.Running.Value, kv+p.KVUse.Value
		}
	}
	v.Next.Holds = v.Old.Holds
	if kv > 0 && running > 0 {
		v.Next.Holds = running / kv
	}
	if v.Next.Holds > 0 && (seen == 0 || kv > 0) {
		limit = min(limit, v.Next.Holds)
	}
	if v.Next.Full = v.fullOf(shape); IsFull(&v.Next.Full) {
		limit = min(limit, v.Next.Full.InService)
	}
	return limit, sum / float64(max(1, seen))
}

// kvTokens is the size of a replica's KV cache in tokens: the least that its replicas
// report, else what its arguments or memory say, else the given profile; 0 means
// unknown.
func (v *Variant) kvTokens() capacity.Tokens {
	return cmp.Or(v.reportedKVTokens(), v.In.KVTokens, v.In.Profile.KVTokens)
}

// reportedKVTokens is the least that the replicas report; 0 means that none does.
func (v *Variant) reportedKVTokens() capacity.Tokens {
	reported := capacity.Tokens(0)
	for i := range v.In.Replicas {
		s := v.In.Replicas[i].KVTokens
		if v.Round.Age(s) != signal.AgeAbsent && s.Value > 0 && (reported == 0 || capacity.Tokens(s.Value) < reported) {
			reported = capacity.Tokens(s.Value)
		}
	}
	return reported
}

// Infer gives a variant of which nothing is known the rate of the known one of its model
// whose hardware is most alike, scaled by what its own can do; where hardware cannot be
// compared, the rate per cost of the best known one: prices follow what a machine can do;
// and where it has no price either, the least of the known ones.
func Infer(m *Model) {
	lenders := slices.DeleteFunc(slices.Clone(m.Variants), func(v *Variant) bool { return v.Rate.Serves() <= 0 })
	for _, v := range m.Variants {
		if v.Rate.Serves() > 0 || v.Rate.Unfit() || len(lenders) == 0 {
			continue
		}
		lender, factor, how := v.alike(lenders)
		if lender == nil {
			lender, factor, how = v.Priced(lenders)
		}
		if lender == nil {
			lender, factor = slices.MinFunc(lenders, func(a, b *Variant) int { return cmp.Compare(a.Rate.Serves(), b.Rate.Serves()) }), 1
			how = contract.SaysAsMuch.With(lender.In.Name)
		}
		v.Rate = lender.Rate.Times(factor)
		if v.Managed {
			v.Note(contract.StageSupply, contract.ReasonBorrowed, contract.SaysAssumed.With(how))
		}
	}
}

// alike is the lender whose hardware is most like the variant's, and how many times as
// much the variant serves; of equal ones the one that serves for less. A variant with a
// profile, which says nothing while the lengths of the requests are unknown, may be unlike
// its hardware.
func (v *Variant) alike(lenders []*Variant) (best *Variant, factor capacity.Rate, how contract.Finding) {
	if v.In.Request.Countable() != nil || v.In.Profile.Known() {
		return nil, 0, contract.Finding{}
	}
	far := func(factor float64) float64 { return math.Abs(math.Log(factor)) }
	found := 0.0
	for _, l := range lenders {
		if l.In.Request.Countable() != nil {
			continue
		}
		f, ok := serving.Faster(l.In.Request.Shape, v.In.Request.Shape)
		if ok && (best == nil || far(f) < far(found) || far(f) == far(found) && l.UnitPrice() < best.UnitPrice()) {
			best, found = l, f
		}
	}
	if best == nil {
		return nil, 0, contract.Finding{}
	}
	how = contract.SaysTimesAsMuch.With(found, best.In.Name, v.In.Request.Shape, best.In.Request.Shape)
	if v.In.Request.Shape == best.In.Request.Shape {
		how = contract.SaysAsMuchAlike.With(best.In.Name)
	}
	return best, capacity.Rate(found), how
}

// Priced is the lender that serves for the least, and the variant's price as a multiple of
// its.
func (v *Variant) Priced(lenders []*Variant) (best *Variant, factor capacity.Rate, how contract.Finding) {
	for _, l := range lenders {
		if l.In.Cost > 0 && (best == nil || l.UnitPrice() < best.UnitPrice()) {
			best = l
		}
	}
	if best == nil || v.In.Cost <= 0 {
		return nil, 0, contract.Finding{}
	}
	says := contract.SaysAsMuchPerCost
	if v.In.Unpriced || best.In.Unpriced {
		says = contract.SaysAsMuchPerMemory
	}
	return best, capacity.Rate(v.In.Cost / best.In.Cost), says.With(best.In.Name)
}
