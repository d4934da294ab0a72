package controller

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// startupSamples is how many of the latest start-ups make the median.
	startupSamples = 9
	// longestGuess is how many start-up deadlines a start-up that nobody watched may
	// have taken; beyond that it is more likely that the pod became ready once more.
	longestGuess = 3
)

// startups remember how long pods took from their creation until they served for the
// first time. A pod shows only when it became ready last, which after a hiccup of its
// node or its server is hours too late: so the first time that is seen counts.
type startups struct {
	// since is when the first look was: what was created before may have been ready
	// before, too.
	since time.Time
	// first is what was seen of each pod in the round before, and looked in this one.
	first, looked map[types.UID]start
	// last are the start-up times last seen of variants of which no replica shows one
	// now.
	last map[decision.Key]time.Duration
}

// start is a pod's first readiness.
type start struct {
	at time.Time
	// took is 0 when it teaches nothing.
	took time.Duration
	// watched is set when the pod was created while we looked.
	watched bool
}

func newStartups() *startups {
	return &startups{first: map[types.UID]start{}, looked: map[types.UID]start{}, last: map[decision.Key]time.Duration{}}
}

// begin begins a look at all pods.
func (s *startups) begin(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
}

// of is the start-up time that a variant's pods show, or the last one seen; 0 means
// none. The deadline is that of starts of which nothing is known.
func (s *startups) of(key decision.Key, pods []*corev1.Pod, deadline time.Duration) time.Duration {
	var watched, guessed []start
	for _, pod := range pods {
		began, known := s.first[pod.UID]
		if !known {
			ready := condition(pod, corev1.PodReady)
			if ready.Status != corev1.ConditionTrue {
				continue
			}
			began = s.read(pod, ready.LastTransitionTime.Time, deadline)
		}
		s.looked[pod.UID] = began
		switch {
		case began.took <= 0 || !counts(pod):
		case began.watched:
			watched = append(watched, began)
		default:
			guessed = append(guessed, began)
		}
	}
	if len(watched) == 0 {
		watched = guessed
	}
	if took := median(watched); took > 0 {
		s.last[key] = took
	}
	return s.last[key]
}

// read is what the first look at a ready pod shows. One whose containers were restarted
// before shows another readiness than its first.
func (s *startups) read(pod *corev1.Pod, at time.Time, deadline time.Duration) start {
	began := start{at: at, took: at.Sub(pod.CreationTimestamp.Time), watched: !pod.CreationTimestamp.Time.Before(s.since)}
	restarted := anyContainer(pod, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
	if restarted || !began.watched && began.took > longestGuess*deadline {
		began.took = 0
	}
	return began
}

// forget ends the look: what is known of pods and variants that are gone is dropped.
func (s *startups) forget(variants map[decision.Key]*variant) {
	s.first, s.looked = s.looked, make(map[types.UID]start, len(s.looked))
	maps.DeleteFunc(s.last, func(key decision.Key, _ time.Duration) bool { return variants[key] == nil })
}

// median is that of the latest starts.
func median(starts []start) time.Duration {
	if len(starts) == 0 {
		return 0
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.took, b.took)) })
	starts = starts[:min(len(starts), startupSamples)]
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.took, b.took) })
	return starts[len(starts)/2].took
}
