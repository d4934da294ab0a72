package controller

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Loop runs the rounds. It is a Runnable of the manager for the leader alone.
type Loop struct {
	observer    *observer
	actor       *actor
	reporter    *reporter
	metrics     Metrics
	settings    *Settings
	permissions *permissions
	clock       Clock
	trigger     *trigger
	// ready is closed when the settings of the cluster are in force.
	ready <-chan struct{}

	// What follows belongs to the goroutine of Start.

	schedule schedule
	memory   decision.Memory
	readings readings
	// reading is the round that the reading under way is for; empty when none is.
	reading decision.Round
	arrived chan readings
}

// NeedLeaderElection keeps the loop on the leader.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start runs rounds until the context ends. Metrics are read aside, so that a slow
// Prometheus delays neither the answer to an event nor the end.
func (l *Loop) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.ready:
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.trigger.wake:
			l.schedule.event(l.trigger.take())
		case r := <-l.arrived:
			round := l.reading
			l.reading, l.readings = "", r.over(l.readings)
			l.round(ctx, round)
		case <-timer.C:
			l.begin(ctx)
		}
		_, wait := l.due()
		timer.Reset(wait)
	}
}

// due is the round that is due next; empty when none is. While samples are read,
// only events are answered, with the samples of before.
func (l *Loop) due() (decision.Round, time.Duration) {
	now := l.clock.Now()
	if l.reading == "" {
		return l.schedule.next(now, l.settings.Current().Interval)
	}
	if wait, pending := l.schedule.nextEvent(now); pending && !l.readings.at.IsZero() {
		return decision.RoundEvent, wait
	}
	return "", time.Hour
}

// begin starts the round that is due: an event round at once with the samples that
// are there, any other one by reading new ones.
func (l *Loop) begin(ctx context.Context) {
	round, wait := l.due()
	switch {
	case round == "" || wait > 0:
	case round == decision.RoundEvent:
		l.schedule.begin(round, l.clock.Now())
		l.round(ctx, round)
	default:
		l.schedule.begin(round, l.clock.Now())
		l.reading = round
		go l.read(ctx)
	}
}

func (l *Loop) read(ctx context.Context) {
	s := l.settings.Current()
	r := readings{at: l.clock.Now()}
	r.pods, r.models, r.err = l.metrics.Read(ctx, r.at, s.MetricsWindow, s.Freshness.Stale)
	l.arrived <- r
}

// round is one round, from the cluster to the cluster.
func (l *Loop) round(ctx context.Context, kind decision.Round) {
	began := l.clock.Now()
	access := *l.permissions.current.Load()
	l.observer.access, l.actor.access = access, access
	seen, err := l.observer.observe(ctx, began, l.settings.Current(), l.readings)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The cluster could not be observed; nothing is changed", "round", kind)
		l.reporter.finished(kind, l.clock.Now().Sub(began), err)
		return
	}
	plan, memory := decision.Decide(seen.snapshot, seen.policy, l.memory, kind)
	l.memory = memory
	annotate(&plan, seen)
	written := l.actor.act(ctx, &plan, seen)
	failed := l.reporter.report(ctx, &plan, seen, written)
	l.reporter.finished(kind, l.clock.Now().Sub(began), failed)
}
