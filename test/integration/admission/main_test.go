package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/rightstest"
)

const (
	manifests = "../../../manifests"
	programs  = "../../../bin"
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"
	scheduler = "variant-scheduler"
	secret    = "workload-variant-autoscaler-webhook-cert"
	service   = "workload-variant-autoscaler-webhook"

	// patience is how long a test waits for what must come, on a busy machine.
	patience = 60 * time.Second
)

var (
	cluster *localcluster.Cluster
	api     client.Client
	// webhooks is where the manager serves them.
	webhooks string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	directory, err := os.MkdirTemp("", "webhook")
	if err == nil {
		defer func() { _ = os.RemoveAll(directory) }()
		err = start(ctx, directory)
	}
	if cluster != nil {
		defer cluster.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if forbidden := refusals(); len(forbidden) > 0 {
		fmt.Fprintln(os.Stderr, "the shipped rights do not suffice:\n"+strings.Join(forbidden, "\n"))
		return 1
	}
	if code == 0 {
		if err := rights().Check(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// rights proves that every right that comes with the webhooks is needed by a request of
// these tests.
func rights() rightstest.Proof {
	return rightstest.Proof{
		Cluster: cluster, Namespace: home, Account: account,
		Files:  []string{manifests + "/webhook/serving.yaml", manifests + "/webhook/variants.yaml", manifests + "/webhook/pods.yaml"},
		Beside: []string{manifests + "/rbac/home.yaml", manifests + "/rbac/observe.yaml", manifests + "/rbac/scale.yaml"},
	}
}

// refusals are what the manager, with the shipped rights, was refused for want of them.
func refusals() []string {
	text, err := os.ReadFile(filepath.Join(cluster.Logs(), "manager.log"))
	if err != nil {
		return []string{err.Error()}
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return !strings.Contains(line, "system:serviceaccount:") || !strings.Contains(line, " cannot ")
	})
}

// start brings up the cluster and the manager, which mounts its certificate in a directory.
func start(ctx context.Context, directory string) error {
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Components: localcluster.Components{
			ControllerManager: true, Kwok: true,
			VariantScheduler: &localcluster.VariantScheduler{
				Config: filepath.Join(manifests, "scheduler", "config.yaml"), Namespace: home, ServiceAccount: scheduler,
			},
		},
		Nodes: []*corev1.Node{
			localcluster.EightH100.Node("h100", "a"), localcluster.EightA100.Node("a100", "a"), localcluster.CPUOnly.Node("cpu", "a"),
		},
		Audit: true, AuditGroup: rights().Group(),
		Manifests: []string{manifests + "/crd", manifests + "/rbac", manifests + "/scheduler/rbac.yaml", "testdata/scaledobject.yaml", "testdata/classes.yaml"},
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if api, err = client.New(cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return startManager(ctx, directory)
}

// startManager runs a manager with the shipped rights, which keeps its certificate.
func startManager(ctx context.Context, directory string) error {
	var err error
	if webhooks, err = cluster.FreeAddress(); err != nil {
		return err
	}
	if err := cluster.ApplyWebhooks(ctx, webhooks, manifests+"/webhook"); err != nil {
		return err
	}
	if err := cluster.MountSecret(context.Background(), home, secret, directory); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(webhooks)
	if err != nil {
		return err
	}
	process, err := managerProcess(ctx, "manager", account,
		"--webhook-host="+host, "--webhook-port="+port, "--webhook-cert-path="+directory, "--webhook-validate-variants", "--webhook-place-pods")
	if err != nil {
		return err
	}
	return cluster.StartProcess(ctx, process)
}

// managerProcess is bin/manager with the token of a service account. It is ready when it
// says so.
func managerProcess(ctx context.Context, name, account string, more ...string) (localcluster.Process, error) {
	health, err := cluster.FreeAddress()
	if err != nil {
		return localcluster.Process{}, err
	}
	kubeconfig, err := cluster.KubeconfigFor(ctx, home, account)
	if err != nil {
		return localcluster.Process{}, err
	}
	return localcluster.Process{
		Name: name,
		Path: filepath.Join(programs, "manager"),
		// As with an API server that does not send what there is when something is watched.
		Env:   []string{"KUBE_FEATURE_WatchListClient=false"},
		Args:  append([]string{"--kubeconfig=" + kubeconfig, "--wva-metrics-source=pods", "-v=2", "--health-probe-bind-address=" + health}, more...),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}, nil
}
