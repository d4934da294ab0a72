package main

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/controller"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// layered lays what gateways say themselves over what others know of them: all of them
// are asked, and they are where nobody else asks them. It counts unless a gateway no
// longer answers: a window holds at least two scrapes, so that what is older than the
// other by more than half of it is that of a gateway which failed.
type layered struct {
	controller.Metrics
	gateways controller.Metrics
}

// Read implements controller.Metrics.
func (l layered) Read(ctx context.Context, at time.Time, window, lookback time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	_, own, ownErr := l.gateways.Read(ctx, at, window, lookback)
	pods, models, err := l.Metrics.Read(ctx, at, window, lookback)
	return pods, laid(own, models, window/2), errors.Join(err, ownErr)
}

// laid are the models of both, each by the name that it was shown under.
func laid(own, others map[decision.ModelKey]decision.Model, late time.Duration) map[decision.ModelKey]decision.Model {
	all := maps.Clone(others)
	if all == nil {
		all = map[decision.ModelKey]decision.Model{}
	}
	for key, model := range own {
		all[key] = over(all[key], model, key, late)
	}
	return all
}

// over is a model with what gateways say of it themselves.
func over(below, own decision.Model, key decision.ModelKey, late time.Duration) decision.Model {
	counts := func(own, below decision.Sample) bool {
		return own.Present && (!below.Present || !own.Time.Add(late).Before(below.Time))
	}
	below.Namespace, below.ID = key.Namespace, key.ID
	if counts(own.Queue, below.Queue) {
		below.Queue = own.Queue
	}
	if counts(own.Arrival, below.Arrival) {
		below.Arrival = own.Arrival
	}
	if counts(own.Recent, below.Recent) {
		below.Recent, below.RecentSpan = own.Recent, own.RecentSpan
	}
	return below
}
