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

// laid are the models of both. Where one of the two says no namespace, and only one
// model of that name can be meant, they are the same model by both names; but what others
// count without a namespace may be of several, and does not get one here.
func laid(own, others map[decision.ModelKey]decision.Model, late time.Duration) map[decision.ModelKey]decision.Model {
	all := maps.Clone(others)
	if all == nil {
		all = map[decision.ModelKey]decision.Model{}
	}
	namespaces, otherNamespaces := byID(own), byID(others)
	for key, model := range own {
		ids, otherIDs := namespaces[key.ID], otherNamespaces[key.ID]
		below := all[key]
		if len(ids) == 1 && len(otherIDs) == 1 && (key.Namespace == "" || otherIDs[0] == "") {
			other := decision.ModelKey{Namespace: otherIDs[0], ID: key.ID}
			all[other] = over(others[other], model, other, late)
			if key.Namespace == "" {
				below = others[other]
			}
		}
		all[key] = over(below, model, key, late)
	}
	return all
}

// byID are the namespaces of each model.
func byID(models map[decision.ModelKey]decision.Model) map[string][]string {
	namespaces := make(map[string][]string, len(models))
	for key := range models {
		namespaces[key.ID] = append(namespaces[key.ID], key.Namespace)
	}
	return namespaces
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
