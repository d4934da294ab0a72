package horizontal

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// What Kubernetes has for its HPA where nobody says something else: how often it looks, by how
// much the usage may differ from the target, its least replicas, and for how long it keeps what
// it recommended (--horizontal-pod-autoscaler-downscale-stabilization).
const (
	Period    = 15 * time.Second
	Tolerance = 0.1
	Min       = 1
	Window    = 5 * time.Minute
)

// How far an HPA without behavior goes up in one round: to the double, or to four.
const (
	plainFactor = 2
	plainLeast  = 4
)

// Behavior is spec.behavior of an HPA. Where its object has one, the API server fills in what it
// leaves out.
type Behavior struct{ Up, Down decision.Behavior }

// Defaults are what the API server fills in.
func Defaults() Behavior {
	return Behavior{
		Up: decision.Behavior{Select: decision.SelectMax, Policies: []decision.RatePolicy{
			{Percent: 100, Period: 15 * time.Second}, {Pods: 4, Period: 15 * time.Second},
		}},
		Down: decision.Behavior{
			Window: Window, Select: decision.SelectMax,
			Policies: []decision.RatePolicy{{Percent: 100, Period: 15 * time.Second}},
		},
	}
}

// Autoscaler is one HPA: what its object says, and what it remembers from one round to the
// next.
type Autoscaler struct {
	Min, Max int
	// Behavior is nil where the object has none. The rules are other ones then than those
	// with the defaults filled in.
	Behavior *Behavior
	// Wake is how often a target without replicas is looked at.
	Wake time.Duration
	// recommended are the recommendations of the longer window, the oldest first.
	recommended []counted
	// added and removed are the changes that it made.
	added, removed []counted
}

// counted is a number of replicas at an instant.
type counted struct {
	at       time.Duration
	replicas int
}

// Reconcile is one round: the replicas that the target is to have. The proposal is what
// the metric asks for; false means that there is none.
func (a *Autoscaler) Reconcile(now time.Duration, current int, propose func() (int, bool)) int {
	if len(a.recommended) == 0 {
		// What it finds is its first recommendation: nothing goes for one window.
		a.recommended = append(a.recommended, counted{now, current})
	}
	wanted := current
	switch {
	case current == 0 && now%a.Wake != 0:
	case current < a.Min:
		// An HPA is off while its target has no replicas. Whoever makes one makes its
		// target with the minimum.
		wanted = a.Min
	case current > a.Max:
		wanted = a.Max
	default:
		if n, ok := propose(); ok {
			wanted = a.normalize(now, current, n)
		}
	}
	if a.Behavior != nil {
		a.note(now, wanted-current)
	}
	return wanted
}

// note keeps a change. In the place of one that is older than the policies of its own direction
// look, which those of the other direction then miss, too: so does the controller.
func (a *Autoscaler) note(now time.Duration, change int) {
	switch {
	case change > 0:
		a.added = replaceOld(a.added, now-longestPeriod(a.Behavior.Up), counted{now, change})
	case change < 0:
		a.removed = replaceOld(a.removed, now-longestPeriod(a.Behavior.Down), counted{now, -change})
	}
}

// replaceOld puts the change in the place of the last one before an instant, or else behind all.
func replaceOld(all []counted, before time.Duration, change counted) []counted {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].at < before {
			all[i] = change
			return all
		}
	}
	return append(all, change)
}

// normalize is what of a proposal one round does.
func (a *Autoscaler) normalize(now time.Duration, current, proposed int) int {
	if a.Behavior == nil {
		most := min(a.Max, max(plainFactor*current, plainLeast))
		return min(max(a.highest(now, proposed), a.Min), most)
	}
	return a.bound(now, current, a.stabilize(now, current, proposed))
}

// highest is the highest recommendation of the window, of which both ends count. What it says
// may be more than there is now: somebody else took it away.
func (a *Autoscaler) highest(now time.Duration, proposed int) int {
	a.recommended = slices.DeleteFunc(a.recommended, func(c counted) bool { return c.at < now-Window })
	highest := proposed
	for _, r := range a.recommended {
		highest = max(highest, r.replicas)
	}
	a.recommended = append(a.recommended, counted{now, proposed})
	return highest
}

// stabilize holds the replicas between the lowest recommendation of the window upwards
// and the highest one of the window downwards.
func (a *Autoscaler) stabilize(now time.Duration, current, proposed int) int {
	up, down := a.Behavior.Up.Window, a.Behavior.Down.Window
	lowest, highest := proposed, proposed
	for _, r := range a.recommended {
		if r.at > now-up {
			lowest = min(lowest, r.replicas)
		}
		if r.at > now-down {
			highest = max(highest, r.replicas)
		}
	}
	a.recommended = append(forget(a.recommended, now, max(up, down)), counted{now, proposed})
	return min(max(current, lowest), highest)
}

// bound applies the rate policies, and then the bounds of the object.
func (a *Autoscaler) bound(now time.Duration, current, wanted int) int {
	switch {
	case wanted > current:
		limit := max(current, a.furthest(now, current, a.Behavior.Up, 1))
		return min(wanted, limit, a.Max)
	case wanted < current:
		limit := min(current, a.furthest(now, current, a.Behavior.Down, -1))
		return max(wanted, limit, a.Min)
	}
	return wanted
}

// furthest is how far the policies of one direction (+1 up, -1 down) let the replicas go.
// Each counts from what there was at the start of its period.
func (a *Autoscaler) furthest(now time.Duration, current int, b decision.Behavior, sign int) int {
	if b.Select == decision.SelectDisabled {
		return current
	}
	var limits []int
	for _, p := range b.Policies {
		start := current - sumAfter(a.added, now-p.Period) + sumAfter(a.removed, now-p.Period)
		limits = append(limits, sign*step(start, p, sign))
	}
	if len(limits) == 0 {
		return sign * math.MaxInt32
	}
	if b.Select == decision.SelectMin {
		return sign * slices.Min(limits)
	}
	return sign * slices.Max(limits)
}

// step is where a policy lets so many replicas go. A share is reckoned as the controller does
// it, in floating point: 10 % more than 10 are 11.000000000000002, and so 12.
func step(start int, p decision.RatePolicy, sign int) int {
	switch share := float64(p.Percent) / 100; {
	case p.Percent == 0:
		return start + sign*p.Pods
	case sign > 0:
		return int(math.Ceil(float64(start) * (1 + share)))
	default:
		return int(float64(start) * (1 - share))
	}
}

// sumAfter is the sum of the changes after an instant.
func sumAfter(all []counted, after time.Duration) int {
	sum := 0
	for _, c := range all {
		if c.at > after {
			sum += c.replicas
		}
	}
	return sum
}

func longestPeriod(b decision.Behavior) time.Duration {
	var longest time.Duration
	for _, p := range b.Policies {
		longest = max(longest, p.Period)
	}
	return longest
}

// forget drops what is no younger than the age; one that is would still count.
func forget(all []counted, now, age time.Duration) []counted {
	return slices.DeleteFunc(all, func(c counted) bool { return c.at <= now-age })
}
