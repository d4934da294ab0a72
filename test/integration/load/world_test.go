package load_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	manifests = "../../../manifests"
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"
	scheduler = "variant-scheduler"

	// scrapeInterval is short, but no shorter: what a busy machine is late with a scrape
	// must stay small beside it.
	scrapeInterval = 2 * time.Second

	// brisk is the instance of the manager that most tests share.
	brisk = "brisk"
	// patience is how long a test waits for what must come soon.
	patience = time.Minute
)

// hurry are the settings of a brisk manager: what takes minutes takes seconds.
var hurry = []string{
	"--global-opt-interval=3s", "--prometheus-metrics-window=10s", "--wva-limited-mode",
	"--prometheus-metrics-cache-fresh-threshold=8s",
	"--prometheus-metrics-cache-stale-threshold=10s",
	"--prometheus-metrics-cache-unavailable-threshold=20s",
}

// world is what the tests share.
type world struct {
	cluster *localcluster.Cluster
	api     client.WithWatch
	typed   kubernetes.Interface
	queries prometheusv1.API
	// kubeconfig is that of the managers' service account.
	kubeconfig string

	lock sync.Mutex
	// metrics is where each manager serves its metrics.
	metrics map[string]string
}

// machines are nodes of one kind; their names are that of the kind and a number.
type machines struct {
	name    string
	product string
	// gpus is how many devices each of the nodes has.
	gpus, count int
}

// fleet are the nodes of all tests. Tests that share a kind together need less than there
// is of it.
var fleet = []machines{
	{"h100", localcluster.EightH100.Product, 8, 3},
	{"h200", "NVIDIA-H200", 8, 2},
	{"b200", "NVIDIA-B200", 4, 3},
	{"l4", "NVIDIA-L4", 8, 1},
	{"a100", localcluster.EightA100.Product, 8, 1},
	{"l40s", "NVIDIA-L40S", 8, 1},
	{"a10", "NVIDIA-A10", 8, 1},
	{"t4", "Tesla-T4", 8, 2},
	{"a30", "NVIDIA-A30", 8, 2},
	{"a6000", "NVIDIA-A6000", 8, 1},
	{"a40", "NVIDIA-A40", 8, 1},
	{"v100", "Tesla-V100-SXM2-32GB", 8, 1},
	{"h20", "NVIDIA-H20-3e", 8, 4},
}

func (m machines) nodes() []*corev1.Node {
	shape := localcluster.Shape{
		InstanceType: "test", CPU: "192", Memory: "2Ti", GPUs: m.gpus, Product: m.product, Family: "test", GPUMemory: 81920,
	}
	var nodes []*corev1.Node
	for i := range m.count {
		nodes = append(nodes, shape.Node(fmt.Sprintf("%s-%d", m.name, i), "a"))
	}
	return nodes
}

// start brings up the cluster with the shared managers, for as long as the test runs.
func start(t *testing.T) *world {
	t.Helper()
	nodes := []*corev1.Node{localcluster.CPUOnly.Node("cpu", "a")}
	for _, kind := range fleet {
		nodes = append(nodes, kind.nodes()...)
	}
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{
		Components: localcluster.Components{
			ControllerManager: true,
			Kwok:              true,
			Prometheus:        &localcluster.Prometheus{ScrapeInterval: scrapeInterval},
			ExternalMetrics:   filepath.Join(manifests, "hpa", "prometheus-adapter.yaml"),
			VariantScheduler: &localcluster.VariantScheduler{
				Config: filepath.Join(manifests, "scheduler", "config.yaml"), Namespace: home, ServiceAccount: scheduler,
			},
		},
		Nodes:     nodes,
		Manifests: []string{manifests + "/crd", manifests + "/rbac", manifests + "/scheduler/rbac.yaml"},
	})
	require.NoError(t, err)
	t.Cleanup(cluster.Stop)
	w := &world{cluster: cluster, metrics: map[string]string{}}
	w.connect(t)
	// Once for all of them: each call writes the file anew, and managers read it.
	w.kubeconfig, err = cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	shared := slices.Concat(hurry, prometheusAt(cluster.PrometheusURL()))
	w.startManager(t, brisk, shared...)
	w.publish(t, brisk)
	w.startManager(t, impatient, slices.Concat(shared, []string{"--wva-startup-deadline=" + impatientDeadline.String(), "--wva-switch-horizon=1s"})...)
	return w
}

func (w *world) connect(t *testing.T) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	config := w.cluster.Config()
	// The tests are many users at once.
	config.QPS, config.Burst = 200, 400
	var err error
	w.api, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	w.typed, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	asking, err := api.NewClient(api.Config{Address: w.cluster.PrometheusURL()})
	require.NoError(t, err)
	w.queries = prometheusv1.NewAPI(asking)
}

func prometheusAt(url string) []string {
	return []string{"--prometheus-base-url=" + url, "--prometheus-allow-http"}
}

// startManager runs bin/manager with the token of its service account.
func (w *world) startManager(t *testing.T, instance string, args ...string) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	metrics, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	health, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	w.lock.Lock()
	w.metrics[instance] = "http://" + metrics + "/metrics"
	w.lock.Unlock()
	require.NoError(t, w.cluster.StartProcess(t.Context(), localcluster.Process{
		Name: managerName(instance),
		Path: filepath.Join(programs, "manager"),
		Args: append([]string{
			"--kubeconfig=" + w.kubeconfig, "--controller-instance=" + instance, "-v=2",
			"--metrics-bind-address=" + metrics, "--metrics-secure=false", "--health-probe-bind-address=" + health,
		}, args...),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}))
}

func managerName(instance string) string { return "manager-" + instance }

// logged are the lines of a manager's log that have all the parts.
func (w *world) logged(t *testing.T, instance string, parts ...string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.cluster.Logs(), managerName(instance)+".log"))
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(text)) {
		matches := true
		for _, part := range parts {
			matches = matches && strings.Contains(line, part)
		}
		if matches {
			found = append(found, line)
		}
	}
	return found
}

// scrape is what a manager shows on its metrics page.
func (w *world) scrape(t *testing.T, instance string) map[string]float64 {
	t.Helper()
	w.lock.Lock()
	url := w.metrics[instance]
	w.lock.Unlock()
	return prometheustest.Scrape(t, url)
}

// roundsLater waits until a manager has ended so many more full rounds, well or not.
func (w *world) roundsLater(t *testing.T, instance string, rounds float64) {
	t.Helper()
	count := func() float64 {
		sum := 0.0
		for series, value := range w.scrape(t, instance) {
			if strings.HasPrefix(series, "wva_round_duration_seconds{") && strings.Contains(series, `round="Full"`) {
				sum += value
			}
		}
		return sum
	}
	first := count()
	eventually(t, 2*patience, fmt.Sprint(rounds, " more rounds"), func() (string, bool) {
		now := count()
		return fmt.Sprint(now - first), now >= first+rounds
	})
}

// pace is the time between two looks. They are many side by side, and the machine that
// they keep busy is the one whose times are judged.
const pace = 300 * time.Millisecond

// eventually waits for a state, looking at a pace.
func eventually(t *testing.T, limit time.Duration, what string, look func() (found string, ok bool)) {
	t.Helper()
	var next time.Time
	found, ok := "", false
	conditiontest.Eventually(t, limit, what, func() (string, bool) {
		if now := time.Now(); !now.Before(next) {
			found, ok = look()
			next = now.Add(pace)
		}
		return found, ok
	})
}

// query asks Prometheus for one number; false means that there is none.
func (w *world) query(t *testing.T, promQL string) (float64, bool) {
	t.Helper()
	value, _, err := w.queries.Query(t.Context(), promQL, time.Now())
	require.NoError(t, err)
	vector, ok := value.(model.Vector)
	require.True(t, ok, "%s is %s", promQL, value.Type())
	if len(vector) == 0 {
		return 0, false
	}
	return float64(vector[0].Value), true
}
