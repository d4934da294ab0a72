package emulation

import (
	"context"
	"io"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Tap is a stream of equal requests at even distances, at a rate that is set while it
// runs. It gives each one out when it is due, and does not catch up when the machine held
// it up: what is asked is the rate, not a number of requests.
type Tap struct {
	start         time.Time
	ended         <-chan struct{}
	input, output int

	lock sync.Mutex
	// rate in requests per second holds since the time from the start.
	rate  float64
	since time.Duration
	// last is when the latest request was due.
	last time.Duration
	// changed is closed when the rate is set anew.
	changed chan struct{}
}

// NewTap makes a tap that asks nothing yet, of requests of so many tokens. It ends with the
// context.
func NewTap(ctx context.Context, input, output int) *Tap {
	return &Tap{start: time.Now(), ended: ctx.Done(), input: input, output: output, changed: make(chan struct{})}
}

// Start is the instant that arrivals count from.
func (t *Tap) Start() time.Time { return t.start }

// Set sets the rate in requests per second.
func (t *Tap) Set(rate float64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.rate, t.since = rate, time.Since(t.start)
	close(t.changed)
	t.changed = make(chan struct{})
}

// Next implements workload.Stream: it returns a request when it is due.
func (t *Tap) Next() (workload.Request, error) {
	for {
		due, changed := t.due()
		var wait <-chan time.Time
		if due >= 0 {
			wait = time.After(time.Until(t.start.Add(due)))
		}
		select {
		case <-t.ended:
			return workload.Request{}, io.EOF
		case <-changed:
		case <-wait:
			t.lock.Lock()
			t.last = due
			t.lock.Unlock()
			return workload.Request{Arrival: due, Input: t.input, Output: t.output}, nil
		}
	}
}

// lateness is how far behind its time a request may be sent.
const lateness = 500 * time.Millisecond

// due is when the next request is, at the present rate; negative means never.
func (t *Tap) due() (time.Duration, <-chan struct{}) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.rate <= 0 {
		return -1, t.changed
	}
	return max(t.since, t.last+time.Duration(float64(time.Second)/t.rate), time.Since(t.start)-lateness), t.changed
}
