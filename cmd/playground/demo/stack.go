package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// What the manifests name.
const (
	systemNamespace  = "workload-variant-autoscaler-system"
	managerAccount   = "workload-variant-autoscaler-controller-manager"
	schedulerAccount = "variant-scheduler"
)

// The manager's settings that differ from its defaults: a fixed cluster, and short
// times, so that a few minutes show a full rise and fall.
const (
	managerInterval = "15s"
	metricsWindow   = "20s"
	scrapeInterval  = 5 * time.Second
)

// managerSettings are those that decide what the manager wants, as its environment has
// them.
func managerSettings(mode string) []string {
	return []string{
		"EXPERIMENTAL_PROACTIVE_MODEL=" + strconv.FormatBool(mode == modeHybrid),
		"PROMETHEUS_METRICS_WINDOW=" + metricsWindow,
		"GLOBAL_OPT_INTERVAL=" + managerInterval,
		"WVA_LIMITED_MODE=true",
	}
}

// initialReplicas is how many replicas the i-th variant of a model starts with.
func initialReplicas(i int) int {
	if i == 0 {
		return 1
	}
	return 0
}

// stack is everything that runs.
type stack struct {
	plan     plan
	terminal *terminal
	page     *broadcast
	cluster  *localcluster.Cluster
	version  string
	typed    kubernetes.Interface
	objects  client.Client
	observer *observer
	// routerURL is where requests are sent, and stackURL where those of the first model
	// are; empty without a Llama Stack server.
	routerURL, stackURL string
	// stacks answers in the pods of Llama Stack servers.
	stacks *emulation.StackFleet
	// fail ends the run with a reason.
	fail context.CancelCauseFunc
	// emulating lasts as long as the model servers and the router, which stopEmulation
	// ends.
	emulating     context.Context
	stopEmulation context.CancelFunc
	emulation     sync.WaitGroup
	// logs is the directory of the logs; removeLogs is set when they are removed at
	// the end.
	logs       string
	removeLogs func() error
}

// start starts everything in order. What was started is ended by stop, also after
// an error.
func (s *stack) start(ctx context.Context) error {
	if err := s.openLogs(); err != nil {
		return err
	}
	// The cluster tells of its parts by itself.
	if err := s.startCluster(ctx); err != nil {
		return err
	}
	if err := s.startEmulation(ctx); err != nil {
		return err
	}
	if err := s.startManager(ctx); err != nil {
		return err
	}
	if err := s.terminal.step("models, one replica each", func() error { return s.createModels(ctx) }); err != nil || !s.plan.LlamaStack {
		return err
	}
	return s.terminal.step("a Llama Stack server", func() error { return s.startStack(ctx) })
}

// ownLog is the file in the directory of the logs that this process writes to.
const ownLog = "playground.log"

// openLogs sends what this process itself logs to a file, too: the terminal is for
// the demo.
func (s *stack) openLogs() error {
	if s.logs = s.plan.Logs; s.logs == "" {
		var err error
		if s.logs, s.removeLogs, err = localcluster.TemporaryDirectory("demo-logs-"); err != nil {
			return fmt.Errorf("making a directory for the logs: %w", err)
		}
	}
	file, err := os.OpenFile(filepath.Join(s.logs, ownLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of the playground: %w", err)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file)))
	klog.SetLogger(logger)
	log.SetLogger(logger)
	return nil
}

func (s *stack) startCluster(ctx context.Context) error {
	var made []*corev1.Node
	for _, n := range nodes() {
		made = append(made, n.Node)
	}
	var err error
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Programs: filepath.Dir(s.plan.self),
		Logs:     s.logs,
		Components: localcluster.Components{
			ControllerManager: true,
			Scheduler:         true,
			Kwok:              true,
			Prometheus:        &localcluster.Prometheus{ScrapeInterval: scrapeInterval},
			VariantScheduler: &localcluster.VariantScheduler{
				Config:         filepath.Join(s.plan.manifests, "scheduler", "config.yaml"),
				Namespace:      systemNamespace,
				ServiceAccount: schedulerAccount,
			},
		},
		Nodes:     made,
		Manifests: s.plan.installed(),
		Started:   s.terminal.took,
	})
	if err != nil {
		return err
	}
	go s.supervise(ctx)
	return s.connect(ctx)
}

// supervise ends the run when a child dies.
func (s *stack) supervise(ctx context.Context) {
	select {
	case err := <-s.cluster.Failed():
		s.fail(err)
	case <-ctx.Done():
	}
}

func (s *stack) connect(ctx context.Context) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	config := s.cluster.Config()
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if s.objects, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	version, err := s.typed.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking for the version of the cluster: %w", err)
	}
	s.version = version.GitVersion
	placed := map[string]string{v1alpha1.LabelPlacePods: "true"}
	if err := s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: placed}}); err != nil {
		return err
	}
	accelerators := map[string]capacity.Accelerator{}
	for _, n := range nodes() {
		accelerators[n.Name] = n.accelerator
	}
	s.observer, err = observe(ctx, config, namespace, accelerators)
	return err
}

// startEmulation runs what stands in for the devices, and the router in front of
// it, in this process.
func (s *stack) startEmulation(ctx context.Context) error {
	// Not with ctx: after Ctrl-C the order of ending is that of stop.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.emulating, s.stopEmulation = running, stop
	var routed []emulation.RoutedModel
	for _, m := range s.plan.models {
		routed = append(routed, emulation.RoutedModel{Namespace: namespace, Name: m.ID})
	}
	router, err := emulation.NewRouter(routed...)
	if err != nil {
		return err
	}
	fleet, err := emulation.NewFleet(emulation.FleetOptions{
		Client:    s.typed,
		Namespace: namespace,
		Describe:  s.plan.describe,
		Directory: router,
	})
	if err != nil {
		return err
	}
	s.emulation.Go(func() {
		if err := fleet.Run(running); err != nil {
			s.fail(err)
		}
	})
	return s.serveRouter(running, router)
}

func (s *stack) serveRouter(ctx context.Context, router http.Handler) error {
	address, err := s.serve(ctx, "the router", router)
	if err != nil {
		return err
	}
	s.routerURL = "http://" + address
	return s.cluster.AddScrapeTarget("router", address, nil)
}

// serve answers requests at a new address until the context ends.
func (s *stack) serve(ctx context.Context, what string, handler http.Handler) (address string, err error) {
	if address, err = s.cluster.FreeAddress(); err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", fmt.Errorf("starting %s: %w", what, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	s.emulation.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("%s ended: %w", what, err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return address, nil
}

// installed are the manifests that a user would install.
func (p plan) installed() []string {
	return []string{
		filepath.Join(p.manifests, "crd"),
		filepath.Join(p.manifests, "rbac"),
		filepath.Join(p.manifests, "scheduler", "rbac.yaml"),
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return scheme, nil
}

// describe is the model server of a pod.
func (p plan) describe(pod *corev1.Pod) (emulation.ServerOptions, error) {
	for _, m := range p.models {
		for _, v := range m.Variants {
			if v.Name == pod.Labels[variantLabel] {
				return emulation.ServerOptions{Model: m.ID, Profile: v.Profile, TokenBudget: v.TokenBudget, Startup: p.Startup}, nil
			}
		}
	}
	return emulation.ServerOptions{}, fmt.Errorf("the label %s of pod %s names no variant of the demo", variantLabel, pod.Name)
}

// startManager runs the autoscaler with the token of its service account.
func (s *stack) startManager(ctx context.Context) error {
	kubeconfig, err := s.cluster.KubeconfigFor(ctx, systemNamespace, managerAccount)
	if err != nil {
		return err
	}
	metrics, err := s.cluster.FreeAddress()
	if err != nil {
		return err
	}
	health, err := s.cluster.FreeAddress()
	if err != nil {
		return err
	}
	if err := s.create(ctx, promises(s.plan.models)); err != nil {
		return err
	}
	settings := append(s.metricsSource(), managerSettings(s.plan.Mode)...)
	more, err := s.webhookSettings(ctx)
	if err != nil {
		return err
	}
	settings = append(settings, more...)
	if s.plan.LlamaStack {
		servers, err := s.startServers()
		if err != nil {
			return err
		}
		settings = append(settings, "LLAMASTACK_SERVER_ADDRESS="+servers)
	}
	err = s.cluster.StartProcess(ctx, localcluster.Process{
		Name: "manager",
		Path: s.plan.manager,
		Env: append(settings,
			"KUBECONFIG="+kubeconfig,
			"METRICS_BIND_ADDRESS="+metrics,
			"METRICS_SECURE=false",
			"HEALTH_PROBE_BIND_ADDRESS="+health,
		),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	})
	if err != nil {
		return err
	}
	return s.cluster.AddScrapeTarget("workload-variant-autoscaler", metrics, nil)
}

// metricsSource are the manager's settings of where it sees model servers and router.
func (s *stack) metricsSource() []string {
	if s.plan.Metrics == metricsPods {
		return []string{
			"WVA_METRICS_SOURCE=pods",
			"POD_METRICS_SCRAPE_INTERVAL=" + scrapeInterval.String(),
			"GATEWAY_METRICS_URLS=" + s.routerURL + "/metrics",
		}
	}
	return []string{
		"PROMETHEUS_BASE_URL=" + s.cluster.PrometheusURL(),
		"PROMETHEUS_ALLOW_HTTP=true",
	}
}

// createModels creates the variants of every model, the first with one replica, and
// waits until these serve.
func (s *stack) createModels(ctx context.Context) error {
	for _, m := range s.plan.models {
		for i, v := range m.Variants {
			replicas := int32(initialReplicas(i)) // #nosec G115: 0 or 1
			// The webhook knows the pods of a variant by its object.
			if err := s.create(ctx, autoscaling(m, v)); err != nil {
				return err
			}
			if err := s.create(ctx, deployment(m, v, replicas)); err != nil {
				return err
			}
		}
	}
	return s.awaitModels(ctx)
}

func (s *stack) create(ctx context.Context, object client.Object) error {
	if err := s.objects.Create(ctx, object, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("creating %s: %w", object.GetName(), err)
	}
	return nil
}

// servingDeadline is how long the first replicas may take beyond their start-up.
const servingDeadline = time.Minute

// awaitModels waits until each model serves and the autoscaler has seen it do so: traffic that
// comes before the first scrapes is not what a cluster that runs would see.
func (s *stack) awaitModels(ctx context.Context) error {
	limit := time.After(s.plan.Startup + servingDeadline)
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		missing, unseen := "", ""
		for _, m := range s.plan.models {
			first := m.Variants[0].Name
			if _, ready, _ := s.observer.counts(first); ready == 0 {
				missing = first
			} else if !s.seen(ctx, first) {
				unseen = first
			}
		}
		if missing == "" && unseen == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit:
			if missing == "" {
				return fmt.Errorf("the autoscaler has no metrics of %s %s after its start-up time; run again with --logs and look at the logs of the manager and of Prometheus", unseen, servingDeadline)
			}
			return fmt.Errorf("the first replica of %s is not Ready %s after its start-up time; run again with --logs and look at the logs of the schedulers and of kwok", missing, servingDeadline)
		case <-ticker.C:
		}
	}
}

// seen reports whether the autoscaler has the metrics of a variant's replicas.
func (s *stack) seen(ctx context.Context, name string) bool {
	var v v1alpha1.VariantAutoscaling
	err := s.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v)
	return err == nil && meta.IsStatusConditionTrue(v.Status.Conditions, v1alpha1.ConditionMetricsAvailable)
}

// stop ends everything that was started. What watches the cluster goes first: the
// API server waits for its clients.
func (s *stack) stop() error {
	s.fail(nil)
	if s.stopEmulation != nil {
		s.stopEmulation()
		s.emulation.Wait()
	}
	if s.cluster != nil {
		s.cluster.Stop()
	}
	if s.removeLogs == nil {
		return nil
	}
	if err := s.removeLogs(); err != nil {
		return fmt.Errorf("removing the logs: %w", err)
	}
	return nil
}
