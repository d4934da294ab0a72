package horizontal

import "math"

// Milli is the value of a metric in thousandths: the metrics APIs of Kubernetes carry
// whole thousandths, and HPA reckons with them.
type Milli int64

// ToMilli cuts a value to thousandths.
func ToMilli(value float64) Milli { return Milli(value * 1000) }

// Reading is what the custom metrics API says of one pod.
type Reading struct {
	// Pending is set before a node has started the pod.
	Pending bool
	// Present is set when there is a Value.
	Present bool
	Value   Milli
}

// AverageReplicas is the rule for metrics of type Pods with a target AverageValue:
//
//	ratio = mean(value) / target,  replicas = ceil(ratio * pods)
//
// and no change where the ratio is within the tolerance of 1. Pods without a value count
// with what is wanted of them when the others say less, and with 0 when they say more;
// pending ones with 0 when the others say more, and not at all otherwise. What that turns
// around, or brings within the tolerance, changes nothing. False means that no pod has a
// value, so that HPA does nothing.
func AverageReplicas(pods []Reading, current int, target Milli, tolerance float64) (int, bool) {
	sum, counted, pending, missing := countReadings(pods)
	if counted == 0 {
		return current, false
	}
	ratio := usage(sum, counted, target)
	if ratio <= 1 {
		pending = 0
	}
	if pending == 0 && missing == 0 {
		if tolerated(ratio, tolerance) {
			return current, true
		}
		return int(math.Ceil(ratio * float64(counted))), true
	}
	switch {
	case ratio < 1:
		sum += Milli(missing) * target
		counted += missing
	case ratio > 1:
		counted += missing + pending
	}
	adjusted := usage(sum, counted, target)
	wanted := int(math.Ceil(adjusted * float64(counted)))
	if tolerated(adjusted, tolerance) || ratio < 1 && (adjusted > 1 || wanted > current) || ratio > 1 && (adjusted < 1 || wanted < current) {
		return current, true
	}
	return wanted, true
}

// countReadings sorts the pods: how many have values, and their sum; how many are pending, and how
// many have none.
func countReadings(pods []Reading) (sum Milli, counted, pending, missing int) {
	for _, p := range pods {
		switch {
		case p.Pending:
			pending++
		case !p.Present:
			missing++
		default:
			sum += p.Value
			counted++
		}
	}
	return sum, counted, pending, missing
}

// usage is a mean over a target; the mean is cut to whole thousandths.
func usage(sum Milli, pods int, target Milli) float64 {
	return float64(sum/Milli(pods)) / float64(target)
}

func tolerated(ratio, tolerance float64) bool {
	return 1-tolerance <= ratio && ratio <= 1+tolerance
}

// SharedReplicas is the rule for metrics of type External with a target AverageValue:
//
//	replicas = ceil(value / target)
//
// and no change where value / (target * pods) is within the tolerance of 1.
func SharedReplicas(value Milli, pods int, target Milli, tolerance float64) int {
	if tolerated(float64(value)/(float64(target)*float64(pods)), tolerance) {
		return pods
	}
	return int(math.Ceil(float64(value) / float64(target)))
}
