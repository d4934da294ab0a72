package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/scale"
	llamastackv1alpha1 "llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	llamastackv1alpha2 "llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/controller"
	"llmd.ai/workload-variant-autoscaler/pkg/release"
)

const (
	// queryTimeout bounds one query to Prometheus. Events are answered meanwhile.
	queryTimeout = 10 * time.Second
	// noLimit of requests per second: a rise of all loads scales thousands of targets. How many
	// writes are on their way at once is bounded, and the API server's own fairness protects it.
	noLimit = -1
)

// run is the manager from its start to the end of the context.
func run(ctx context.Context, o *options, flags *pflag.FlagSet) error {
	started, err := load(ctx, o, flags)
	if err != nil {
		return err
	}
	c, sources, cluster := started.config, started.sources, started.cluster
	if err := setVerbosity(c.Verbosity); err != nil {
		return err
	}
	for _, warning := range c.Warnings {
		klog.InfoS("A setting has no effect", "warning", warning)
	}
	access, again, err := probe(ctx, cluster, c)
	if err != nil {
		return err
	}
	mgr, err := newManager(cluster, c, access)
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", advise(err))
	}
	known, err := addController(ctx, mgr, c, sources, access, again)
	if err != nil {
		return err
	}
	llamaStack, err := llamaStackWebhooks(ctx, mgr, c, o.features)
	if err != nil {
		return err
	}
	if err := addWebhooks(mgr, c, append(llamaStack, variantWebhooks(mgr, c, known)...)); err != nil {
		return err
	}
	klog.InfoS("Starting", about(c)...)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// about is what the log tells of the settings first.
func about(c config.Config) []any {
	return []any{"version", release.This().Version, "interval", c.Interval, "limited", c.Limited, "hybrid", c.Hybrid,
		"metricsSource", c.MetricsSource, "prometheus", config.Location(c.Prometheus.BaseURL), "gateways", len(c.Gateway.MetricsURLs),
		"watchNamespace", c.WatchNamespace, "controllerInstance", c.ControllerInstance}
}

// setVerbosity sets how much is logged from now on.
func setVerbosity(verbosity int) error {
	if _, err := logs.GlogSetter(strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("setting LOG_LEVEL to %d: %w", verbosity, err)
	}
	return nil
}

// asking asks anew for what may change while the manager runs.
type asking = func(context.Context) (controller.Access, error)

// probe asks which of the optional things are permitted.
func probe(ctx context.Context, cluster *rest.Config, c config.Config) (controller.Access, asking, error) {
	bounded := withTimeout(cluster, c)
	httpClient, err := rest.HTTPClientFor(bounded)
	if err != nil {
		return controller.Access{}, nil, fmt.Errorf("making a client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(bounded, httpClient)
	if err != nil {
		return controller.Access{}, nil, fmt.Errorf("making a client: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(bounded, httpClient)
	if err != nil {
		return controller.Access{}, nil, fmt.Errorf("making a client: %w", err)
	}
	reviews := authorization.SelfSubjectAccessReviews()
	access, err := controller.ProbeAccess(ctx, reviews, mapper, c.WatchNamespace, c.NamespaceConfig)
	if err != nil {
		return access, nil, fmt.Errorf("looking at what the manager may do: %w", err)
	}
	if !access.Capacity {
		klog.InfoS("The manager may not read what it counts free devices by, so capacity is unknown; grant it and restart the manager", "missing", access.Missing)
	}
	if !access.Victims {
		klog.InfoS("Kubernetes chooses which replicas a scale-down removes, because the manager may not patch pods; manifests/rbac/victims.yaml grants it")
	}
	if c.Webhook.PlacePods && !access.Namespaces {
		klog.InfoS("Free room is counted by the pod templates alone, because the manager may not read namespaces; manifests/webhook/pods.yaml grants it")
	}
	if access.Local != "" {
		klog.InfoS("The manager may not read the ConfigMaps in the namespaces of models, so the settings beside it count", "missing", access.Local)
	}
	return access, func(ctx context.Context) (controller.Access, error) {
		return controller.ProbeCore(ctx, reviews, c.WatchNamespace, c.NamespaceConfig)
	}, nil
}

func newManager(cluster *rest.Config, c config.Config, access controller.Access) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(llamastackv1alpha1.AddToScheme(scheme))
	utilruntime.Must(llamastackv1alpha2.AddToScheme(scheme))
	// Watches last longer than any request may: only the client for writes is
	// bounded.
	writes, err := rest.HTTPClientFor(withTimeout(cluster, c))
	if err != nil {
		return nil, err
	}
	election := c.LeaderElection
	var lock resourcelock.Interface // nil: the manager makes one of the ID
	if election.Enabled && c.Lease() != election.ID {
		if lock, err = leaseOf(cluster, c); err != nil {
			return nil, err
		}
	}
	cached, err := decodeEach(controller.CacheOptions(c.WatchNamespace, c.PodNamespace, access), cluster, c.WatchNamespace)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                              scheme,
		Cache:                               cached,
		Client:                              client.Options{HTTPClient: writes},
		Metrics:                             serveMetrics(c.Serving),
		WebhookServer:                       serveWebhooks(c.Webhook),
		HealthProbeBindAddress:              c.Serving.HealthProbeBindAddress,
		LeaderElection:                      election.Enabled,
		LeaderElectionID:                    c.Lease(),
		LeaderElectionNamespace:             c.PodNamespace,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &election.LeaseDuration,
		RenewDeadline:                       &election.RenewDeadline,
		RetryPeriod:                         &election.RetryPeriod,
	})
}

// serveMetrics is TLS for authorised readers unless that was turned off. HTTP/2 is
// off: it would add nothing here but its known ways to be overloaded.
func serveMetrics(s config.Serving) metricsserver.Options {
	o := metricsserver.Options{
		BindAddress:   s.MetricsBindAddress,
		SecureServing: s.MetricsSecure,
		CertDir:       s.MetricsCertPath,
		CertName:      s.MetricsCertName,
		KeyName:       s.MetricsCertKey,
		TLSOpts:       []func(*tls.Config){func(t *tls.Config) { t.NextProtos = []string{"http/1.1"} }},
	}
	if s.MetricsSecure {
		o.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return o
}

// serveWebhooks is TLS with the certificate of the directory, which is read again when it
// changes.
func serveWebhooks(w config.Webhook) webhook.Server {
	return webhook.NewServer(webhook.Options{
		Host: w.Host, Port: w.Port, CertDir: w.CertPath, CertName: w.CertName, KeyName: w.CertKey,
		TLSOpts: []func(*tls.Config){func(t *tls.Config) { t.NextProtos = []string{"http/1.1"} }},
	})
}

// advise says what to do about a kind that the cluster does not know. Of those that the manager cannot
// do without, only one is not Kubernetes' own.
func advise(err error) error {
	if !apimeta.IsNoMatchError(err) {
		return err
	}
	return fmt.Errorf("%w: this cluster does not know VariantAutoscaling objects; install the kind with the chart (crd.install=true) or with `kubectl apply --server-side -f manifests/crd`", err)
}

// addController plugs the adapters into the controller, and that into the manager.
func addController(ctx context.Context, mgr ctrl.Manager, c config.Config, sources config.Sources, access controller.Access, again asking) (knowledge, error) {
	options, err := see(mgr, c)
	if err != nil {
		return knowledge{}, err
	}
	scaler, err := scale.New(withTimeout(mgr.GetConfig(), c))
	if err != nil {
		return knowledge{}, err
	}
	options.Scaler, options.Access, options.Ask = scaler, access, again
	options.Config, options.Sources, options.Verbosity, options.Registerer = c, sources, setVerbosity, metrics.Registry
	added, err := controller.New(ctx, mgr, options)
	if err != nil {
		return knowledge{}, advise(err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return knowledge{}, fmt.Errorf("adding the liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", added.Ready); err != nil {
		return knowledge{}, fmt.Errorf("adding the readiness check: %w", err)
	}
	return knowledge{added, scaler}, nil
}

func withTimeout(cluster *rest.Config, c config.Config) *rest.Config {
	bounded := rest.CopyConfig(cluster)
	bounded.Timeout = c.RESTClientTimeout
	return bounded
}
