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

// backOff leaves a variant alone whose replicas wait in vain for a node or do not come
// up, and forgets that it did so when the variant has been well for a while.
func (r *round) backOff(v *variant) {
	b, now := v.old.Backoff, r.snapshot.Time
	known := b != (Backoff{})
	switch {
	case known && v.in.Ready > b.Ready:
		// One came up: whatever kept them away is over.
		return
	case known && now.Before(b.Until):
	case v.barren:
		b = b.again(now)
		b.Ready = v.in.Ready
	case !known || now.Sub(b.Until) > recovery:
		return
	}
	v.next.Backoff = b
	if now.Before(b.Until) {
		v.paused = b.Until.Sub(now)
	}
}

// atMost keeps a variant that was left alone to one replica at a time, until one holds
// a node: it is tried, not trusted. A negative limit is none.
func (r *round) atMost(v *variant, limit int) int {
	if v.next.Backoff == (Backoff{}) || v.paused > 0 || v.in.unscheduled() < len(v.in.Starting) {
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
	return fmt.Sprintf("its replicas got no node, or no pod, or did not come up lately; it is tried again in %s", v.paused.Round(time.Second))
}
