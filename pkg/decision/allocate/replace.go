package allocate

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// SwitchesPerRound bounds how many models switch variants in one round: saving is no
// emergency, and a new price must not turn a whole cluster over at once.
const SwitchesPerRound = 16

// switchLeast is the least saving, as a share of what the replicas cost that could stay,
// for which a model switches. Below it the needs of the next minutes decide, and these go
// both ways.
const switchLeast = 0.05

// ReplaceMix starts replicas of variants that serve the same for less, where their
// start-up pays within the horizon and did so for as long as a scale-down waits, or at once
// where another model lacks the room of what they replace; the dearer ones go when the new
// ones serve and the scale-down's window allows it. It returns the mix that is gone to, which
// may take many rounds: it is judged by all that fit, and started as fast as scaleUp allows.
// It reports whether any start, which they do only where they may, and not while the model's
// replicas change already: that would be judged by what is about to be different. A round
// that cannot judge it has not found otherwise.
func ReplaceMix(r *limit.Round, m *limit.Model, ideal map[*limit.Variant]int, may bool) (mix map[*limit.Variant]int, begins bool) {
	if m.Evidence != signal.EvidenceFull || r.Policy.Horizon <= 0 || !m.Rated && m.Need.Least > 0 {
		return nil, false
	}
	candidates, rateNeeded := MixOf(m)
	began := len(r.Placed)
	// They may show to serve a little less than they are taken to.
	rateNeeded *= 1 + rate.SamePoint
	best := CheapestAllowed(r, candidates, swapsOf(r, m, candidates, r.Eventually), rateNeeded, func(v *limit.Variant) int { return v.Target }, ideal, false, func([]int) {})
	change := ChangeTo(candidates, best.Replicas)
	mix = change.Mix
	// Another model that lacks the room does not wait.
	pays := PaysOff(m, candidates, mix, &best) && (change.lacked || !tooSoon(r, m, mix))
	if may = may && !IsChanging(m); may {
		m.Next.Cheaper = time.Time{}
		if pays {
			m.Next.Cheaper = r.Since(m.Old.Cheaper)
		}
	}
	// A saving waits; another model that lacks the room does not.
	stays := pays && !m.Next.Cheaper.IsZero() && (change.lacked || !slices.ContainsFunc(candidates, func(v *limit.Variant) bool {
		return r.Snapshot.Time.Sub(m.Next.Cheaper) < v.Policy.Down.Window
	}))
	if !stays || !may {
		TakeBack(r, began)
	}
	if may && !pays {
		tellDearer(r, m, candidates, rateNeeded)
	}
	if !stays {
		return nil, false
	}
	return mix, may && startMix(r, m, candidates, &change)
}

// MixChange is a change to another mix of variants: what it costs per hour, what the replicas
// that are there do, and why it is made; lacked is set where another model lacks their room.
// Of variants without a price, then and now say which devices they take.
type MixChange struct {
	Mix            map[*limit.Variant]int
	is, was        capacity.Cost
	why, then, now contract.Finding
	lacked         bool
}

// ChangeTo is the change to so many replicas of the candidates.
func ChangeTo(candidates []*limit.Variant, replicas []int) MixChange {
	c := MixChange{Mix: make(map[*limit.Variant]int, len(candidates)), why: contract.SaysCheaperMix.With()}
	if Unpriced(candidates) {
		c.why, c.then, c.now = contract.SaysSmallerMix.With(), UnpricedMix(candidates, replicas), UnpricedMix(candidates, targetsOf(candidates))
	}
	for i, v := range candidates {
		c.Mix[v] = replicas[i]
		c.is, c.was = c.is+v.In.Cost*capacity.Cost(replicas[i]), c.was+v.In.Cost*capacity.Cost(v.Target)
		if v.ScarceFor != nil && replicas[i] < v.Target {
			c.why, c.lacked = contract.SaysNeedsRoom.With(v.ScarceFor.As(v.Key.Namespace), v.In.Name), true
		}
	}
	return c
}

// says tells that so many replicas are added for the change.
func (c *MixChange) says(more int) contract.Finding {
	if c.then.None() {
		return contract.SaysSwitch.With(more, c.why, c.is, c.was)
	}
	return contract.SaysSwitchUnpriced.With(more, c.why, c.then, c.now)
}

// startMix starts as many of the mix as scaleUp allows now, and reports whether any.
func startMix(r *limit.Round, m *limit.Model, candidates []*limit.Variant, c *MixChange) (begins bool) {
	goesOn := !tooSoon(r, m, c.Mix) && r.Snapshot.Time.Sub(m.Old.Switched.At) < m.Old.Switched.Pause
	var to []string
	for _, v := range candidates {
		more := min(c.Mix[v]-v.Target, r.MayAdd(v))
		if more = r.HeldUp(v, v.Target+more, v.Target+more) - v.Target; more > 0 {
			v.Step(contract.StageAllocation, v.Target+more, contract.ReasonCheaperVariant, c.says(more))
			to = append(to, v.In.Name)
		}
	}
	if len(to) > 0 && !goesOn {
		m.Next.Switched = contract.Switched{At: r.Snapshot.Time, Pause: pauseAfter(&m.Old.Switched, r.Snapshot.Time), To: to}
	}
	return len(to) > 0
}

// lasts is how many times as long as its pause a switch must have been the last one to have been worth it.
const lasts = 3

// pauseAfter is for how long no other switch is made after one now. It is longer where the one before did
// not last.
func pauseAfter(last *contract.Switched, now time.Time) time.Duration {
	if now.Sub(last.At) >= lasts*last.Pause {
		return need.LeastBelieved
	}
	return need.PauseAfter(last.Pause)
}

// tooSoon reports whether a switch to the mix is another one than the last, of which it is not known yet
// whether it lasts. What grows again did not last, unless its replicas did not come up: these have a
// back-off of their own.
func tooSoon(r *limit.Round, m *limit.Model, mix map[*limit.Variant]int) bool {
	last := &m.Old.Switched
	return r.Snapshot.Time.Sub(last.At) < last.Pause && slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool {
		gone := v.Target == 0 && v.Old.Backoff == (contract.Backoff{})
		return With(mix)(v) > v.Target && (gone || !slices.Contains(last.To, v.In.Name))
	})
}

// PaysOff reports whether it is worth it to go to the mix, which may stay then.
func PaysOff(m *limit.Model, candidates []*limit.Variant, mix map[*limit.Variant]int, best *allocation.Vector) bool {
	cost := best.Cost + best.Start
	for _, v := range candidates {
		if mix[v] < v.Target && v.Tolerates(v.Policy.Down, mix[v]) {
			cost += v.Price * capacity.Cost(v.Target-mix[v])
		}
	}
	return cost < keptBy(m, candidates)*(1-switchLeast) && StaysSafe(m, candidates, mix) && !TooFewLeft(m, With(mix))
}

// keptBy is the least that the replicas which there are could be reduced to.
func keptBy(m *limit.Model, candidates []*limit.Variant) capacity.Cost {
	left, sum := cheapestMix(m, nil), capacity.Cost(0)
	if !ReachesMix(m, StandingOf(m, With(nil)), left) {
		left = nil
	}
	for _, v := range candidates {
		sum += v.Price * capacity.Cost(With(left)(v))
	}
	return sum
}

// StaysSafe reports whether the mix adds replicas, and whether the dearer ones may go, as far
// as is known today, once all of it serve. Where they may not, the scale-down would take
// the new ones instead.
func StaysSafe(m *limit.Model, candidates []*limit.Variant, mix map[*limit.Variant]int) bool {
	left := StandingOf(m, func(v *limit.Variant) int { return min(With(mix)(v), v.Target) })
	then, adds := StandingOf(m, func(v *limit.Variant) int { return v.Target }), false
	for _, v := range candidates {
		if more := max(0, mix[v]-v.Target); more > 0 {
			adds = true
			rate := v.Rate.Serves() * capacity.Rate(more)
			left.Ready, left.Coming, left.Up, left.Total = left.Ready+rate, left.Coming+rate, left.Up+more, left.Total+more
			// The load stays as it is now, spread over more replicas.
			then.Coming, then.Up, then.Unsaturated = then.Coming+rate, then.Up+more, then.Unsaturated+more
		}
	}
	return adds && IsSafe(m, then, left)
}

// IsChanging reports whether the model's replicas change already, or what is asked of them as
// long as a queue is served. What waits in vain changes nothing.
func IsChanging(m *limit.Model) bool {
	return m.Need.Queued > switchLeast*m.Need.Required || slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool {
		return v.Rolling() || v.Fleet.Count[fleet.StatePending] > 0 || v.In.Ready+len(v.In.Starting) > v.In.Current || v.Target != v.In.Current
	})
}

// MixOf are the variants that may stand in for each other, and the rate that they must
// serve: what must stay after a scale-down, with what saturated replicas do not serve
// although they count for it, or what keeps them clear of the triggers when that is more.
func MixOf(m *limit.Model) (candidates []*limit.Variant, need capacity.Rate) {
	outside := capacity.Rate(0)
	for _, v := range m.Variants {
		switch {
		case !v.Managed:
			outside += v.Rate.Serves() * capacity.Rate(v.Fleet.Supply)
		case v.Managed && (v.Target > 0 || !v.Rate.Unfit()):
			candidates = append(candidates, v)
		}
	}
	unfilled := clearOf(m, StandingOf(m, func(v *limit.Variant) int { return v.Target }))
	return candidates, max(m.Need.Least+m.Need.Idle-outside, unfilled-outside, rate.OneMore)
}

// swapsOf are the candidates with what they cost to start: the new replicas run beside
// the old ones until they serve and the scale-down's window of these is over, which is
// spread over the horizon.
func swapsOf(r *limit.Round, m *limit.Model, candidates []*limit.Variant, room func(*limit.Variant) int) []allocation.Option {
	options := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		beside := BesideFor(m, candidates, v).Seconds() / r.Policy.Horizon.Seconds()
		most := v.Bounded(v.Target)
		options[i] = allocation.Option{
			Cost: v.Price, Serves: v.Rate.Serves(), Now: v.Target, Least: stayingOf(m, v, most), Most: most, Start: v.Price * capacity.Cost(beside),
		}
		if v.Fleet.Paused == 0 && !v.Fleet.Unhealthy && !v.Rate.Unfit() {
			options[i].Most = v.Target + room(v)
		}
	}
	return options
}

// BesideFor is how long new replicas of a variant run beside those that they replace: until they
// serve, and for the longest time for which replicas are held that may go then.
func BesideFor(m *limit.Model, candidates []*limit.Variant, v *limit.Variant) time.Duration {
	longest := time.Duration(0)
	for _, o := range candidates {
		if o != v && stayingOf(m, o, o.Target) < o.Target {
			longest = max(longest, o.Policy.Down.Window)
		}
	}
	return cmp.Or(v.In.Startup, m.Lead) + longest
}

// tellDearer says which variants would serve for less and lack room.
func tellDearer(r *limit.Round, m *limit.Model, candidates []*limit.Variant, need capacity.Rate) {
	if !slices.ContainsFunc(candidates, r.Full) {
		return
	}
	ideal := allocation.Cheapest(swapsOf(r, m, candidates, r.MayAdd), need)
	for i, v := range candidates {
		if ideal.Replicas[i] > v.Target && r.Full(v) {
			v.Fact(contract.ReasonNoSlots, r.Crowded(v))
		}
	}
}

// TooFewLeft reports whether so many replicas of each variant are no more than what a
// scale-down left in vain, for about the same load or more.
func TooFewLeft(m *limit.Model, replicas func(*limit.Variant) int) bool {
	few := &m.Next.TooFew
	return few.Load > 0 && !m.Retries && m.About(m.Work()) >= few.Load &&
		!slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return replicas(v) > v.Next.TooFew })
}
