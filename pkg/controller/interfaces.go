package controller

import (
	"context"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Metrics reads what model servers and gateways expose.
type Metrics interface {
	// Read returns the samples at an instant: replicas by pod, and of each model its
	// Arrival and Queue; the namespace of a model is empty when the gateway does not
	// say it. Rates and means are over the window; the last value of a gauge is
	// looked for as far back as the lookback. With an error, what is there is good
	// and the rest is unknown.
	Read(ctx context.Context, at time.Time, window, lookback time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error)
}

// Scaler reads and writes scale subresources of any kind. Its errors answer to
// IsNotFound, IsForbidden and IsConflict of k8s.io/apimachinery/pkg/api/errors;
// the text of one that is Forbidden names the rule that is missing.
type Scaler interface {
	Read(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error)
	// Write asks for the replicas under the version that was read, and gives up when
	// somebody else changed them since.
	Write(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference, read *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error)
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}
