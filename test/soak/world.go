package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"
	scheduler = "variant-scheduler"

	// witness is the instance of the manager that nobody kills, and the name of its
	// process.
	witness = "witness"
	// settings is the main ConfigMap, from which the managers have their interval.
	settings = "workload-variant-autoscaler-variantautoscaling-config"

	scrapeInterval = 2 * time.Second
	// blind is the age from which samples count as absent.
	blind = 20 * time.Second
)

// pair are the two managers of which one leads.
var pair = []string{"manager-1", "manager-2"}

// world is everything that runs.
type world struct {
	options
	progress io.Writer
	cluster  *localcluster.Cluster
	api      client.Client
	typed    kubernetes.Interface
	log      *os.File
	// began is when the wrecking began.
	began time.Time
	// metrics is where a manager serves its metrics, and owners are the managers by the
	// name of their token.
	metrics map[string]string
	owners  map[string]string

	running context.Context
	cut     context.CancelFunc
	wait    sync.WaitGroup
	loads   []*load
	router  *emulation.Router
	// queued are the queues that were not served in time.
	queued []string
	// mutex guards what follows.
	mutex    sync.Mutex
	deeds    []deed
	deaths   []death
	samples  []sample
	ready    []readiness
	problems []error
	// held are the programs that somebody keeps down, or starts again.
	held map[string]int
	// processes are the managers, as they are started.
	processes map[string]localcluster.Process
}

// say tells the user what happens.
func (w *world) say(format string, values ...any) {
	at := time.Duration(0)
	if !w.began.IsZero() {
		at = time.Since(w.began)
	}
	_, _ = fmt.Fprintf(w.progress, "%6s  %s\n", at.Round(time.Second), fmt.Sprintf(format, values...))
}

// start brings up the cluster, the managers and the models.
func start(ctx context.Context, o options, progress io.Writer) (*world, error) {
	w := &world{options: o, progress: progress, metrics: map[string]string{}, owners: map[string]string{}, held: map[string]int{}, processes: map[string]localcluster.Process{}}
	w.running, w.cut = context.WithCancel(context.WithoutCancel(ctx))
	w.say("starting a cluster")
	err := w.startCluster(ctx)
	if err == nil {
		err = w.quiet()
	}
	if err == nil {
		err = w.connect(ctx)
	}
	if err == nil {
		err = w.startModels(ctx)
	}
	for _, name := range append([]string{witness}, pair...) {
		if err == nil {
			err = w.startManager(ctx, name)
		}
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *world) startCluster(ctx context.Context) error {
	programs, err := localcluster.Programs()
	if err != nil {
		return err
	}
	manifests := filepath.Join(filepath.Dir(programs), "manifests")
	nodes := []*corev1.Node{localcluster.CPUOnly.Node("cpu", "a")}
	for i := range 3 {
		nodes = append(nodes, localcluster.EightH100.Node(fmt.Sprint("h100-", i), "a"), localcluster.FourL40S.Node(fmt.Sprint("l40s-", i), "a"))
	}
	w.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Programs: programs, Logs: w.logs, Audit: true, Nodes: nodes,
		Manifests: []string{manifests + "/crd", manifests + "/rbac", manifests + "/scheduler/rbac.yaml"},
		Components: localcluster.Components{
			ControllerManager: true, Kwok: true,
			Prometheus: &localcluster.Prometheus{ScrapeInterval: scrapeInterval},
			VariantScheduler: &localcluster.VariantScheduler{
				Config: manifests + "/scheduler/config.yaml", Namespace: home, ServiceAccount: scheduler,
			},
		},
	})
	return err
}

// quiet sends what this process itself logs to a file beside those of its children.
func (w *world) quiet() (err error) {
	w.log, err = os.OpenFile(filepath.Join(w.cluster.Logs(), "soak.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of the soak: %w", err)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w.log)))
	klog.SetLogger(logger)
	log.SetLogger(logger)
	return nil
}

func (w *world) connect(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	if w.api, err = client.New(w.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if w.typed, err = kubernetes.NewForConfig(w.cluster.Config()); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return w.api.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: settings}, Data: map[string]string{"GLOBAL_OPT_INTERVAL": "3s"},
	})
}

// startManager runs bin/manager with a token of its own. What takes minutes takes seconds.
func (w *world) startManager(ctx context.Context, name string) error {
	kubeconfig, err := w.cluster.KubeconfigFor(ctx, home, account)
	if err != nil {
		return err
	}
	// The next manager's would stand in its place.
	own := filepath.Join(filepath.Dir(kubeconfig), name+".kubeconfig")
	if err := os.Rename(kubeconfig, own); err != nil {
		return fmt.Errorf("keep the kubeconfig of %s: %w", name, err)
	}
	credential, err := localcluster.Credential(own)
	if err != nil {
		return err
	}
	w.owners[credential] = name
	metrics, err := w.cluster.FreeAddress()
	if err != nil {
		return err
	}
	health, err := w.cluster.FreeAddress()
	if err != nil {
		return err
	}
	w.metrics[name] = "http://" + metrics + "/metrics"
	args := []string{
		"--kubeconfig=" + own, "--metrics-bind-address=" + metrics, "--metrics-secure=false", "--health-probe-bind-address=" + health,
		"--prometheus-base-url=" + w.cluster.PrometheusURL(), "--prometheus-allow-http", "--prometheus-metrics-window=10s",
		"--prometheus-metrics-cache-fresh-threshold=8s", "--prometheus-metrics-cache-stale-threshold=10s",
		"--prometheus-metrics-cache-unavailable-threshold=" + blind.String(),
		"--wva-limited-mode", "--wva-backlog-drain-time=20s", "--wva-switch-horizon=1m", "--wva-conflict-period=1m",
	}
	if name == witness {
		args = append(args, "--controller-instance="+witness)
	} else {
		args = append(args, "--leader-elect", "--leader-election-lease-duration=8s", "--leader-election-renew-deadline=6s", "--leader-election-retry-period=1s")
	}
	w.processes[name] = localcluster.Process{
		Name: name, Path: filepath.Join(w.programs(), "manager"), Args: args, Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}
	return w.cluster.StartProcess(ctx, w.processes[name])
}

func (w *world) programs() string {
	programs, _ := localcluster.Programs() // it was found for the cluster
	return programs
}

// stop ends everything.
func (w *world) stop() {
	w.cut()
	w.wait.Wait()
	if w.cluster != nil {
		w.cluster.Stop()
	}
	if w.log != nil {
		_ = w.log.Close()
	}
}

// fail notes what kept the soak itself from going on.
func (w *world) fail(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.problems = append(w.problems, err)
}

// startModels creates the models, runs their servers, and lets clients ask them.
func (w *world) startModels(ctx context.Context) error {
	if err := w.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	var routed []emulation.RoutedModel
	for _, m := range models {
		routed = append(routed, emulation.RoutedModel{Namespace: namespace, Name: m.id})
	}
	var err error
	if w.router, err = emulation.NewRouter(routed...); err != nil {
		return err
	}
	fleet, err := emulation.NewFleet(emulation.FleetOptions{Client: w.typed, Namespace: namespace, Describe: describe, Directory: w.router})
	if err != nil {
		return err
	}
	w.wait.Go(func() {
		if err := fleet.Run(w.running); err != nil {
			w.fail(err)
		}
	})
	address, err := w.serve(w.router)
	if err != nil {
		return err
	}
	if err := w.cluster.AddScrapeTarget("router", address, nil); err != nil {
		return err
	}
	for _, m := range models {
		for i, v := range m.variants {
			d := m.deployment(v, int32(1-min(i, 1))) // #nosec G115: 0 or 1
			if err := errors.Join(w.api.Create(ctx, d), w.api.Create(ctx, m.autoscaling(v))); err != nil {
				return fmt.Errorf("create the variant %s: %w", v.name, err)
			}
		}
		w.loads = append(w.loads, w.ask(m, "http://"+address))
	}
	return nil
}
