package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// lookEvery is the time between two looks at the gateways' queues while a model
	// sleeps, and lookSeldom the longest between the end of one and the next while none
	// is answered. An address may be dead and the other have nothing to show yet, and its
	// first request is to be seen within 5 s all the same.
	lookEvery  = time.Second
	lookSeldom = 2 * time.Second
	// lookTimeout bounds one look: a request that waits is to be seen within seconds.
	lookTimeout = 3 * time.Second
	// wakeAgain is the time between two rounds for the same model while it sleeps on.
	wakeAgain = 5 * time.Second
)

// sleepers are the models of which nothing is asked to run, and when to look at what
// the gateways queue for them. It is a value without a clock.
type sleepers struct {
	// models are the sleeping ones, and hearing says what gateways count for them.
	models  map[decision.ModelKey]sleeper
	hearing hearing
	// looking is set while a look is under way, due is when the next one may begin.
	looking bool
	due     time.Time
	// failing is set while looks fail, if only in part. Pause is the time from a look
	// that nobody answered to the next one; 0 while somebody does.
	failing bool
	pause   time.Duration
}

// sleeper is one model that sleeps.
type sleeper struct {
	// tried is when a round was last begun for it, and waits is set when requests waited
	// for it when that was last known.
	tried time.Time
	waits bool
}

// next is how long the next look may wait; false means that there is none to come
// before something else happens.
func (s *sleepers) next(now time.Time) (time.Duration, bool) {
	return until(s.due, now), len(s.models) > 0 && !s.looking
}

// begin notes that a look begins.
func (s *sleepers) begin(now time.Time) { s.looking, s.due = true, now.Add(lookEvery) }

// end notes how a look ended, and reports whether looks begin to fail, or fail no more.
// While some answer, those are looked at as often as ever.
func (s *sleepers) end(now time.Time, seen found[decision.Sample]) (news bool) {
	failed := seen.err != nil
	news = failed != s.failing
	s.looking, s.failing = false, failed
	if !failed || len(seen.of) > 0 {
		s.pause = 0
		return news
	}
	s.pause = min(max(2*s.pause, lookEvery), lookSeldom)
	s.due = now.Add(s.pause)
	return news
}

// settle takes over which models sleep after a round.
func (s *sleepers) settle(plan *decision.Plan, seen *observation, outcomes map[decision.Key]outcome) {
	asleep := map[decision.ModelKey]sleeper{}
	s.hearing = seen.hearing
	for _, m := range pointers(plan.Models) {
		key := decision.ModelKey{Namespace: m.Namespace, ID: m.ID}
		if sleeps(m, seen, outcomes) {
			asleep[key] = s.models[key]
		}
	}
	s.models = asleep
}

// sleeps reports whether none of a model's targets asks for a replica, and there is one
// that we may wake.
func sleeps(m *decision.ModelPlan, seen *observation, outcomes map[decision.Key]outcome) bool {
	ours := false
	for _, p := range pointers(m.Variants) {
		v := seen.variants[p.Key]
		if v == nil || v.target.scale == nil {
			continue
		}
		replicas := v.target.scale.Spec.Replicas
		if o, ok := outcomes[p.Key]; ok && o.err == nil {
			replicas = o.scale.Spec.Replicas
		}
		if replicas > 0 {
			return false
		}
		ours = ours || v.target.state == decision.TargetFound && seen.policy.Variant(p.Key).Actuation != decision.ActuationOff
	}
	return ours
}

// waiting are requests that wait for a sleeping model, asked for by one of its names, which
// gateways count under some name.
type waiting struct {
	of, name decision.ModelKey
	queue    decision.Sample
	// begins is set when none waited before.
	begins bool
}

// wanted are the requests that wait for sleeping models, if they were seen since. A
// model that still sleeps although a round was held for it waits for a while before the
// next one.
func (s *sleepers) wanted(now, since time.Time, queues map[decision.ModelKey]decision.Sample) (wanted []waiting) {
	for model, before := range s.models {
		known := false
		var waits []waiting
		for _, of := range s.hearing.of[model] {
			for _, name := range under(s.hearing, of, queues) {
				queue := queues[name]
				if !queue.Present || !queue.Time.After(since) {
					continue
				}
				if known = true; queue.Value > 0 {
					waits = append(waits, waiting{of, name, queue, !before.waits})
				}
			}
		}
		switch {
		case !known:
		case len(waits) == 0:
			s.models[model] = sleeper{tried: before.tried}
		case now.Sub(before.tried) >= wakeAgain:
			wanted = append(wanted, waits...)
			s.models[model] = sleeper{tried: now, waits: true}
		}
	}
	return wanted
}

// probeQueues looks at the gateways' queues aside when that is due.
func (l *Loop) probeQueues(ctx context.Context) {
	now := time.Now()
	if wait, ok := l.sleepers.next(now); l.queues == nil || !ok || wait > 0 {
		return
	}
	l.sleepers.begin(now)
	aside(ctx, now, lookTimeout, l.looked, l.queues)
}

// onQueueProbe answers a look: requests that wait for a sleeping model are worth a round at
// once. What some gateways said counts, whatever others did.
func (l *Loop) onQueueProbe(ctx context.Context, seen found[decision.Sample]) {
	now := time.Now()
	switch news := l.sleepers.end(now, seen); {
	case news && seen.err != nil:
		klog.FromContext(ctx).Error(seen.err, "Not all gateways say whether requests wait for models that sleep")
	case news:
		klog.FromContext(ctx).Info("All gateways say again whether requests wait for models that sleep")
	}
	wanted := l.sleepers.wanted(now, now.Add(-l.settings.Current().Freshness.Ageing), seen.of)
	if len(wanted) == 0 {
		return
	}
	l.readings = l.readings.withQueues(l.sleepers.hearing, wanted)
	if begun := only(wanted, func(w waiting) bool { return w.begins }); len(begun) > 0 {
		klog.FromContext(ctx).Info("Requests wait for models that sleep", "models", len(begun))
	}
	l.schedule.begin(decision.RoundEvent, now)
	l.round(ctx, decision.RoundEvent)
}

// withQueues are the readings with newer queues of some models, whose other samples
// stay what they are. They go where the readings have the model, under the same name, so
// that the next reading overwrites them.
func (r readings) withQueues(h hearing, wanted []waiting) readings {
	newer := map[decision.ModelKey]decision.Model{}
	for _, w := range wanted {
		name := w.name
		if read := under(h, w.of, r.models); len(read) > 0 && !slices.Contains(read, name) {
			name = read[0]
		}
		m := r.models[name]
		m.Namespace, m.ID, m.Queue = name.Namespace, name.ID, w.queue
		newer[name] = m
	}
	r.models = over(r.models, newer)
	return r
}
