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
	since := r.at.Add(-stale)
	r.pods, r.models = filled(before.pods, r.pods, since, samplesOf), filled(before.models, r.models, since, samplesOfModel)
	return r
}

// filled is what is known now, and what was known before where samples are from after an instant.
func filled[K comparable, V any](before, now map[K]V, since time.Time, of func(*V) samples) map[K]V {
	all := make(map[K]V, len(before))
	for key, v := range before {
		if of(&v).keep(since) {
			all[key] = v
		}
	}
	for key, v := range now {
		old := all[key]
		of(&v).fill(of(&old))
		all[key] = v
	}
	return all
}

// samples are those of a replica or a model. Span is that of recent, which is one of them.
type samples struct {
	all    []*decision.Sample
	recent *decision.Sample
	span   *time.Duration
}

func samplesOf(r *decision.Replica) samples {
	return samples{[]*decision.Sample{
		&r.KVUse, &r.KVTokens, &r.Waiting, &r.Running, &r.Served, &r.InService, &r.InFlightGrowth, &r.Recent,
		&r.TTFT, &r.ITL, &r.Input, &r.Output,
	}, &r.Recent, &r.RecentSpan}
}

func samplesOfModel(m *decision.Model) samples {
	return samples{[]*decision.Sample{&m.Arrival, &m.Recent, &m.Queue}, &m.Recent, &m.RecentSpan}
}

// keep drops the samples that are not from after an instant, and reports whether any is left.
func (s samples) keep(since time.Time) (left bool) {
	for _, one := range s.all {
		if !one.Time.After(since) {
			*one = decision.Sample{}
		}
		left = left || one.Present
	}
	if !s.recent.Present {
		*s.span = 0
	}
	return left
}

// fill takes the samples that are missing from those of before.
func (s samples) fill(before samples) {
	if !s.recent.Present {
		*s.span = *before.span
	}
	for i, one := range s.all {
		if !one.Present {
			*one = *before.all[i]
		}
	}
}
