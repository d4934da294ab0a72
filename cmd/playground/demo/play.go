package demo

import (
	"context"
	"errors"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const (
	// redraw is how often the picture is refreshed.
	redraw = time.Second
	// drainLimit is how long requests may take after the last one was sent. The
	// longest answer of the slowest variant takes about three minutes.
	drainLimit = 5 * time.Minute
)

// traffic is the part of a run in which requests are sent, and the tail.
type traffic struct {
	stack *stack
	start time.Time

	mu sync.Mutex
	// end is when the observation ended.
	end      time.Time
	outcomes []report.Outcome
	// sent are the arrivals of each model's requests, as they are taken from its
	// stream to be sent.
	sent map[string][]time.Duration
}

// play sends the traffic of all models, watches the tail, and returns when every
// request is done.
func (r *traffic) play(ctx context.Context) error {
	m, err := newMeter(r.stack.cluster.PrometheusURL())
	if err != nil {
		return err
	}
	streams, closeTrace, err := r.stack.plan.streams()
	if err != nil {
		return err
	}
	defer closeTrace()
	watched, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// Not with ctx: after Ctrl-C the observation is closed before requests are cut.
	playing, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	r.start = time.Now()
	r.sent = map[string][]time.Duration{}
	r.stack.observer.begin(r.start)
	r.stack.page.show(r.feed)
	var players, meters sync.WaitGroup
	for i, model := range r.stack.plan.models {
		players.Go(func() {
			if err := r.send(playing, model, streams[i]); err != nil {
				fail(err)
			}
		})
	}
	meters.Go(func() { m.follow(watched) })
	finished := make(chan struct{})
	go func() { players.Wait(); close(finished) }()
	r.watch(watched, m, finished)
	err = context.Cause(watched)
	r.close()
	fail(nil)
	cut()
	players.Wait()
	meters.Wait()
	return err
}

// close ends the observation: what is cut off from now on is nobody's failure.
func (r *traffic) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = time.Now()
}

// watch refreshes the picture until the tail is over and every request is done.
func (r *traffic) watch(ctx context.Context, m *meter, finished <-chan struct{}) {
	p := r.stack.plan
	over := time.After(time.Until(r.start.Add(p.Duration + p.Tail)))
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for over != nil || finished != nil {
		select {
		case <-ctx.Done():
			return
		case <-over:
			over = nil
		case <-finished:
			finished = nil
		case <-ticker.C:
			r.stack.terminal.draw(r.picture(time.Now(), m.now()))
		}
	}
	r.stack.terminal.draw(r.picture(time.Now(), m.now()))
}

// send plays the requests of one model.
func (r *traffic) send(ctx context.Context, m model, stream workload.Stream) error {
	_, err := emulation.Traffic{
		URL:      r.stack.urlOf(m),
		Model:    m.ID,
		Requests: &counted{Stream: stream, note: func(at time.Duration) { r.note(m.ID, at) }},
		Start:    r.start,
		Drain:    drainLimit,
		Observe:  r.observe,
	}.Play(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// counted notes the arrivals of a stream.
type counted struct {
	workload.Stream
	note func(time.Duration)
}

func (c *counted) Next() (workload.Request, error) {
	request, err := c.Stream.Next()
	if err == nil {
		c.note(request.Arrival)
	}
	return request, err
}

func (r *traffic) note(model string, at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[model] = append(r.sent[model], at)
}

func (r *traffic) observe(o emulation.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.end.IsZero() {
		return
	}
	r.outcomes = append(r.outcomes, report.Outcome{
		Model:        o.Model,
		Arrived:      o.Arrival,
		Completed:    !o.Failed,
		TTFT:         milliseconds(o.TTFT),
		EndToEnd:     milliseconds(o.EndToEnd),
		OutputTokens: o.Output,
	})
}

func milliseconds(d time.Duration) capacity.Milliseconds {
	return capacity.Milliseconds(d.Seconds() * 1000)
}

// soFar are the arrival rate of a model over the last seconds and the share of its
// requests that met the SLO, of those that are done.
func (r *traffic) soFar(m model, at time.Duration) (arrival, attainment *float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	window := min(arrivalWindow, at)
	n := 0
	for i := len(r.sent[m.ID]) - 1; i >= 0 && r.sent[m.ID][i] > at-window; i-- {
		// The stream is one request ahead of the clock.
		if r.sent[m.ID][i] <= at {
			n++
		}
	}
	if window > 0 {
		arrival = new(float64(n) / window.Seconds())
	}
	var own []report.Outcome
	for _, o := range r.outcomes {
		if o.Model == m.ID {
			own = append(own, o)
		}
	}
	return arrival, report.Attainment(own, m.SLO)
}

// observedNodes are the nodes that the demo made.
func observedNodes() []report.ObservedNode {
	var all []report.ObservedNode
	for _, group := range nodeGroups {
		for _, n := range nodesOf(group) {
			all = append(all, report.ObservedNode{Name: n.Name, Accelerator: group.Accelerator, Devices: group.Shape.GPUs})
		}
	}
	return all
}

// observation is everything that was seen until the end.
func (r *traffic) observation() report.Observation { return r.observed(r.end.Sub(r.start)) }

// observed is everything that was seen until an instant.
func (r *traffic) observed(end time.Duration) report.Observation {
	p := r.stack.plan
	o := p.unobserved()
	o.KubernetesVersion = r.stack.version
	o.Traffic, o.End = min(p.Duration, end), end
	o.Variants = r.stack.observer.observedVariants(p.models)
	o.Placements = r.stack.observer.placements()
	o.Decisions = r.stack.observer.decisionsSoFar()
	o.Moves = r.stack.observer.moves()
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Outcomes = append(o.Outcomes, r.outcomes...)
	return o
}

// unobserved is what is known of a run before its traffic.
func (p plan) unobserved() report.Observation {
	// Every object of the demo has a latency profile.
	o := report.Observation{Trace: report.Synthetic, Rate: p.Rate, Nodes: observedNodes(), Mode: p.Mode, Profiles: true}
	if p.Mode == modeHybrid {
		o.Aim = decision.DefaultPolicy().Share
	}
	if p.Trace != "" {
		o.Trace = p.Trace
	}
	for _, m := range p.models {
		o.Models = append(o.Models, report.ObservedModel{ID: m.ID, SLO: m.SLO})
		for _, v := range m.Variants {
			o.Variants = append(o.Variants, report.ObservedVariant{Name: v.Name, Model: m.ID, Accelerator: v.Accelerator, Devices: v.Devices, Cost: v.cost()})
		}
	}
	return o
}
