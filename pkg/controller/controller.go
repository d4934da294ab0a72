package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/settings"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// component is the name under which events are recorded.
const component = "workload-variant-autoscaler"

// Options are what the controller is made of.
type Options struct {
	// Metrics may be a Follower, too.
	Metrics Metrics
	Scaler  Scaler
	// Queues returns the number of requests that wait in front of the replicas of each model. It
	// is called every second while a model sleeps, never twice at a time, and ends with its
	// context. It may be nil: then a model wakes when a round reads that requests wait.
	//
	// Of Queues, Earlier and Met the namespace is as for Metrics; with an error, what is there
	// is good and the rest is unknown.
	Queues func(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error)
	// Earlier returns for each model how its load went on from this time of day, some
	// times forecast.HistoryAgo ago, as far as anybody knows. It is called once an hour. It may
	// be nil: then forecasts know nothing of earlier days.
	Earlier func(ctx context.Context, at time.Time) (map[decision.ModelKey][]forecast.History, error)
	// Met returns for each model with a promise the share, 0 to 1, of the requests that kept
	// it, of those that completed within the window. It is called once in a full round, never
	// twice at a time. It may be nil: then nobody tells whether promises are kept.
	Met func(ctx context.Context, at time.Time, window time.Duration, promises map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Kept, error)
	// Adapters returns, by pod, the names of the adapters that its server shows. It is called once in a
	// full round, after Metrics; with an error, what is there is good. It may be nil: then clients ask
	// for a model by the names alone that its objects have.
	Adapters func(ctx context.Context, at time.Time) (map[types.NamespacedName][]string, error)
	// Access is what is permitted at the start, and Ask asks anew for its Capacity and
	// Victims.
	Access Access
	Ask    func(context.Context) (Access, error)
	// Config is the configuration at the start, and Sources are where it came from,
	// so that the ConfigMap can be followed.
	Config  config.Config
	Sources config.Sources
	// Verbosity sets how much is logged; it may be nil.
	Verbosity func(int) error
	// Registerer is where the metrics of the controller are served from.
	Registerer prometheus.Registerer
}

// Controller is the loop and what feeds it, as parts of a manager.
type Controller struct {
	// follower has the settings and the names of accelerators in force.
	follower *settings.Follower
	// config and access are those at the start.
	config config.Config
	access Access
	// cached is what the loop reads, and live asks the API server.
	cached, live client.Reader
}

// New adds the controller to a manager that was not started yet, whose cache has
// CacheOptions. The context is that of the manager.
func New(ctx context.Context, mgr ctrl.Manager, o Options) (*Controller, error) {
	if err := addIndexes(ctx, mgr.GetFieldIndexer(), o.Access); err != nil {
		return nil, err
	}
	o.Access.Namespaces = o.Access.Namespaces && o.Config.Webhook.PlacePods
	trigger := newTrigger()
	w := &watcher{ctx: ctx, cache: mgr.GetCache(), trigger: trigger, access: o.Access}
	if err := w.watch(); err != nil {
		return nil, err
	}
	changed := func() { trigger.poke(round.Soon) }
	f, err := settings.NewFollower(mgr, component, o.Config, o.Sources, o.Verbosity, changed)
	if err != nil {
		return nil, err
	}
	p := newPermissions(o.Access, o.Ask, trigger)
	loop, err := newLoop(mgr, o, f, p, trigger)
	if err != nil {
		return nil, err
	}
	runnables := []manager.Runnable{f, p, loop}
	if o.Config.NamespaceConfig {
		if loop.observer.locals, err = settings.NewLocals(mgr, component, o.Config.PodNamespace, o.Config.WatchNamespace, changed); err != nil {
			return nil, err
		}
		runnables = append(runnables, loop.observer.locals)
	}
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("adding the controller to the manager: %w", err)
		}
	}
	return &Controller{follower: f, config: o.Config, access: o.Access, cached: mgr.GetCache(), live: mgr.GetAPIReader()}, nil
}

func newLoop(mgr ctrl.Manager, o Options, f *settings.Follower, p *permissions, trigger *trigger) (*Loop, error) {
	written := newOverlay()
	r := &reporter{
		statuses: newStatuses(mgr.GetClient()),
		recorder: mgr.GetEventRecorder(component),
		overlay:  written,
		metrics:  metrics.New(o.Config.ControllerInstance, o.Config.Serving.PublishedMetrics),
		failures: map[decision.Key]string{},
		net:      safetyNet{},
	}
	if err := r.metrics.Register(o.Registerer); err != nil {
		return nil, err
	}
	return &Loop{
		observer: &observer{
			reader:    mgr.GetCache(),
			targets:   &targetFinder{reader: mgr.GetCache(), scaler: o.Scaler, access: o.Access, overlay: written},
			instance:  o.Config.ControllerInstance,
			namespace: o.Config.WatchNamespace,
			names:     f.Names,
			scheduler: o.Config.Webhook.Scheduler,
			startups:  &round.Startups{},
			trusted:   o.Config.Gateway.Trusted(),
		},
		actor: &actor{
			scaler:  o.Scaler,
			marker:  &marker{writer: mgr.GetClient(), live: mgr.GetAPIReader()},
			overlay: written,
			late:    map[types.UID]lateWrite{},
		},
		reporter:    r,
		metrics:     o.Metrics,
		queues:      o.Queues,
		adapters:    o.Adapters,
		settings:    f.Settings,
		permissions: p,
		trigger:     trigger,
		ready:       f.Ready,
		arrived:     make(chan readings, 1),
		looked:      make(chan found[decision.Sample], 1),
		past:        past{earlier: o.Earlier, arrived: make(chan found[[]forecast.History], 1)},
		attainment:  attainment{met: o.Met, arrived: make(chan found[decision.Kept], 1)},
		decide:      decision.Decide,
	}, nil
}

// Ready is a readiness check: the caches hold the cluster and its settings are in
// force.
func (c *Controller) Ready(*http.Request) error {
	select {
	case <-c.follower.Ready:
		return nil
	default:
		return errors.New("the caches are not filled yet")
	}
}

// Metrics reads what model servers and gateways expose.
type Metrics interface {
	// Read returns the samples at an instant: replicas by pod, and of each model its
	// Arrival, Recent and Queue; the namespace of a model is empty when the gateway does
	// not say it, and may be that of the gateway, which nobody needs to trust. Rates and means are over the window;
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

// NamespaceErrors is the error, or part of it, of a Metrics that reads some namespaces otherwise than the
// others. It names any of them.
type NamespaceErrors interface {
	error
	// OfNamespace is what concerns one of them; nil for nothing.
	OfNamespace(name string) error
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

// Send is the spec of a pod that is about to be made and says where it goes, if it belongs
// to one of our variants; else nil, with the reason if it is worth one.
func (c *Controller) Send(ctx context.Context, pod *corev1.Pod) (sent *corev1.PodSpec, why string, err error) {
	v, err := c.variantOf(ctx, pod)
	if err != nil || v == nil {
		return nil, "", err
	}
	name, _, err := c.follower.Names.Resolve(v.Spec.Accelerator, v.Labels[v1alpha1.LabelAcceleratorName], &corev1.PodTemplateSpec{Spec: pod.Spec}, nil)
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // what contradicts itself is left alone, which is no failure
	}
	var nodes corev1.NodeList
	if c.access.Capacity {
		if err := c.cached.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, "", fmt.Errorf("listing nodes: %w", err)
		}
	}
	sent, why = inventory.NewSending(c.config.Webhook.Scheduler, c.follower.Names, pointers(nodes.Items)).Send(&pod.Spec, name)
	return sent, why, nil
}

// variantOf is the object on the nearest owner of a pod that one of ours is on; nil is
// none. Of several on one target, the oldest counts.
func (c *Controller) variantOf(ctx context.Context, pod *corev1.Pod) (oldest *v1alpha1.VariantAutoscaling, err error) {
	if !c.watches(pod.Namespace) {
		return nil, nil //nolint:nilnil // a pod of no variant is no error
	}
	handled := func(v *v1alpha1.VariantAutoscaling) bool { return c.Handles(v) }
	found, err := variantsAbove(ctx, pod, handled, c.cached, c.live)
	for _, v := range found {
		if oldest == nil || v1alpha1.Older(v, oldest) {
			oldest = v
		}
	}
	return oldest, err
}

// Handles reports whether the object is one of those that this controller handles.
func (c *Controller) Handles(object client.Object) bool {
	return object.GetLabels()[v1alpha1.LabelControllerInstance] == c.config.ControllerInstance && c.watches(object.GetNamespace())
}

func (c *Controller) watches(namespace string) bool {
	return c.config.WatchNamespace == "" || c.config.WatchNamespace == namespace
}

// Around is what there is beside an object on its target, and the service classes in
// force. What may be scaled is left to the caller.
func (c *Controller) Around(ctx context.Context, v *v1alpha1.VariantAutoscaling) (review.Surroundings, error) {
	around := review.Surroundings{Classes: &c.follower.Settings.Current().ServiceClasses}
	target, err := review.TargetOf(v)
	if err != nil {
		return around, nil //nolint:nilerr // what names no target has nothing beside it; the review says so
	}
	key := targetKey(target.Kind, target.Name)
	if around.Variants, err = c.othersOn(ctx, v, key); err != nil {
		return around, err
	}
	around.Autoscalers, err = autoscalersOn(ctx, c.cached, c.access, v.Namespace, key)
	for i := range around.Autoscalers {
		around.Autoscalers[i].Target = target
	}
	return around, err
}

// othersOn are the other objects on a target. The cache may have one that is gone, or going: each
// is asked for again, so that nobody is refused for an object that was just deleted.
func (c *Controller) othersOn(ctx context.Context, v *v1alpha1.VariantAutoscaling, key string) ([]*v1alpha1.VariantAutoscaling, error) {
	cached, err := variantsOn(ctx, c.cached, v.Namespace, key)
	var there []*v1alpha1.VariantAutoscaling
	for _, seen := range cached {
		if seen.Name == v.Name {
			continue
		}
		other := &v1alpha1.VariantAutoscaling{}
		err := c.live.Get(ctx, client.ObjectKeyFromObject(seen), other)
		switch {
		case apierrors.IsNotFound(err), other.DeletionTimestamp != nil:
		case err != nil:
			return nil, fmt.Errorf("reading VariantAutoscaling %s/%s: %w", seen.Namespace, seen.Name, err)
		default:
			there = append(there, other)
		}
	}
	return there, err
}
