package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// lookTimeout bounds one look: a request that waits is to be seen within seconds.
const lookTimeout = 3 * time.Second

// asleep are the models that sleep after a round.
func asleep(plan *decision.Plan, seen *observation, outcomes map[decision.Key]outcome) (models []decision.ModelKey) {
	for _, m := range pointers(plan.Models) {
		if round.Asleep(targetsOf(m, seen, outcomes)) {
			models = append(models, decision.ModelKey{Namespace: m.Namespace, ID: m.ID})
		}
	}
	return models
}

// targetsOf are the targets of a model that are there, after what was written.
func targetsOf(m *decision.ModelPlan, seen *observation, outcomes map[decision.Key]outcome) (targets []round.Target) {
	for _, p := range pointers(m.Variants) {
		v := seen.variants[p.Key]
		if v == nil || v.target.scale == nil {
			continue
		}
		replicas := v.target.scale.Spec.Replicas
		if o, ok := outcomes[p.Key]; ok && o.err == nil {
			replicas = o.scale.Spec.Replicas
		}
		targets = append(targets, round.Target{
			Replicas: int(replicas),
			Wakes:    v.target.state == decision.TargetFound && seen.policy.Variant(p.Key).Actuation != decision.ActuationOff,
		})
	}
	return targets
}

// waiting are requests that wait for a sleeping model, asked for by one of its names, which
// gateways count under some name.
type waiting struct {
	of, name decision.ModelKey
	queue    decision.Sample
	// begins is set when none waited before.
	begins bool
}

// called are the requests that wait for sleeping models that are worth a round now, if they
// were seen since.
func called(s *round.Sleepers, h hearing, now, since time.Time, queues map[decision.ModelKey]decision.Sample) (wanted []waiting) {
	calls := s.Calls(now, func(model decision.ModelKey) round.Heard {
		heard := round.HeardNothing
		for _, w := range heardOf(model, h, since, queues) {
			heard = round.HeardSilence
			if w.queue.Value > 0 {
				return round.HeardRequests
			}
		}
		return heard
	})
	for _, call := range calls {
		for _, w := range heardOf(call.Model, h, since, queues) {
			if w.queue.Value > 0 {
				w.begins = call.Begins
				wanted = append(wanted, w)
			}
		}
	}
	return wanted
}

// heardOf is what gateways said of a model under all of its names since an instant.
func heardOf(model decision.ModelKey, h hearing, since time.Time, queues map[decision.ModelKey]decision.Sample) (all []waiting) {
	for _, of := range h.of[model] {
		for _, name := range under(h, of, queues) {
			if queue := queues[name]; queue.Present && queue.Time.After(since) {
				all = append(all, waiting{of: of, name: name, queue: queue})
			}
		}
	}
	return all
}

// probeQueues looks at the gateways' queues aside when that is due.
func (l *Loop) probeQueues(ctx context.Context) {
	now := time.Now()
	if wait, ok := l.sleepers.Next(now); l.queues == nil || !ok || wait > 0 {
		return
	}
	l.sleepers.Begin(now)
	aside(ctx, now, lookTimeout, l.looked, l.queues)
}

// onQueueProbe answers a look: requests that wait for a sleeping model are worth a round at
// once. What some gateways said counts, whatever others did.
func (l *Loop) onQueueProbe(ctx context.Context, seen found[decision.Sample]) {
	now := time.Now()
	switch news := l.sleepers.End(now, lookOf(seen)); {
	case news && seen.err != nil:
		klog.FromContext(ctx).Error(seen.err, "Not all gateways say whether requests wait for models that sleep")
	case news:
		klog.FromContext(ctx).Info("All gateways say again whether requests wait for models that sleep")
	}
	waits := called(&l.sleepers, l.hearing, now, now.Add(-l.settings.Current().Freshness.Ageing), seen.of)
	if len(waits) == 0 {
		return
	}
	l.readings = l.readings.withQueues(l.hearing, waits)
	if begun := only(waits, func(w waiting) bool { return w.begins }); len(begun) > 0 {
		klog.FromContext(ctx).Info("Requests wait for models that sleep", "models", len(begun))
	}
	l.clock.Begin(decision.RoundEvent, now)
	l.round(ctx, decision.RoundEvent)
}

// lookOf is how a look ended.
func lookOf(seen found[decision.Sample]) round.Look {
	switch {
	case seen.err == nil:
		return round.LookAnswered
	case len(seen.of) > 0:
		return round.LookInPart
	}
	return round.LookFailed
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
