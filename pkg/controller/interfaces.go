package controller

import (
	"context"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// Metrics reads what model servers and gateways expose.
type Metrics interface {
	// Read returns the samples at an instant: replicas by pod, and of each model its
	// Arrival, Recent and Queue; the namespace of a model is empty when the gateway does
	// not say it, and may be that of the gateway. Rates and means are over the window;
	// the last value of a gauge is looked for as far back as the lookback. With an error,
	// what is there is good and the rest is unknown.
	Read(ctx context.Context, at time.Time, window, lookback time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error)
}

// Follower is a Metrics that asks the pods itself, and so has to know them.
type Follower interface {
	// Follow is told, at every look at the cluster, of all pods of all variants that
	// serve or are to serve. It must return at once and change none of them. Of each
	// pod the cache keeps the names, labels, addresses and ports, and the annotations
	// that begin with prometheus.io/.
	Follow(pods []*corev1.Pod)
}

// PodErrors is the error, or part of it, of a Metrics that asks the pods itself. It names pods of
// any namespace.
type PodErrors interface {
	error
	// Of is why a pod did not answer; nil where it did.
	Of(pod types.NamespacedName) error
}

// Historian remembers how loads went on earlier days.
type Historian interface {
	// Earlier returns for each model how its load went on from this time of day, some
	// times forecast.HistoryAgo ago, as far as anybody knows; the namespace is as for Read.
	// It is called once an hour. With an error, what is there is good.
	Earlier(ctx context.Context, at time.Time) (map[decision.ModelKey][]forecast.History, error)
}

// Attainer knows whether promises are kept.
type Attainer interface {
	// Met returns for each model with a promise the share, 0 to 1, of the requests that kept
	// it, of those that completed within the window; the namespace is as for Read. It is
	// called once in a full round, never twice at a time. With an error, what is there is
	// good and the rest is unknown.
	Met(ctx context.Context, at time.Time, window time.Duration, promises map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Sample, error)
}

// Gateway looks at what waits in front of the replicas.
type Gateway interface {
	// Queues returns the number of requests that wait for each model; the namespace is
	// as for Read. It is called every second while a model
	// sleeps, never twice at a time, and ends with its context. With an error, what is
	// there is good and the rest is unknown.
	Queues(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error)
}

// Scaler reads and writes scale subresources of any kind. Its errors answer to
// IsNotFound, IsForbidden and IsConflict of k8s.io/apimachinery/pkg/api/errors;
// the text of one that is Forbidden names the permission that is missing.
type Scaler interface {
	Read(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error)
	// Write asks for the replicas under the version that was read, and gives up when
	// somebody else changed them since.
	Write(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference, read *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error)
}
