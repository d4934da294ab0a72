package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/controller/settings"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// Loop runs the rounds. It is a Runnable of the manager for the leader alone.
type Loop struct {
	observer *observer
	actor    *actor
	reporter *reporter
	metrics  Metrics
	// queues is nil where nothing tells what waits, and adapters where nothing tells which are in use.
	queues      read[decision.Sample]
	adapters    func(context.Context, time.Time) (map[types.NamespacedName][]string, error)
	settings    *settings.Settings
	permissions *permissions
	trigger     *trigger
	decide      decide
	// ready is closed when the settings of the cluster are in force.
	ready <-chan struct{}

	// What follows belongs to the goroutine of Start.

	clock    round.Clock
	memory   decision.Memory
	readings readings
	// reading is the round that the reading under way is for; empty when none is.
	reading decision.Round
	arrived chan readings
	// past is what is known of earlier days.
	past past
	// attainment is what is known of promises that were kept.
	attainment attainment
	// wrong is what was last logged of readings: the text of the error; empty without.
	wrong string
	// sleepers are the models that sleep, hearing says what gateways count for whom, and looked
	// what the gateways say.
	sleepers round.Sleepers
	hearing  hearing
	looked   chan found[decision.Sample]
	// stumbles counts the decisions in a row that panicked.
	stumbles int
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
	if l.permissions.current.Load().Local == "" {
		// Not for long: what namespaces say and is not known then has a condition of its own.
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		l.observer.locals.Wait(reading)
		cancel()
	}
	// Nothing is written once the next leader may begin.
	defer l.reporter.statuses.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.trigger.wake:
			l.clock.Event(l.trigger.take())
		case r := <-l.arrived:
			kind := l.reading
			l.reading, l.readings = "", r.over(l.readings, l.settings.Current().Freshness.Stale)
			l.tellReading(ctx, r.err)
			l.round(ctx, kind)
		case read := <-l.past.arrived:
			l.past.take(ctx, read)
		case read := <-l.attainment.arrived:
			l.attainment.take(ctx, read)
		case seen := <-l.looked:
			l.onQueueProbe(ctx, seen)
		case <-timer.C:
			l.probeQueues(ctx)
			l.begin(ctx)
		}
		timer.Reset(l.wait())
	}
}

// wait is how long nothing is due.
func (l *Loop) wait() time.Duration {
	_, wait := l.due()
	if look, ok := l.sleepers.Next(time.Now()); ok && l.queues != nil {
		wait = min(wait, look)
	}
	return wait
}

// due is the round that is due next; empty when none is. While samples are read,
// only events are answered, with the samples of before.
func (l *Loop) due() (decision.Round, time.Duration) {
	now := time.Now()
	if l.reading == "" {
		return l.clock.Next(now, l.settings.Current().Interval)
	}
	if wait, pending := l.clock.NextEvent(now); pending && !l.readings.at.IsZero() {
		return decision.RoundEvent, wait
	}
	return "", time.Hour
}

// begin starts the round that is due: an event round at once with the samples that
// are there, any other one by reading new ones.
func (l *Loop) begin(ctx context.Context) {
	kind, wait := l.due()
	switch {
	case kind == "" || wait > 0:
	case kind == decision.RoundEvent:
		l.clock.Begin(kind, time.Now())
		l.round(ctx, kind)
	default:
		if _, ok := l.metrics.(Follower); ok && l.readings.at.IsZero() {
			// Metrics that ask pods have to know them before the first reading.
			if _, err := l.look(ctx, time.Now()); err != nil {
				klog.FromContext(ctx).Error(err, "The cluster could not be observed before the first reading of metrics")
			}
		}
		l.clock.Begin(kind, time.Now())
		if l.settings.Current().History {
			l.past.begin(ctx, time.Now())
		}
		if kind == decision.RoundFull {
			l.attainment.begin(ctx, time.Now(), l.settings.Current().MetricsWindow)
		}
		l.reading = kind
		go l.read(ctx, kind)
	}
}

// readTimeout bounds a reading, so that rounds go on with what is known when nobody
// answers. A round waits for its reading, and fast rounds are as far apart.
const readTimeout = decision.FastInterval

func (l *Loop) read(ctx context.Context, kind decision.Round) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s := l.settings.Current()
	r := readings{at: time.Now()}
	r.pods, r.models, r.err = l.metrics.Read(ctx, r.at, s.MetricsWindow, s.Freshness.Stale)
	if l.adapters != nil && kind == decision.RoundFull {
		var err error
		if r.adapters, err = l.adapters(ctx, r.at); err != nil {
			r.err = errors.Join(r.err, err)
		}
	}
	l.arrived <- r
}

// tellReading logs what is wrong with readings when that changes, and once when nothing
// is any more.
func (l *Loop) tellReading(ctx context.Context, err error) {
	switch {
	case !news(&l.wrong, err):
	case err != nil:
		klog.FromContext(ctx).Error(err, "Some metrics could not be read; the last known values are used until they are stale")
	default:
		klog.FromContext(ctx).Info("All metrics could be read again")
	}
}

// look observes the cluster, and tells metrics that ask pods which there are.
func (l *Loop) look(ctx context.Context, now time.Time) (*observation, error) {
	access := *l.permissions.current.Load()
	l.observer.access, l.actor.access = access, access
	l.observer.history, l.observer.met = l.past.known, l.attainment.known
	seen, err := l.observer.observe(ctx, now, l.settings.Current(), l.readings)
	if err == nil {
		l.attainment.follow(&seen.policy)
	}
	if follower, ok := l.metrics.(Follower); ok && err == nil {
		seen.asksPods = true
		follower.Follow(seen.replicas())
	}
	return seen, err
}

// round is one round, from the cluster to the cluster.
func (l *Loop) round(ctx context.Context, kind decision.Round) {
	began := time.Now()
	err := l.run(ctx, kind, began)
	l.reporter.metrics.Ended(kind, time.Since(began), time.Now(), err)
}

// run is what a round does. Its error joins all that went wrong.
func (l *Loop) run(ctx context.Context, kind decision.Round, began time.Time) error {
	l.clock.Looked()
	seen, err := l.look(ctx, began)
	if err != nil {
		l.reporter.unobserved(ctx, err)
		return err
	}
	seen.believed = l.memory
	l.reporter.findRivals(seen)
	plan, err := l.plan(ctx, seen, kind)
	if err != nil {
		plan = l.reporter.stopgap(seen, kind, err.Error())
	}
	annotate(&plan, seen)
	if err != nil {
		return l.reporter.report(ctx, &plan, seen, nil, err)
	}
	l.reporter.statuses.end()
	written := l.actor.act(ctx, &plan, seen)
	for key, o := range written {
		if o.err == nil {
			l.memory.Wrote(key)
		}
	}
	l.sleepers.Settle(asleep(&plan, seen, written))
	l.hearing = seen.hearing
	logDetail(ctx, &plan, seen)
	return l.reporter.report(ctx, &plan, seen, written, nil)
}

// decide is the signature of decision.Decide.
type decide func(decision.Snapshot, decision.Policy, decision.Memory, decision.Round) (decision.Plan, decision.Memory)

// forgetAfter is how many decisions in a row may panic before the memory, which may be
// the cause, is dropped; that is what a new leader begins with.
const forgetAfter = 3

// plan decides. A panic becomes an error: a model that nobody thought of must neither end the
// loop for all others nor go unnoticed. Where that was is told once for each time that it begins.
func (l *Loop) plan(ctx context.Context, seen *observation, kind decision.Round) (plan decision.Plan, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			l.stumbles = 0
			return
		}
		err = fmt.Errorf("the decision failed, which is a mistake in the autoscaler: %v", cause)
		log := klog.FromContext(ctx)
		if l.stumbles == 0 {
			log = log.WithValues("stack", string(debug.Stack()))
		}
		log.Error(err, "The decision failed; no replicas are changed")
		if l.stumbles++; l.stumbles%forgetAfter == 0 {
			l.memory = decision.Memory{}
			log.Info("Everything learned so far is dropped, because it may be the cause")
		}
	}()
	plan, l.memory = l.decide(seen.snapshot, seen.policy, l.memory, kind)
	return plan, nil
}

// trigger carries events from the watches to the loop. Events that come while the
// loop is busy become one.
type trigger struct {
	pending atomic.Int32
	wake    chan struct{}
}

func newTrigger() *trigger { return &trigger{wake: make(chan struct{}, 1)} }

// poke never blocks.
func (t *trigger) poke(u round.Urgency) {
	t.pending.Or(int32(u))
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns the greatest urgency since it was last called.
func (t *trigger) take() round.Urgency { return round.Urgency(t.pending.Swap(int32(round.Calm))) }
