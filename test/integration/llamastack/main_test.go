package llamastack_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	llmd "llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	manifests = "../../../manifests"
	programs  = "../../../bin"
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"

	// patience is how long a test waits for what must come, on a busy machine.
	patience = 60 * time.Second
)

var (
	cluster *localcluster.Cluster
	api     client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := start(ctx); err != nil {
		if cluster != nil {
			cluster.Stop()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cluster.Stop()
	return m.Run()
}

// start brings up the cluster and the manager.
func start(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(programs, "manager")); errors.Is(err, fs.ErrNotExist) {
		return errors.New("the program manager is missing in bin/: run `make build`")
	}
	var nodes []*corev1.Node
	for i := range 3 {
		nodes = append(nodes, localcluster.CPUOnly.Node(fmt.Sprint("cpu-", i), "a"))
	}
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Components: localcluster.Components{ControllerManager: true, Scheduler: true, Kwok: true},
		Nodes:      nodes,
		Manifests:  []string{manifests + "/crd", manifests + "/rbac"},
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme), llmd.AddToScheme(scheme)); err != nil {
		return err
	}
	if api, err = client.New(cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return startManager(ctx)
}

// startManager runs bin/manager with the token of its service account and the shipped
// manifests of Llama Stack.
func startManager(ctx context.Context) error {
	addresses := make([]string, 2)
	for i := range addresses {
		var err error
		if addresses[i], err = cluster.FreeAddress(); err != nil {
			return err
		}
	}
	webhooks, health := addresses[0], addresses[1]
	if err := cluster.ApplyWebhooks(ctx, webhooks, manifests+"/llamastack"); err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "webhook")
	if err != nil {
		return err
	}
	if err := cluster.MountSecret(context.Background(), home, "workload-variant-autoscaler-webhook-cert", directory); err != nil {
		return err
	}
	kubeconfig, err := cluster.KubeconfigFor(ctx, home, account)
	if err != nil {
		return err
	}
	host, port, err := split(webhooks)
	if err != nil {
		return err
	}
	return cluster.StartProcess(ctx, localcluster.Process{
		Name: "manager",
		Path: filepath.Join(programs, "manager"),
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--wva-metrics-source=pods", "-v=2", "--health-probe-bind-address=" + health,
			"--webhook-host=" + host, "--webhook-port=" + port, "--webhook-cert-path=" + directory,
		},
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	})
}
