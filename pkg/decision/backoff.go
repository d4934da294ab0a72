package decision

import (
	"fmt"
	"time"
)

// A variant whose replicas found no node, or did not come up, is left alone for leastPause, and twice as
// long each time that it happens again within recovery of the end of a pause.
const (
	leastPause = time.Minute
	mostPause  = 16 * time.Minute
	recovery   = 10 * time.Minute
)

// backoffOf leaves a variant alone whose replicas wait in vain for a node or do not come
// up, and forgets that it did so when the variant has been well for a while.
func (r *round) backoffOf(v *variant, unplaceable bool) Backoff {
	b, now := v.old.Backoff, r.snapshot.Time
	known := b != (Backoff{})
	switch {
	case known && v.in.Ready > b.Ready:
		// One came up: whatever kept them away is over.
		return Backoff{}
	case known && now.Before(b.Until):
		return b
	case unplaceable:
		b = b.again(now)
		b.Ready = v.in.Ready
		return b
	case !known || now.Sub(b.Until) > recovery:
		return Backoff{}
	}
	return b
}

// atMost keeps a variant that was left alone to one replica at a time, until one holds
// a node: it is tried, not trusted. A negative limit is none.
func (r *round) atMost(v *variant, limit int) int {
	if v.next.Backoff == (Backoff{}) || v.fleet.paused > 0 || v.in.unscheduled() < len(v.in.Starting) {
		return limit
	}
	if limit < 0 || limit > 1 {
		limit = 1
	}
	return max(0, limit-v.in.unscheduled()-v.in.noPod())
}

// again begins the next pause.
func (b Backoff) again(now time.Time) Backoff {
	pause := min(max(2*b.Pause, leastPause), mostPause)
	return Backoff{Until: now.Add(pause), Pause: pause}
}

// pausedDetail says that the variant is left alone.
func (v *variant) pausedDetail() string {
	return fmt.Sprintf("its replicas got no node, or no pod, or did not come up lately; it is tried again in %s", v.fleet.paused.Round(time.Second))
}
