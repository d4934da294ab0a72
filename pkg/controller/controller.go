package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// component is the name under which events are recorded.
const component = "workload-variant-autoscaler"

// Options are what the controller is made of.
type Options struct {
	// Metrics may be a Follower, too.
	Metrics Metrics
	// Gateway may be nil: then a model wakes when a round reads that requests wait.
	Gateway Gateway
	// Past may be nil: then forecasts know nothing of earlier days.
	Past   Historian
	Scaler Scaler
	Clock  Clock
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
	follower *follower
	// cached is what the loop reads, and live asks the API server.
	cached, live client.Reader
	access       Access
	// instance and namespace say which objects are handled.
	instance, namespace string
	// scheduler is that of the variants' pods where they are sent.
	scheduler string
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
	f := newFollower(mgr, o, trigger)
	if err := f.watch(mgr); err != nil {
		return nil, err
	}
	p := newPermissions(o.Access, o.Ask, trigger)
	loop, err := newLoop(mgr, o, f, p, trigger)
	if err != nil {
		return nil, err
	}
	runnables := []manager.Runnable{f, p, loop}
	if o.Config.NamespaceConfig {
		if loop.observer.locals, err = localsOf(mgr, o.Config, trigger); err != nil {
			return nil, err
		}
		runnables = append(runnables, loop.observer.locals)
	}
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("adding the controller to the manager: %w", err)
		}
	}
	return &Controller{
		follower: f, cached: mgr.GetCache(), live: mgr.GetAPIReader(), access: o.Access,
		instance: o.Config.ControllerInstance, namespace: o.Config.WatchNamespace, scheduler: o.Config.Webhook.Scheduler,
	}, nil
}

// localsOf follow what namespaces say for themselves.
func localsOf(mgr ctrl.Manager, c config.Config, t *trigger) (*locals, error) {
	api, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for the ConfigMaps of namespaces: %w", err)
	}
	return newLocals(api.RESTClient(), c.PodNamespace, c.WatchNamespace, newTeller(mgr.GetEventRecorder(component), nil), t)
}

func newLoop(mgr ctrl.Manager, o Options, f *follower, p *permissions, trigger *trigger) (*Loop, error) {
	instance := prometheus.Labels{}
	if o.Config.ControllerInstance != "" {
		instance["controller_instance"] = o.Config.ControllerInstance
	}
	written := newOverlay()
	r := &reporter{
		statuses:  newStatuses(mgr.GetClient()),
		recorder:  mgr.GetEventRecorder(component),
		overlay:   written,
		gauges:    newGauges(instance),
		telemetry: newTelemetry(instance),
		quality:   newQuality(instance),
		clock:     o.Clock,
		failures:  map[decision.Key]string{},
		net:       safetyNet{},
	}
	collectors := append(r.quality.collectors(), r.gauges)
	if o.Config.Serving.PublishedMetrics {
		r.published = newPublished(r.gauges, instance)
		collectors = append(collectors, r.published)
	}
	if err := r.telemetry.register(o.Registerer, collectors...); err != nil {
		return nil, err
	}
	return &Loop{
		observer: &observer{
			reader:    mgr.GetCache(),
			targets:   &targetFinder{reader: mgr.GetCache(), scaler: o.Scaler, access: o.Access, overlay: written},
			instance:  o.Config.ControllerInstance,
			namespace: o.Config.WatchNamespace,
			names:     f.names,
			scheduler: o.Config.Webhook.Scheduler,
			startups:  newStartups(),
		},
		actor: &actor{
			scaler:  o.Scaler,
			marker:  &marker{writer: mgr.GetClient(), live: mgr.GetAPIReader()},
			overlay: written,
		},
		reporter:    r,
		metrics:     o.Metrics,
		gateway:     o.Gateway,
		settings:    f.settings,
		permissions: p,
		clock:       o.Clock,
		trigger:     trigger,
		ready:       f.ready,
		arrived:     make(chan readings, 1),
		looked:      make(chan look, 1),
		past:        newPast(o.Past),
		decide:      decision.Decide,
	}, nil
}

func newFollower(mgr ctrl.Manager, o Options, trigger *trigger) *follower {
	return &follower{
		reader:   mgr.GetCache(),
		teller:   newTeller(mgr.GetEventRecorder(component), mgr.Elected()),
		settings: newSettings(o.Config.Dynamic),
		names:    &inventory.Names{},
		trigger:  trigger,
		sources:  o.Sources,
		config:   o.Config,
		ready:    make(chan struct{}),
		entries:  map[string]int{},

		verbosity: o.Verbosity,
	}
}

// watch reconciles the ConfigMaps.
func (f *follower) watch(mgr ctrl.Manager) error {
	home, followed := f.config.PodNamespace, f.followed()
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == home && slices.Contains(followed, o.GetName())
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("settings").
		For(&corev1.ConfigMap{}, builder.WithPredicates(ours)).
		// Several managers in one process, as in tests, are no mistake.
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false), SkipNameValidation: ptr.To(true)}).
		Complete(f)
	if err != nil {
		return fmt.Errorf("watching the ConfigMaps: %w", err)
	}
	return nil
}

// Ready is a readiness check: the caches hold the cluster and its settings are in
// force.
func (c *Controller) Ready(*http.Request) error {
	select {
	case <-c.follower.ready:
		return nil
	default:
		return errors.New("the caches are not filled yet")
	}
}
