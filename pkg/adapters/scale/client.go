package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// attempts is how often a write is tried while only the target's status moves.
const attempts = 5

// Client reads and writes scale subresources. It is safe for concurrent use.
type Client struct {
	scales scale.ScalesGetter
	kinds  *kinds
}

// scalableTimeout bounds the look for a kind that a webhook asks for.
const scalableTimeout = 2 * time.Second

// New returns a client for the API server of the configuration.
func New(cfg *rest.Config) (*Client, error) {
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("setting up the discovery of scale subresources: %w", err)
	}
	known := newKinds(served)
	scales, err := scale.NewForConfig(rest.CopyConfig(cfg), known, dynamic.LegacyAPIPathResolverFunc, known)
	if err != nil {
		return nil, fmt.Errorf("setting up the scale client: %w", err)
	}
	return &Client{scales: scales, kinds: known}, nil
}

// Read returns the scale of a target as it is in the API server now.
func (c *Client) Read(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	t := target{namespace: namespace, ref: ref}
	kind, err := c.kind(ctx, t, c.kinds.find)
	if err != nil {
		return nil, err
	}
	read, err := c.get(ctx, t, kind.resource.GroupResource())
	if err == nil {
		return read, nil
	}
	// The kind may have changed since: its CRD gains a scale subresource, or goes.
	kind, again := c.kind(ctx, t, c.kinds.anew)
	var unscalable *NotScalableError
	switch {
	case errors.As(again, &unscalable):
		return nil, again
	case again == nil && kind.scale.Empty():
		return nil, &NotScalableError{target: t, why: "its kind has no scale subresource; choose a target that has one"}
	}
	return nil, err
}

// Scalable reports whether objects of a kind can be scaled; known is false where the API
// server does not serve the kind, which may come later, or does not answer.
func (c *Client) Scalable(ctx context.Context, gvk schema.GroupVersionKind) (scalable, known bool) {
	ctx, cancel := context.WithTimeout(ctx, scalableTimeout)
	defer cancel()
	kind, err := c.kinds.find(ctx, gvk)
	return err == nil && kind.namespaced && !kind.scale.Empty(), err == nil
}

// Write asks for the replicas under the UID and the resource version of the scale
// that was read. When the target has changed since, it is read again: as long as it
// still asks for the replicas that were read (only its status moved, as it does
// while pods start), the write is tried again under the new version, a few times;
// otherwise somebody else scaled it. Both ends are a ConflictError, for the next
// round to look at. A target that asks for the replicas already is as good as written:
// most likely this very write arrived, and its answer did not.
func (c *Client) Write(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference, read *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error) {
	t := target{namespace: namespace, ref: ref}
	kind, err := c.kind(ctx, t, c.kinds.find)
	if err != nil {
		return nil, err
	}
	resource, base := kind.resource.GroupResource(), read
	for range attempts {
		written, err := c.update(ctx, t, resource, base, replicas)
		if !apierrors.IsConflict(err) {
			return written, t.explain(err, resource, "update")
		}
		if base, err = c.get(ctx, t, resource); err != nil {
			return nil, err
		}
		switch {
		case base.UID == read.UID && base.Spec.Replicas == replicas:
			return base, nil
		case base.UID != read.UID || base.Spec.Replicas != read.Spec.Replicas:
			return nil, conflictOf(t, read, base)
		}
	}
	return nil, conflictOf(t, read, base)
}

func conflictOf(t target, read, found *autoscalingv1.Scale) error {
	return &ConflictError{target: t, read: read.Spec.Replicas, found: found.Spec.Replicas, replaced: found.UID != read.UID}
}

func (c *Client) get(ctx context.Context, t target, resource schema.GroupResource) (*autoscalingv1.Scale, error) {
	read, err := c.scales.Scales(t.namespace).Get(ctx, resource, t.ref.Name, metav1.GetOptions{})
	return read, t.explain(err, resource, "get")
}

func (c *Client) update(ctx context.Context, t target, resource schema.GroupResource, read *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error) {
	return c.scales.Scales(t.namespace).Update(ctx, resource, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:            t.ref.Name,
			Namespace:       t.namespace,
			UID:             read.UID,
			ResourceVersion: read.ResourceVersion,
		},
		Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
}

// kind is what the API server serves of the target's kind, as one of the ways to find it tells.
func (c *Client) kind(ctx context.Context, t target, find func(context.Context, schema.GroupVersionKind) (served, error)) (served, error) {
	gv, err := schema.ParseGroupVersion(t.ref.APIVersion)
	if err != nil {
		return served{}, fmt.Errorf("%s: apiVersion %q is not of the form group/version: %w", t, t.ref.APIVersion, err)
	}
	kind, err := find(ctx, gv.WithKind(t.ref.Kind))
	switch {
	case apimeta.IsNoMatchError(err):
		return served{}, &NotScalableError{target: t, why: fmt.Sprintf("the API server serves no kind %s in %s", t.ref.Kind, t.ref.APIVersion)}
	case err != nil:
		return served{}, fmt.Errorf("%s: finding its resource: %w", t, settings.StableError(err))
	case !kind.namespaced:
		return served{}, &NotScalableError{target: t, why: "its kind is not namespaced"}
	}
	return kind, nil
}
