package scale

import (
	"context"
	"fmt"
	"slices"

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
	mapper apimeta.RESTMapper
	served discovery.ServerResourcesInterface
}

// New returns a client that finds resources through the mapper, which is expected to
// look again for kinds that it does not know yet.
func New(cfg *rest.Config, mapper apimeta.RESTMapper) (*Client, error) {
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("setting up the discovery of scale subresources: %w", err)
	}
	scales, err := scale.NewForConfig(rest.CopyConfig(cfg), mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(served))
	if err != nil {
		return nil, fmt.Errorf("setting up the scale client: %w", err)
	}
	return &Client{scales: scales, mapper: mapper, served: served}, nil
}

// Read returns the scale of a target as it is in the API server now.
func (c *Client) Read(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	t := target{namespace: namespace, ref: ref}
	resource, err := c.resource(t)
	if err != nil {
		return nil, err
	}
	read, err := c.get(ctx, t, resource.GroupResource())
	// Permissions come before existence: what may not be read may not even be there.
	if err != nil && !c.scalable(resource) {
		return nil, &NotScalableError{target: t, why: "its kind has no scale subresource; choose a target that has one"}
	}
	return read, err
}

// scalable reports whether the kind has a scale subresource, as far as is known.
func (c *Client) scalable(resource schema.GroupVersionResource) bool {
	list, err := c.served.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource+"/scale" })
}

// Scalable reports whether objects of a kind can be scaled; known is false where the API
// server does not serve the kind, which may come later, or does not answer.
func (c *Client) Scalable(gvk schema.GroupVersionKind) (scalable, known bool) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == apimeta.RESTScopeNameNamespace && c.scalable(mapping.Resource), true
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
	versioned, err := c.resource(t)
	if err != nil {
		return nil, err
	}
	resource, base := versioned.GroupResource(), read
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

// resource finds the resource of the target's kind.
func (c *Client) resource(t target) (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(t.ref.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("%s: apiVersion %q is not of the form group/version: %w", t, t.ref.APIVersion, err)
	}
	mapping, err := c.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: t.ref.Kind}, gv.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return schema.GroupVersionResource{}, &NotScalableError{target: t, why: fmt.Sprintf("the API server serves no kind %s in %s", t.ref.Kind, t.ref.APIVersion)}
	case err != nil:
		return schema.GroupVersionResource{}, fmt.Errorf("%s: finding its resource: %w", t, settings.Steady(err))
	case mapping.Scope.Name() != apimeta.RESTScopeNameNamespace:
		return schema.GroupVersionResource{}, &NotScalableError{target: t, why: "its kind is not namespaced"}
	}
	return mapping.Resource, nil
}
