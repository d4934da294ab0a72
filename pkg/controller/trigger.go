package controller

import "sync/atomic"

// trigger carries events from the watches to the loop. Events that come while the
// loop is busy become one.
type trigger struct {
	pending atomic.Int32
	wake    chan struct{}
}

func newTrigger() *trigger { return &trigger{wake: make(chan struct{}, 1)} }

// poke never blocks.
func (t *trigger) poke(u urgency) {
	for {
		old := t.pending.Load()
		if old >= int32(u) || t.pending.CompareAndSwap(old, int32(u)) {
			break
		}
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns the greatest urgency since it was last called.
func (t *trigger) take() urgency { return urgency(t.pending.Swap(int32(calm))) }
