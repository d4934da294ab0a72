package operator

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
)

const (
	// soon is when a server that starts is looked at again, again when one that runs and
	// did not answer is, and later when one that answered is: what nobody tells of, such
	// as the health of its providers or a Secret, counts by then.
	soon, again, later = 10 * time.Second, time.Minute, 5 * time.Minute
	// workers is how many objects are worked on at a time.
	workers = 4
)

// Server asks a running server of itself.
type Server interface {
	// Look asks the server at a URL. Each answer has an error of its own.
	Look(ctx context.Context, url string) Answer
}

// Answer is what a server says.
type Answer struct {
	Providers    []v1alpha2.ProviderInfo
	ProvidersErr error
	Version      string
	VersionErr   error
}

// Options are what the operator needs from its program.
type Options struct {
	Server Server
	Clock  clock.PassiveClock
	// Version is the program's own.
	Version string
	// Namespace is where the operator runs, and its ConfigMap is.
	Namespace string
	// WatchNamespace is the only one whose objects are handled; empty for all.
	WatchNamespace string
}

// operator is the reconciler.
type operator struct {
	Options
	// cached has what is followed, and api everything else; api writes too.
	cached   client.Reader
	api      client.Client
	recorder events.EventRecorder
}

// Add adds the operator to a manager whose scheme knows v1alpha2. It follows objects with
// a cache of its own, which holds nothing that no server consists of.
func Add(mgr manager.Manager, o Options) error {
	followed, err := cache.New(mgr.GetConfig(), cacheOptions(mgr, o.WatchNamespace, o.Namespace))
	if err != nil {
		return fmt.Errorf("making the cache of Llama Stack servers: %w", err)
	}
	if err := mgr.Add(followed); err != nil {
		return fmt.Errorf("adding the cache of Llama Stack servers: %w", err)
	}
	api, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making the client of Llama Stack servers: %w", err)
	}
	r := &operator{Options: o, cached: followed, api: api, recorder: mgr.GetEventRecorder("llama-stack-operator")}
	if err := mgr.Add(manager.RunnableFunc(r.createSettings)); err != nil {
		return fmt.Errorf("adding the settings of Llama Stack servers: %w", err)
	}
	c, err := controller.New("llamastackdistribution", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: workers,
		// Whoever adds a Secret that was missing does not wait longer than that.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, again),
	})
	if err != nil {
		return fmt.Errorf("making the controller of Llama Stack servers: %w", err)
	}
	return r.watch(c, followed, mgr)
}

// cacheOptions keep what is not a server's out of the cache, and what is in another namespace
// than the only one, but for the settings, which are at home.
func cacheOptions(mgr manager.Manager, only, home string) cache.Options {
	mine := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{child.LabelManagedBy: child.ManagedBy})}
	configMaps := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{child.LabelWatch: "true"})}
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{},
	}
	for _, kind := range owned() {
		if _, ok := kind.(*corev1.ConfigMap); !ok {
			options.ByObject[kind] = mine
		}
	}
	if only != "" {
		options.DefaultNamespaces = map[string]cache.Config{only: {}}
		configMaps.Namespaces = map[string]cache.Config{only: {}, home: {}}
	}
	options.ByObject[&corev1.ConfigMap{}] = configMaps
	return options
}

// owned are the kinds of children that are followed. Secrets are not: they would all have
// to be readable at any time.
func owned() []client.Object {
	return []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &corev1.PersistentVolumeClaim{},
		&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &networkingv1.Ingress{},
	}
}

// watch has an object worked on when it or a child changes, or a ConfigMap that it names.
func (o *operator) watch(c controller.Controller, followed cache.Cache, mgr manager.Manager) error {
	sources := []source.Source{
		source.Kind[client.Object](followed, &v1alpha2.LlamaStackDistribution{}, &handler.EnqueueRequestForObject{}, predicate.Funcs{UpdateFunc: saysMore}),
		source.Kind[client.Object](followed, &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(o.users)),
	}
	for _, kind := range owned() {
		owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha2.LlamaStackDistribution{}, handler.OnlyControllerOwner())
		sources = append(sources, source.Kind(followed, kind, owner))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("following Llama Stack servers: %w", err)
		}
	}
	return nil
}

// saysMore leaves out updates of nothing but what a server said of itself. It may say
// something else every time, and would be asked again at once.
func saysMore(e event.UpdateEvent) bool {
	return !apiequality.Semantic.DeepEqual(withoutAnswer(e.ObjectOld), withoutAnswer(e.ObjectNew))
}

func withoutAnswer(object client.Object) client.Object {
	d, ok := object.DeepCopyObject().(*v1alpha2.LlamaStackDistribution)
	if !ok {
		return object
	}
	d.ResourceVersion, d.ManagedFields = "", nil
	d.Status.Version = nil
	if d.Status.DistributionConfig != nil {
		d.Status.DistributionConfig.Providers = nil
	}
	apimeta.RemoveStatusCondition(&d.Status.Conditions, conditionHealth)
	return d
}

// users are the objects that a ConfigMap of a user concerns; those of the operator's own
// settings are all.
func (o *operator) users(ctx context.Context, configMap client.Object) []reconcile.Request {
	if configMap.GetLabels()[child.LabelManagedBy] == child.ManagedBy {
		return nil
	}
	var all v1alpha2.LlamaStackDistributionList
	if err := o.cached.List(ctx, &all); err != nil {
		return nil // the cache ends
	}
	key := client.ObjectKeyFromObject(configMap)
	var requests []reconcile.Request
	for _, object := range all.Items {
		if key == o.settingsKey() || names(&object, key) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&object)})
		}
	}
	return requests
}

// names says whether an object reads a ConfigMap.
func names(object *v1alpha2.LlamaStackDistribution, key types.NamespacedName) bool {
	if key == overrideKey(object) || key == (types.NamespacedName{Namespace: object.Namespace, Name: trustedBundle}) {
		return true
	}
	bundle, _, ok := bundleKey(object)
	return ok && key == bundle
}
