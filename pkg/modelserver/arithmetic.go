package modelserver

import (
	"math"
	"slices"
	"strconv"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Known is a sample of a value, absent when the value is no finite number.
func Known(value float64, at time.Time) decision.Sample {
	if at.IsZero() || math.IsNaN(value) || math.IsInf(value, 0) {
		return decision.Sample{}
	}
	return decision.Sample{Value: value, Time: at, Present: true}
}

// Seen is when a server last told some of its quantities; zero means never. Values of
// one must not look as new as those of another.
type Seen struct {
	KVUse, Waiting, Running, Completed time.Time
}

// Any is when the server last told anything.
func (s Seen) Any() time.Time {
	return slices.MaxFunc([]time.Time{s.KVUse, s.Waiting, s.Running, s.Completed}, time.Time.Compare)
}

// Service is when it last told of requests that ended: it tells their number together
// with their times and sizes. A server without that number has none of its own.
func (s Seen) Service() time.Time {
	if s.Completed.IsZero() {
		return s.Any()
	}
	return s.Completed
}

// InFlight is when it last told of both kinds of requests in flight.
func (s Seen) InFlight() time.Time { return older(s.Running, s.Waiting) }

// Flow is when it last told of requests in flight and of those that ended.
func (s Seen) Flow() time.Time { return older(s.InFlight(), s.Completed) }

func older(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Recent is the rate at which requests arrived between two scrapes, which lie a span
// apart: the rate of those that left plus the change of how many are there. Both
// must be known. Scrapes are not atomic, and so a rate just below zero is zero.
func Recent(leaving, change decision.Sample, span time.Duration, at time.Time) (decision.Sample, time.Duration) {
	if !leaving.Present || !change.Present || span <= 0 {
		return decision.Sample{}, 0
	}
	recent := Known(max(0, leaving.Value+change.Value/span.Seconds()), at)
	if !recent.Present {
		return recent, 0
	}
	return recent, span
}

// Tokens is the size of a KV cache of so many blocks of so many tokens, as labels
// tell them. It reports false for what is no positive number: a server that does not
// know yet writes None.
func Tokens(blocks, blockSize string) (float64, bool) {
	n, err := strconv.ParseFloat(blocks, 64)
	size, sizeErr := strconv.ParseFloat(blockSize, 64)
	tokens := n * size
	if err != nil || sizeErr != nil || !(n > 0) || !(size > 0) || math.IsInf(tokens, 0) {
		return 0, false
	}
	return tokens, true
}

// Gateway is what is known of one model at the gateway.
type Gateway struct {
	// Time is that of the newest scrape.
	Time time.Time
	// Queued is set when there is a queue, whether its length is known or not.
	Queued bool
	// Queue is the number of requests that wait there, Growth the rate at which it
	// grows over the window, Change its change between the last two scrapes.
	Queue, Growth, Change decision.Sample
	// Dispatched is the rate of requests sent on over the window, and Latest that
	// between the last two scrapes.
	Dispatched, Latest decision.Sample
	// Born is the number of requests that were sent since the scrape before and are
	// counted by series which did not exist then: a gateway that counts by replica has a
	// new series for each new one. Latest knows nothing of them.
	Born decision.Sample
	// Span is the time between the last two scrapes.
	Span time.Duration
}

// Model is the model as the gateway shows it. What arrives is what leaves plus what
// the queue grows by. A gateway without a queue has nothing that could grow; where a
// queue's growth is not known yet, nor is what arrives.
func (g Gateway) Model(key decision.ModelKey) decision.Model {
	m := decision.Model{Namespace: key.Namespace, ID: key.ID, Queue: g.Queue}
	growth, change := g.Growth, g.Change
	if !g.Queued {
		growth, change = Known(0, g.Time), Known(0, g.Time)
	}
	if g.Dispatched.Present && growth.Present {
		m.Arrival = Known(max(0, g.Dispatched.Value+growth.Value), g.Time)
	}
	change.Value += g.Born.Value
	m.Recent, m.RecentSpan = Recent(g.Latest, change, g.Span, g.Time)
	return m
}
