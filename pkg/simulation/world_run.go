package simulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// never is later than everything.
const never = time.Duration(math.MaxInt64)

// later is the time after another one, at most never.
func later(t, by time.Duration) time.Duration { return t + min(by, never-t) }

// World is model servers on nodes behind a router, in virtual time. Time only passes
// in Advance, Arrive and Finish; what happens at one instant happens in this order:
// tokens come, nodes meet their events, replicas go and come to serve, nodes take those
// that wait, and then the caller acts. Done and Moved are told in order of time; they must not call the world.
// A World is not safe for concurrent use.
type World struct {
	options WorldOptions
	cluster *placement.Cluster
	models  []model
	// live are the replicas that are not gone, in order of creation.
	live []*replica
	// created counts all replicas that ever were, unplaced those that wait for a node.
	created, unplaced int
	pricing           pricing
	outages

	now time.Duration
	// wake is when the next thing happens, or may happen, that changes the stage of a
	// replica.
	wake time.Duration
	// open is the number of requests that have arrived and not ended.
	open int
	// endings are those that the engines brought forth and Done was not told of yet.
	endings []ending
}

// model is one model with its queue at the router.
type model struct {
	id       string
	variants []variant
	// serving are the replicas that take requests, in order of creation.
	serving    []*replica
	queue      fifo
	dispatched uint64
	// latencies is nil without histograms.
	latencies *Latencies
}

// variant is one variant with what there is of it.
type variant struct {
	ServedVariant
	index  VariantIndex
	slo    capacity.SLO
	weight float64
	// wanted is what was asked for, active how many replicas are there that are not
	// leaving, created how many ever were.
	wanted, active, created int
	// held is how many replicas nodes hold, by the index of the node and in all;
	// unplaced is how many wait for one.
	on             []int
	held, unplaced int
	// full is set while no node has room, within one search for room.
	full bool
}

// ending is an outcome and when it became known.
type ending struct {
	at time.Duration
	Outcome
}

// Now is the latest time that a call named.
func (w *World) Now() time.Duration { return w.now }

// Advance lets time pass until now. A time before that of an earlier call counts as
// that one.
func (w *World) Advance(now time.Duration) {
	for w.wake <= now && w.wake < never {
		w.step(max(w.wake, w.now))
	}
	w.now = max(w.now, now)
	w.follow()
}

// step lets time pass until something may change the stage of a replica, and changes
// it.
func (w *World) step(at time.Duration) {
	w.now = at
	w.follow()
	gone := w.befall()
	// What comes to serve does not change the list, and what goes stays in it for now.
	for _, r := range w.live {
		switch {
		case r.Stage == Placed && r.serves <= at:
			w.serve(r)
		case r.Stage == Leaving && (r.inFlight == 0 || r.deadline <= at):
			w.end(r)
			gone = true
		}
	}
	if gone {
		w.refill()
		w.clear()
		w.tell()
	}
	w.plan()
}

// plan finds out when to step next.
func (w *World) plan() {
	w.wake = never
	if len(w.due) > 0 {
		w.wake = w.due[0].at
	}
	for _, r := range w.live {
		switch r.Stage {
		case Placed:
			w.wake = min(w.wake, r.serves)
		case Leaving:
			w.wake = min(w.wake, r.deadline, r.next)
		case Created, NotReady, Serving, Gone:
		}
	}
}

// follow brings every engine to the present and tells of what ended. Engines in the
// middle of an iteration, and idle ones, cost one comparison.
func (w *World) follow() {
	for _, r := range w.live {
		if r.next <= w.now {
			w.run(r)
		}
	}
	w.tell()
}

// run brings the engine of one replica to the present.
func (w *World) run(r *replica) {
	events := r.engine.Advance(w.now)
	for i := range events {
		e := &events[i]
		r.observe(e)
		w.models[r.variant.index.Model].latencies.observe(e)
		if e.Kind != Finished {
			continue
		}
		r.settle(-1)
		w.endings = append(w.endings, ending{at: e.At, Outcome: Outcome{
			Model: r.variant.index.Model, Variant: r.variant.index.Variant,
			Arrived: arrivalOf(e.Request), FirstToken: e.Times.FirstToken, Finished: e.At,
			Input: e.Request.Input, Output: e.Request.Output,
		}})
	}
	r.next = r.engine.due()
}

// tell tells of what ended, in order of time and then of the replicas.
func (w *World) tell() {
	if len(w.endings) == 0 {
		return
	}
	w.open -= len(w.endings)
	if w.options.Done != nil {
		if len(w.endings) > 1 {
			slices.SortStableFunc(w.endings, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
		}
		for i := range w.endings {
			w.options.Done(w.endings[i].Outcome)
		}
	}
	w.endings = w.endings[:0]
}

// Arrive lets time pass until the request arrives, and hands it to the router. The
// error says that there is no such request: no such model, no tokens, or a time that
// has passed; nothing has happened then.
func (w *World) Arrive(a Arrival) error {
	switch {
	case a.Model < 0 || a.Model >= len(w.models):
		return fmt.Errorf("request at %v for the model of index %d: expected one below %d", a.Arrival, a.Model, len(w.models))
	case a.Input < 1 || a.Output < 1:
		return fmt.Errorf("request at %v of %d prompt and %d generated tokens: expected at least 1 of each", a.Arrival, a.Input, a.Output)
	case a.Arrival < w.now:
		return fmt.Errorf("request at %v: it is %v already; expected requests in order of time", a.Arrival, w.now)
	}
	w.Advance(a.Arrival)
	w.open++
	w.enter(&w.models[a.Model], requestOf(a))
	return nil
}

// Finish lets time pass until no request is left, at most until the limit. What is left
// then has failed, whether it waits or is in service.
func (w *World) Finish(limit time.Duration) {
	end := max(limit, w.now)
	for w.open > 0 {
		next := w.wake
		for _, r := range w.live {
			next = min(next, r.next)
		}
		if next > end || next == never {
			break
		}
		w.Advance(next)
	}
	if w.open == 0 {
		return
	}
	if end < never {
		w.Advance(end)
	}
	for i := range w.models {
		m := &w.models[i]
		for m.queue.count > 0 {
			w.fail(VariantIndex{Model: i, Variant: -1}, m.queue.pop())
		}
	}
	for _, r := range w.live {
		if r.engine != nil {
			w.abandon(r)
		}
	}
	w.tell()
	w.step(w.now)
}

// fail notes that a request ends now without its last token.
func (w *World) fail(v VariantIndex, r Request) {
	w.endings = append(w.endings, ending{at: w.now, Outcome: Outcome{
		Model: v.Model, Variant: v.Variant, Arrived: arrivalOf(r), Input: r.Input, Output: r.Output, Failed: true,
	}})
}

// The engine of a replica only sees when a request came to it. When it came to the
// router is kept in its ID.
func requestOf(a Arrival) Request {
	return Request{ID: uint64(a.Arrival), Input: a.Input, Output: a.Output, Prompt: a.Prompt}
}

func arrivalOf(r Request) time.Duration { return time.Duration(r.ID) }
