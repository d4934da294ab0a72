package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	manifests = "../../../manifests"
	programs  = "../../../bin"
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"

	// brisk is the instance of the manager that runs a full round every second; the
	// other one has no instance and waits ten minutes, so that whatever it answers
	// sooner was an event or a fast round.
	brisk = "brisk"
	// window is the metrics window of both.
	window = 5 * time.Second
	// patience is how long a test waits for what must come.
	patience = 40 * time.Second
	// atOnce is how long an answer to an event may take here, on a busy machine: less
	// than the time between two fast rounds, and than a query may hang.
	atOnce = 6 * time.Second
)

// hurry are the settings of a brisk manager.
var hurry = []string{
	"--global-opt-interval=1s", "--prometheus-metrics-cache-fresh-threshold=4s",
	"--prometheus-metrics-cache-stale-threshold=5s", "--prometheus-metrics-cache-unavailable-threshold=6s",
}

var (
	cluster *localcluster.Cluster
	api     client.Client
	// outage is in front of the Prometheus of each test.
	outage     = &switchable{}
	prometheus *httptest.Server
	// metricsOf is where each manager serves its metrics, and credentialOf the name of
	// its token in the audit log.
	metricsOf    = map[string]string{}
	credentialOf = map[string]string{}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 19*time.Minute)
	defer cancel()
	if err := start(ctx); err != nil {
		if cluster != nil {
			cluster.Stop()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cluster.Stop()
	prometheus = httptest.NewServer(outage)
	defer prometheus.Close()
	for _, instance := range []string{"", brisk} {
		if err := startManager(ctx, instance); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	if code == 0 {
		if err := everyRightIsNeeded(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// start brings up the cluster.
func start(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(programs, "manager")); errors.Is(err, fs.ErrNotExist) {
		return errors.New("the program manager is missing in bin/: run `make build`")
	}
	var nodes []*corev1.Node
	for i := range 4 {
		nodes = append(nodes, localcluster.EightH100.Node(fmt.Sprint("h100-", i), "a"))
	}
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Components: localcluster.Components{ControllerManager: true, Scheduler: true, Kwok: true},
		Nodes:      append(nodes, localcluster.CPUOnly.Node("cpu", "a")),
		Audit:      true,
		Admission:  []string{"ExtendedResourceToleration"},
		AuditGroup: rights().Group(),
		Manifests:  []string{manifests + "/crd", manifests + "/rbac", "testdata/kinds.yaml"},
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	api, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	return err
}

// startManager runs bin/manager with the token of its service account.
func startManager(ctx context.Context, instance string) error {
	kubeconfig, err := cluster.KubeconfigFor(ctx, home, account)
	if err != nil {
		return err
	}
	metrics, err := cluster.FreeAddress()
	if err != nil {
		return err
	}
	health, err := cluster.FreeAddress()
	if err != nil {
		return err
	}
	metricsOf[instance] = "http://" + metrics + "/metrics"
	if credentialOf[instance], err = localcluster.Credential(kubeconfig); err != nil {
		return err
	}
	return cluster.StartProcess(ctx, managerProcess(instance, kubeconfig, metrics, health))
}

func managerProcess(instance, kubeconfig, metrics, health string) localcluster.Process {
	settings := []string{"--global-opt-interval=10m"}
	var environment []string
	if instance == brisk {
		settings = slices.Clone(hurry)
	}
	if instance != "" {
		// An older API server does not send what there is when something is watched, so that
		// it is listed first.
		environment = []string{"KUBE_FEATURE_WatchListClient=false"}
	}
	return localcluster.Process{
		Name: "manager" + instance,
		Path: filepath.Join(programs, "manager"),
		Env:  environment,
		Args: append(settings,
			"--kubeconfig="+kubeconfig, "--prometheus-base-url="+prometheus.URL, "--prometheus-allow-http",
			"--prometheus-metrics-window="+window.String(),
			"--controller-instance="+instance, "--wva-limited-mode", "-v=2",
			"--metrics-bind-address="+metrics, "--metrics-secure=false", "--health-probe-bind-address="+health,
		),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}
}
