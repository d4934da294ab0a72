package placement_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	manifests = "../../../manifests"
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"
	scheduler = "variant-scheduler"

	// limited and growing are the instances of the manager: for a cluster that does
	// not grow, and for one that might.
	limited = "limited"
	growing = "growing"
	// interval is the time between two full rounds of both.
	interval = 2 * time.Second
	window   = 5 * time.Second
	// patience is how long a test waits for what must come soon.
	patience = 45 * time.Second
)

// world is what the tests share.
type world struct {
	cluster *localcluster.Cluster
	api     client.WithWatch
	servers *modelServers
	// metrics is where each manager serves its metrics.
	metrics map[string]string
}

// machine is a kind of node that one test has for itself.
func machine(product string, gpus int) localcluster.Shape {
	return localcluster.Shape{
		InstanceType: "test", CPU: "192", Memory: "2Ti", GPUs: gpus, Product: product, Family: "test", GPUMemory: 81920,
	}
}

// machines are nodes of one kind; their names are that of the kind and a number.
type machines struct {
	name  string
	shape localcluster.Shape
	count int
}

// fleet are the nodes of all tests.
var fleet = []machines{
	{"h100", localcluster.EightH100, 8},
	{"h200", machine("NVIDIA-H200", 8), 8},
	{"b200", machine("NVIDIA-B200", 8), 1},
	{"l4", machine("NVIDIA-L4", 8), 1},
	{"a100", localcluster.EightA100, 2},
	{"l40s", machine("NVIDIA-L40S", 8), 2},
	{"a10", machine("NVIDIA-A10", 4), 1},
	{"t4", machine("Tesla-T4", 8), 1},
	{"a30", machine("NVIDIA-A30", 8), 2},
	{"a6000", machine("NVIDIA-A6000", 8), 8},
}

// start brings up the cluster with both managers, for as long as the test runs.
func start(t *testing.T) *world {
	t.Helper()
	var nodes []*corev1.Node
	for _, kind := range fleet {
		for i := range kind.count {
			nodes = append(nodes, kind.shape.Node(fmt.Sprintf("%s-%d", kind.name, i), "a"))
		}
	}
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{
		Components: localcluster.Components{
			ControllerManager: true,
			Kwok:              true,
			VariantScheduler: &localcluster.VariantScheduler{
				Config: filepath.Join(manifests, "scheduler", "config.yaml"), Namespace: home, ServiceAccount: scheduler,
			},
		},
		Nodes:     append(nodes, localcluster.CPUOnly.Node("cpu", "a")),
		Manifests: []string{manifests + "/crd", manifests + "/rbac", manifests + "/scheduler/rbac.yaml"},
	})
	require.NoError(t, err)
	t.Cleanup(cluster.Stop)
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	api, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	w := &world{cluster: cluster, api: api, metrics: map[string]string{}}
	w.servers = serveModels(t, api)
	prometheus := httptest.NewServer(w.servers.prometheus.Handler)
	t.Cleanup(prometheus.Close)
	w.startManager(t, limited, prometheus.URL, "--wva-limited-mode")
	// Where clusters grow, replicas wait for a node for minutes; here they do not.
	w.startManager(t, growing, prometheus.URL, "--wva-startup-deadline=45s")
	return w
}

// startManager runs bin/manager with the token of its service account.
func (w *world) startManager(t *testing.T, instance, prometheus string, args ...string) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	kubeconfig, err := w.cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	metrics, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	health, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	w.metrics[instance] = "http://" + metrics + "/metrics"
	require.NoError(t, w.cluster.StartProcess(t.Context(), localcluster.Process{
		Name: "manager-" + instance,
		Path: filepath.Join(programs, "manager"),
		Args: append(args,
			"--kubeconfig="+kubeconfig, "--prometheus-base-url="+prometheus, "--prometheus-allow-http",
			"--prometheus-metrics-window="+window.String(), "--global-opt-interval="+interval.String(),
			"--controller-instance="+instance, "-v=2",
			"--metrics-bind-address="+metrics, "--metrics-secure=false", "--health-probe-bind-address="+health,
		),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}))
}
