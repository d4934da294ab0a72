package round

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// startupSamples is how many of the latest start-ups make the median.
	startupSamples = 9
	// longestGuess is how many start-up deadlines a start-up that nobody watched may
	// have taken; beyond that it is more likely that the replica became ready once more.
	longestGuess = 3
)

// Startups remember how long replicas took from their creation until they served for the
// first time. A pod shows only when it became ready last, which after a hiccup of its
// node or its server is hours too late: so the first time that is seen counts. The zero
// value has seen none.
type Startups struct {
	// since is when the first look was: what was created before may have been ready
	// before, too.
	since time.Time
	// first is what was seen of each replica in the look before, and looked in this one.
	first, looked map[string]start
	// last are the start-up times last seen of variants of which no replica shows one
	// now.
	last map[decision.Key]time.Duration
}

// Replica is one as a look finds it.
type Replica struct {
	// ID is of this replica alone, ever.
	ID string
	// Created is when it was made, and Ready when it became ready last; the zero time while
	// it is not.
	Created, Ready time.Time
	// Restarted is set when it began anew since it was made, and Ends when it is to serve no
	// more.
	Restarted, Ends bool
}

// start is a replica's first readiness.
type start struct {
	at time.Time
	// took is 0 when it teaches nothing.
	took time.Duration
	// watched is set when the replica was created while we looked.
	watched bool
}

// Begin begins a look at all replicas.
func (s *Startups) Begin(now time.Time) {
	if s.since.IsZero() {
		s.since, s.last = now, map[decision.Key]time.Duration{}
	}
	s.looked = make(map[string]start, len(s.first))
}

// Of is the start-up time that a variant's replicas show, the median of the latest, or the
// last one seen; 0 means none. The deadline is that of starts of which nothing is known. It
// is asked between Begin and End.
func (s *Startups) Of(key decision.Key, replicas []Replica, deadline time.Duration) time.Duration {
	var watched, guessed []start
	for i := range replicas {
		r := &replicas[i]
		began, known := s.first[r.ID]
		if !known {
			if r.Ready.IsZero() {
				continue
			}
			began = s.read(r, deadline)
		}
		s.looked[r.ID] = began
		switch {
		case began.took <= 0 || r.Ends:
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

// read is what the first look at a ready replica shows. One that was restarted before shows
// another readiness than its first.
func (s *Startups) read(r *Replica, deadline time.Duration) start {
	began := start{at: r.Ready, took: r.Ready.Sub(r.Created), watched: !r.Created.Before(s.since)}
	if r.Restarted || !began.watched && began.took > longestGuess*deadline {
		began.took = 0
	}
	return began
}

// End ends the look: what is known of replicas that are gone, and of variants that are not to
// be kept, is dropped.
func (s *Startups) End(keep func(decision.Key) bool) {
	s.first, s.looked = s.looked, nil
	maps.DeleteFunc(s.last, func(key decision.Key, _ time.Duration) bool { return !keep(key) })
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
