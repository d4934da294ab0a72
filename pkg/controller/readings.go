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
// their times, so a short outage of Prometheus is what it is: data that age.
func (r readings) over(before readings) readings {
	if r.err == nil {
		return r
	}
	filled := readings{at: r.at, err: r.err,
		pods:   make(map[types.NamespacedName]decision.Replica, len(before.pods)),
		models: make(map[decision.ModelKey]decision.Model, len(before.models)),
	}
	for _, from := range []readings{before, r} {
		for name, pod := range from.pods {
			filled.pods[name] = overlaid(filled.pods[name], pod)
		}
		for key, model := range from.models {
			old := filled.models[key]
			if !model.Recent.Present {
				model.Recent, model.RecentSpan = old.Recent, old.RecentSpan
			}
			model.Arrival, model.Queue = newest(old.Arrival, model.Arrival), newest(old.Queue, model.Queue)
			filled.models[key] = model
		}
	}
	return filled
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
