package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// readings are the samples of one moment.
type readings struct {
	at     time.Time
	pods   map[types.NamespacedName]decision.Replica
	models map[decision.ModelKey]decision.Model
	err    error
}

// over fills what a reading that failed lacks with the one before. Samples carry
// their times, so a short outage of Prometheus is what it is: data that age. What is as
// old as stale counts for nothing, and is dropped: a reading can fail for ever because of
// one pod, while others come and go.
func (r readings) over(before readings, stale time.Duration) readings {
	if r.err == nil {
		return r
	}
	filled := readings{at: r.at, err: r.err,
		pods:   make(map[types.NamespacedName]decision.Replica, len(before.pods)),
		models: make(map[decision.ModelKey]decision.Model, len(before.models)),
	}
	before.copySince(r.at.Add(-stale), filled)
	for name, pod := range r.pods {
		filled.pods[name] = overlaid(filled.pods[name], pod)
	}
	for key, model := range r.models {
		old := filled.models[key]
		if !model.Recent.Present {
			model.RecentSpan = old.RecentSpan
		}
		model.Arrival, model.Recent, model.Queue = newest(old.Arrival, model.Arrival), newest(old.Recent, model.Recent), newest(old.Queue, model.Queue)
		filled.models[key] = model
	}
	return filled
}

// copySince copies the pods and models of which there are samples from after an instant,
// with those samples.
func (r readings) copySince(since time.Time, to readings) {
	for name, pod := range r.pods {
		if !keep(since, samplesOf(&pod)...) {
			continue
		}
		if !pod.Recent.Present {
			pod.RecentSpan = 0
		}
		to.pods[name] = pod
	}
	for key, model := range r.models {
		if !keep(since, &model.Arrival, &model.Recent, &model.Queue) {
			continue
		}
		if !model.Recent.Present {
			model.RecentSpan = 0
		}
		to.models[key] = model
	}
}

// keep drops the samples that are not from after an instant, and reports whether any is
// left.
func keep(since time.Time, samples ...*decision.Sample) (left bool) {
	for _, s := range samples {
		if !s.Time.After(since) {
			*s = decision.Sample{}
		}
		left = left || s.Present
	}
	return left
}

func overlaid(before, now decision.Replica) decision.Replica {
	if !now.Recent.Present {
		now.RecentSpan = before.RecentSpan
	}
	old, current := samplesOf(&before), samplesOf(&now)
	for i := range current {
		*current[i] = newest(*old[i], *current[i])
	}
	return now
}

func newest(before, now decision.Sample) decision.Sample {
	if now.Present {
		return now
	}
	return before
}

// samplesOf are all samples of a replica.
func samplesOf(r *decision.Replica) []*decision.Sample {
	return []*decision.Sample{
		&r.KVUse, &r.KVTokens, &r.Waiting, &r.Running, &r.Served, &r.InService, &r.InFlightGrowth, &r.Recent,
		&r.TTFT, &r.ITL, &r.Input, &r.Output,
	}
}
