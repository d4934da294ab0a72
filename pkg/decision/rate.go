package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

const (
	// leastKVUse is the least use of the KV cache from which a replica's size in
	// requests can be told.
	leastKVUse = 0.02
)

// leastPromised is the share of its rate at the triggers that a replica must serve within
// the promise to be taken to keep it, and is counted at least; keptPromised suffices once it is. Near the edge of what a
// device can do an error of a few percent in an estimate is a factor in that rate. The rate
// at the triggers is the less of what was seen and what the latency model says: what was
// seen with a few in service tells little of that with hundreds.
const (
	leastPromised = 0.2
	keptPromised  = 0.1
)

// rate is what one replica of a variant serves, in requests per second. It is made once
// per variant and round.
type rate struct {
	// trigger is at the load that the triggers allow, and max at the fullest; 0 means
	// unknown.
	trigger, max capacity.Rate
	// promised is the greatest within the promised latency, where bound.
	promised capacity.Rate
	bound    bool
	// guessed is set where no profile, given or learned, says how the rate bends far from the
	// load at which it was seen.
	guessed bool
}

// serves is what one replica is reckoned with, by everybody: the least that binds. It is 0
// for one that cannot keep the promise that decides, and else positive once the rates of
// the model are made.
func (r rate) serves() capacity.Rate {
	switch {
	case !r.bound:
		return r.trigger
	case r.trigger == 0:
		return r.promised
	}
	return min(r.trigger, r.promised)
}

// unfit reports whether no load is so small that a replica keeps the promise.
func (r rate) unfit() bool { return r.bound && r.promised == 0 }

// times is the rate of a replica that is so many times as fast.
func (r rate) times(factor capacity.Rate) rate {
	return rate{trigger: r.serves() * factor, max: r.max * factor, guessed: true}
}

// rates makes what one replica of each variant serves. It reports whether the promise
// takes part, and whether any rate is known; where none is, all replicas count the same.
func (r *round) rates(m *model) (sized, rated bool) {
	m.prices()
	shape := m.demand.tokens
	atTriggers := make([]float64, len(m.variants))
	for i, v := range m.variants {
		v.next.Curve = r.learn(v, shape)
		v.rate, atTriggers[i] = r.seenRate(m, v, shape)
	}
	sized = r.size(m, atTriggers)
	infer(m)
	rated = slices.ContainsFunc(m.variants, func(v *variant) bool { return v.rate.serves() > 0 })
	if !rated {
		each := r.eachHardlyAsked(m)
		for _, v := range m.variants {
			v.rate = rate{trigger: each, max: each, guessed: true}
		}
	}
	return sized, rated
}

// eachHardlyAsked is what a replica serves where all are so little asked that they show no
// rate: as full as it may be, as many times what it does now. It is 1 where nobody knows how
// full they are, as while they fill for the first time.
func (r *round) eachHardlyAsked(m *model) capacity.Rate {
	full := capacity.Rate(m.used() * float64(m.ready()))
	began := slices.ContainsFunc(m.variants, func(v *variant) bool {
		return slices.ContainsFunc(v.in.Replicas, func(p Replica) bool { return r.fledgling(&p) })
	})
	if full <= 0 || m.demand.now <= 0 || began {
		return 1
	}
	return max(oneMore, m.demand.now/full)
}

// tellSupply records what the replicas serve.
func (r *round) tellSupply(m *model) {
	r.tellDeadQueue(m)
	m.each(func(v *variant) {
		v.tellDead()
		if m.rated {
			v.note(StageSupply, ReasonMetricsFound, "a replica serves %s req/s; %s as supply", perSecond(v.rate.serves()), plural(v.fleet.supply, "replica counts", "replicas count"))
		} else {
			v.note(StageSupply, ReasonRateUnknown, "it is not known yet what a replica serves; %s as supply", plural(v.fleet.supply, "replica counts", "replicas count"))
		}
		if n := v.in.Current - v.plan.Current; n > 0 {
			v.note(StageSupply, ReasonMetricsFound, "%s only published in wva_desired_replicas; whoever scales by it has not acted yet", plural(n, "of them is", "of them are"))
		}
		if v.in.KVSource != serving.CacheUnknown && r.reportedKVTokens(v) == 0 {
			v.note(StageSupply, ReasonMetricsFound, "KV cache not reported by the server: %.0f tokens from %s", v.in.KVTokens, v.in.KVSource)
		}
	})
}

// learn adds what the replicas show to the variant's curve.
func (r *round) learn(v *variant, shape capacity.TokenShape) serving.Curve {
	curve := v.old.Curve
	seen := curve.Updated
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if !v.odd.at(i) && r.fresh(p.Running, p.Served) && p.Served.Time.After(seen) && r.settled(p) {
			served := capacity.Rate(p.Served.Value)
			if r.age(p.InService) == ageFresh {
				served = capacity.Rate(p.Running.Value / p.InService.Value)
			}
			curve = curve.Observe(p.Served.Time, p.Running.Value, served, r.shapeOf(p, shape))
		}
	}
	return curve
}

// shapeOf is the shape of the requests that the replica completed, which is what
// its time in service belongs to; the model's where it is not known.
func (r *round) shapeOf(p *Replica, model capacity.TokenShape) capacity.TokenShape {
	own := capacity.TokenShape{Input: capacity.Tokens(p.Input.Value), Output: capacity.Tokens(p.Output.Value)}
	if r.fresh(p.Input, p.Output) && own.Known() {
		return own
	}
	return model
}

// seenRate is the rate of one replica at the load that the triggers allow, which is
// the threshold minus the spare trigger as a share of what it holds, and at its
// fullest; and how many requests are in service at that load. Where nobody knows what it
// holds, it holds what one was seen to, if its server shows no cache; else both are what it
// serves now.
func (r *round) seenRate(m *model, v *variant, shape capacity.TokenShape) (seen rate, atTriggers float64) {
	share := m.saturation.KVCacheThreshold - m.saturation.KVSpareTrigger
	limit, running := r.holds(v, shape)
	if math.IsInf(limit, 1) {
		limit, share = running, 1
		if held := v.next.Cache.Held; r.uncached(v) && held > running {
			limit, share = held, max(running/held, m.saturation.KVCacheThreshold-m.saturation.KVSpareTrigger)
		}
	}
	atTriggers = limit * share
	seen = rate{trigger: r.rateAt(m, v, atTriggers, shape), max: r.rateAt(m, v, limit, shape)}
	seen.guessed = !v.in.Profile.Known() && !r.usesLearned(m, v)
	return seen, atTriggers
}

// rateAt is the rate of one replica with n requests in service, as it was seen, else
// as its profile says; 0 means unknown. What was seen lately may be far from n, and then
// the profile says how the rate bends in between: the learned one, where there is one.
func (r *round) rateAt(m *model, v *variant, n float64, shape capacity.TokenShape) capacity.Rate {
	profile := v.in.Profile
	if r.usesLearned(m, v) {
		profile = v.old.Latency.Estimate.Profile
	}
	if !v.next.Curve.Known() {
		return profile.Steady(n, shape).Rate
	}
	return v.seenAt(n, shape, profile)
}

// usesLearned reports whether a profile was learned that counts.
func (r *round) usesLearned(m *model, v *variant) bool {
	return r.policy.sizes(&m.promise) && v.old.Latency.Estimate.Usable()
}

// seenAt is the rate with n requests in service as it was seen, where the given profile is one
// observation more of how long a request takes.
func (v *variant) seenAt(n float64, shape capacity.TokenShape, bends serving.Profile) capacity.Rate {
	seen, given := v.next.Curve.Rate(n, shape, bends), v.in.Profile.Steady(n, shape).Rate
	if seen <= 0 || given <= 0 {
		return seen
	}
	weight := capacity.Rate(v.next.Curve.Weight)
	return (weight + 1) / (weight/seen + 1/given)
}

// holds is the largest number of requests in service: the batch limit, what the KV cache
// holds, or what a full replica was seen to have, whichever is least; +Inf means that none is known. Beside it is the mean
// number that is in service now.
func (r *round) holds(v *variant, shape capacity.TokenShape) (limit, mean float64) {
	limit = math.Inf(1)
	if b := v.batchLimit(); b > 0 {
		limit = float64(b)
	}
	profile := v.in.Profile
	profile.KVTokens = r.kvTokens(v)
	limit = min(limit, profile.Concurrency(shape))
	sum, seen, running, kv := 0.0, 0, 0.0, 0.0
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if !r.usable(p.Running) || v.odd.at(i) {
			continue
		}
		sum, seen = sum+p.Running.Value, seen+1
		if r.ageOfShare(p.KVUse) <= ageAgeing && p.KVUse.Value > leastKVUse {
			running, kv = running+p.Running.Value, kv+p.KVUse.Value
		}
	}
	v.next.Holds = v.old.Holds
	if kv > 0 && running > 0 {
		v.next.Holds = running / kv
	}
	if v.next.Holds > 0 && (seen == 0 || kv > 0) {
		limit = min(limit, v.next.Holds)
	}
	if v.next.Full = r.fullOf(v, shape); v.next.Full.known() {
		limit = min(limit, v.next.Full.InService)
	}
	return limit, sum / float64(max(1, seen))
}

// kvTokens is the size of a replica's KV cache in tokens: the least that its replicas
// report, else what its arguments or memory say, else the given profile; 0 means
// unknown.
func (r *round) kvTokens(v *variant) capacity.Tokens {
	return cmp.Or(r.reportedKVTokens(v), v.in.KVTokens, v.in.Profile.KVTokens)
}

// reportedKVTokens is the least that the replicas report; 0 means that none does.
func (r *round) reportedKVTokens(v *variant) capacity.Tokens {
	reported := capacity.Tokens(0)
	for i := range v.in.Replicas {
		s := v.in.Replicas[i].KVTokens
		if r.age(s) != ageAbsent && s.Value > 0 && (reported == 0 || capacity.Tokens(s.Value) < reported) {
			reported = capacity.Tokens(s.Value)
		}
	}
	return reported
}

// infer gives a variant of which nothing is known the rate of the known one of its model
// whose hardware is most alike, scaled by what its own can do; where hardware cannot be
// compared, the rate per cost of the best known one: prices follow what a machine can do;
// and where it has no price either, the least of the known ones.
func infer(m *model) {
	lenders := slices.DeleteFunc(slices.Clone(m.variants), func(v *variant) bool { return v.rate.serves() <= 0 })
	for _, v := range m.variants {
		if v.rate.serves() > 0 || v.rate.unfit() || len(lenders) == 0 {
			continue
		}
		lender, factor, how := v.alike(lenders)
		if lender == nil {
			lender, factor, how = v.priced(lenders)
		}
		if lender == nil {
			lender, factor = slices.MinFunc(lenders, func(a, b *variant) int { return cmp.Compare(a.rate.serves(), b.rate.serves()) }), 1
			how = "as much as " + lender.in.Name
		}
		v.rate = lender.rate.times(factor)
		if v.managed {
			v.note(StageSupply, ReasonBorrowed, "no observations yet; assumed to serve %s", how)
		}
	}
}

// alike is the lender whose hardware is most like the variant's, and how many times as
// much the variant serves; of equal ones the one that serves for less. A variant with a
// profile, which says nothing while the lengths of the requests are unknown, may be unlike
// its hardware.
func (v *variant) alike(lenders []*variant) (best *variant, factor capacity.Rate, how string) {
	if v.in.Request.Countable() != nil || v.in.Profile.Known() {
		return nil, 0, ""
	}
	far := func(factor float64) float64 { return math.Abs(math.Log(factor)) }
	found := 0.0
	for _, l := range lenders {
		if l.in.Request.Countable() != nil {
			continue
		}
		f, ok := serving.Faster(l.in.Request.Shape, v.in.Request.Shape)
		if ok && (best == nil || far(f) < far(found) || far(f) == far(found) && l.unitPrice() < best.unitPrice()) {
			best, found = l, f
		}
	}
	if best == nil {
		return nil, 0, ""
	}
	how = fmt.Sprintf("%.2f times as much as %s (%s against %s)", found, best.in.Name, v.in.Request.Shape, best.in.Request.Shape)
	if v.in.Request.Shape == best.in.Request.Shape {
		how = fmt.Sprintf("as much as %s, on the same hardware", best.in.Name)
	}
	return best, capacity.Rate(found), how
}

// priced is the lender that serves for the least, and the variant's price as a multiple of
// its.
func (v *variant) priced(lenders []*variant) (best *variant, factor capacity.Rate, how string) {
	for _, l := range lenders {
		if l.in.Cost > 0 && (best == nil || l.unitPrice() < best.unitPrice()) {
			best = l
		}
	}
	if best == nil || v.in.Cost <= 0 {
		return nil, 0, ""
	}
	return best, capacity.Rate(v.in.Cost / best.in.Cost), fmt.Sprintf("as much per cost as %s", best.in.Name)
}
