package closedloop

import (
	"fmt"
	"math"
	"time"
)

// What a HorizontalPodAutoscaler does by default: how often it looks at its metric, how long it
// stays at the most that was asked for, and the change up to which it does nothing.
const (
	appliesEvery  = 15 * time.Second
	appliesWithin = 5 * time.Minute
	appliesBeyond = 0.1
)

// shown is a number of replicas that a HorizontalPodAutoscaler saw.
type shown struct {
	at       time.Duration
	replicas int
}

// applyMetrics has HorizontalPodAutoscalers set the replicas of the variants that are in mode
// Metric.
func (w *world) applyMetrics() {
	for _, m := range w.models {
		for _, v := range m.variants {
			if v.Metric && !v.Stuck && v.metric >= 0 {
				w.applyMetric(v)
			}
		}
	}
}

func (w *world) applyMetric(v *variantState) {
	wanted := v.metric
	if v.target > 0 && math.Abs(float64(wanted)/float64(v.target)-1) <= appliesBeyond {
		wanted = v.target
	}
	v.shown = append(v.shown, shown{w.now, wanted})
	for v.shown[0].at <= w.now-appliesWithin {
		v.shown = v.shown[1:]
	}
	for _, s := range v.shown {
		if wanted < v.target {
			wanted = max(wanted, min(s.replicas, v.target))
		}
	}
	if wanted != v.target {
		w.story.happened(w.now, fmt.Sprintf("%s: a HorizontalPodAutoscaler goes from %d to %d", v.key.Name, v.target, wanted))
		v.writer = "kube-controller-manager"
		w.scale(v, wanted, nil, true)
	}
}

// asked is the number that a plan may raise and lower from: the target's, and in mode Metric
// what was shown last, whether or not it was applied.
func (v *variantState) asked() (raise, lower int) {
	if !v.Metric || v.metric < 0 {
		return v.target, v.target
	}
	return max(v.target, v.metric), v.metric
}

// chosen is how many of those that hold devices the decision answers for: a HorizontalPodAutoscaler
// keeps a few that are too many.
func (v *variantState) chosen() int {
	n := v.placed()
	if v.Metric && v.metric < n && float64(n-v.metric) <= appliesBeyond*float64(n) {
		return v.metric
	}
	return n
}
