package replay

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// What Kubernetes documents as the defaults of its HorizontalPodAutoscaler (HPA below):
// how often it looks, by how much the usage may differ from the target, and its bounds. The
// rules are those of kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale and
// of k8s.io/kubernetes, pkg/controller/podautoscaler (horizontal.go, replica_calculator.go).
const (
	horizontalPeriod    = 15 * time.Second
	horizontalTolerance = 0.1
	horizontalMin       = 1
	// horizontalMax stands for a bound that nobody meets.
	horizontalMax = 1000
	// noDefault is for a maximum that has to be written.
	noDefault = 0
)

// The documented behaviour of an HPA whose object says nothing about it.
func defaultUp() decision.Behavior {
	return decision.Behavior{Select: decision.SelectMax, Policies: []decision.RatePolicy{
		{Percent: 100, Period: 15 * time.Second}, {Pods: 4, Period: 15 * time.Second},
	}}
}

func defaultDown() decision.Behavior {
	return decision.Behavior{
		Window: 5 * time.Minute, Select: decision.SelectMax,
		Policies: []decision.RatePolicy{{Percent: 100, Period: 15 * time.Second}},
	}
}

// milli is the value of a metric in thousandths: the metrics APIs of Kubernetes carry
// whole thousandths, and HPA reckons with them.
type milli int64

func toMilli(value float64) milli { return milli(value * 1000) }

// reading is what the custom metrics API says of one pod.
type reading struct {
	// pending is set before a node has started the pod.
	pending bool
	// present is set when there is a value.
	present bool
	value   milli
}

// averageReplicas is the rule for metrics of type Pods with a target AverageValue:
//
//	ratio = mean(value) / target,  replicas = ceil(ratio * pods)
//
// and no change where the ratio is within the tolerance of 1. Pods without a value count
// with what is wanted of them when the others say less, and with 0 when they say more;
// pending ones with 0 when the others say more, and not at all otherwise. What that turns
// around, or brings within the tolerance, changes nothing. False means that no pod has a
// value, so that HPA does nothing.
func averageReplicas(pods []reading, current int, target milli, tolerance float64) (int, bool) {
	sum, counted, pending, missing := countReadings(pods)
	if counted == 0 {
		return current, false
	}
	ratio := usage(sum, counted, target)
	if ratio <= 1 {
		pending = 0
	}
	if pending == 0 && missing == 0 {
		if within(ratio, tolerance) {
			return current, true
		}
		return int(math.Ceil(ratio * float64(counted))), true
	}
	switch {
	case ratio < 1:
		sum += milli(missing) * target
		counted += missing
	case ratio > 1:
		counted += missing + pending
	}
	adjusted := usage(sum, counted, target)
	wanted := int(math.Ceil(adjusted * float64(counted)))
	if within(adjusted, tolerance) || ratio < 1 && (adjusted > 1 || wanted > current) || ratio > 1 && (adjusted < 1 || wanted < current) {
		return current, true
	}
	return wanted, true
}

// countReadings sorts the pods: how many have values, and their sum; how many are pending, and how
// many have none.
func countReadings(pods []reading) (sum milli, counted, pending, missing int) {
	for _, p := range pods {
		switch {
		case p.pending:
			pending++
		case !p.present:
			missing++
		default:
			sum += p.value
			counted++
		}
	}
	return sum, counted, pending, missing
}

// usage is a mean over a target; the mean is cut to whole thousandths.
func usage(sum milli, pods int, target milli) float64 {
	return float64(sum/milli(pods)) / float64(target)
}

func within(ratio, tolerance float64) bool {
	return 1-tolerance <= ratio && ratio <= 1+tolerance
}

// sharedReplicas is the rule for metrics of type External with a target AverageValue:
//
//	replicas = ceil(value / target)
//
// and no change where value / (target * pods) is within the tolerance of 1.
func sharedReplicas(value milli, pods int, target milli, tolerance float64) int {
	if within(float64(value)/(float64(target)*float64(pods)), tolerance) {
		return pods
	}
	return int(math.Ceil(float64(value) / float64(target)))
}

// horizontal is one HPA: what it remembers from one round to the next.
type horizontal struct {
	min, max int
	up, down decision.Behavior
	// wake is how often a target without replicas is looked at.
	wake time.Duration
	// recommended are the recommendations of the longer window, the oldest first.
	recommended []counted
	// changed are the changes that it made, positive ones up.
	changed []counted
}

// counted is a number of replicas at an instant.
type counted struct {
	at       time.Duration
	replicas int
}

// newHorizontal is an HPA with the documented defaults, within the variant's bounds.
func newHorizontal(v *Variant, wake time.Duration) *horizontal {
	h := &horizontal{min: max(horizontalMin, v.Policy.Min), max: horizontalMax, up: defaultUp(), down: defaultDown(), wake: wake}
	if v.Policy.Max >= 0 {
		h.max = max(h.min, v.Policy.Max)
	}
	return h
}

// within bounds an HPA whose variant has no bound: by the published default, if there is
// one, and by what all nodes would hold if they were empty. The HPA itself has no default
// (noDefault), and who has to write a maximum writes what could ever run.
func (h *horizontal) within(s *Scenario, v *Variant, published int) *horizontal {
	if v.Policy.Max >= 0 {
		return h
	}
	if published != noDefault {
		h.max = max(h.min, published)
	}
	if s.Cluster == nil {
		return h
	}
	if slots, err := s.Cluster.Emptied().Slots(v.Request); err == nil && (published == noDefault || slots < published) {
		h.max = max(h.min, slots)
	}
	return h
}

// reconcile is one round: the replicas that the target is to have. The proposal is what
// the metric asks for; false means that there is none.
func (h *horizontal) reconcile(now time.Duration, current int, propose func() (int, bool)) int {
	if len(h.recommended) == 0 {
		// What it finds is its first recommendation: nothing goes for one window.
		h.recommended = append(h.recommended, counted{now, current})
	}
	wanted := current
	switch {
	case current == 0 && now%h.wake != 0:
	case current < h.min:
		// An HPA is off while its target has no replicas. Whoever makes one makes its
		// target with the minimum.
		wanted = h.min
	case current > h.max:
		wanted = h.max
	default:
		if n, ok := propose(); ok {
			wanted = h.bound(now, current, h.stabilize(now, current, n))
		}
	}
	if wanted != current {
		h.changed = append(h.forget(h.changed, now, h.longestPeriod()), counted{now, wanted - current})
	}
	return wanted
}

// stabilize holds the replicas between the lowest recommendation of the window upwards
// and the highest one of the window downwards.
func (h *horizontal) stabilize(now time.Duration, current, proposed int) int {
	lowest, highest := proposed, proposed
	for _, r := range h.recommended {
		if r.at > now-h.up.Window {
			lowest = min(lowest, r.replicas)
		}
		if r.at > now-h.down.Window {
			highest = max(highest, r.replicas)
		}
	}
	h.recommended = append(h.forget(h.recommended, now, max(h.up.Window, h.down.Window)), counted{now, proposed})
	return min(max(current, lowest), highest)
}

// bound applies the rate policies, and then the bounds of the object.
func (h *horizontal) bound(now time.Duration, current, wanted int) int {
	switch {
	case wanted > current:
		limit := max(current, h.furthest(now, current, h.up, 1))
		return min(wanted, limit, h.max)
	case wanted < current:
		limit := min(current, h.furthest(now, current, h.down, -1))
		return max(wanted, limit, h.min)
	}
	return wanted
}

// furthest is how far the policies of one direction (+1 up, -1 down) let the replicas go.
// Each counts from what there was at the start of its period; a share is rounded in
// favour of the change.
func (h *horizontal) furthest(now time.Duration, current int, b decision.Behavior, sign int) int {
	if b.Select == decision.SelectDisabled {
		return current
	}
	var limits []int
	for _, p := range b.Policies {
		start := current
		for _, c := range h.changed {
			if c.at > now-p.Period {
				start -= c.replicas
			}
		}
		step := p.Pods
		if p.Percent > 0 {
			step = int(math.Ceil(float64(start*p.Percent) / 100))
		}
		limits = append(limits, sign*(start+sign*step))
	}
	if len(limits) == 0 {
		return sign * math.MaxInt32
	}
	if b.Select == decision.SelectMin {
		return sign * slices.Min(limits)
	}
	return sign * slices.Max(limits)
}

func (h *horizontal) longestPeriod() time.Duration {
	var longest time.Duration
	for _, p := range slices.Concat(h.up.Policies, h.down.Policies) {
		longest = max(longest, p.Period)
	}
	return longest
}

// forget drops what is no younger than the age; one that is would still count.
func (h *horizontal) forget(all []counted, now, age time.Duration) []counted {
	return slices.DeleteFunc(all, func(c counted) bool { return c.at <= now-age })
}

// after is the next time at a beat.
func after(now, every time.Duration) time.Duration { return now - now%every + every }
