package llamastack_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	llmd "llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/rightstest"
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

// rights proves that every right to run Llama Stack servers is needed by a request of
// these tests.
func rights() rightstest.Proof {
	const role = "workload-variant-autoscaler-llamastack"
	return rightstest.Proof{
		Cluster: cluster, Namespace: home, Account: account,
		Files: []string{manifests + "/llamastack/rbac.yaml", manifests + "/rbac/report.yaml"},
		Roles: []string{role, role + "-cluster", role + "-scale", "workload-variant-autoscaler-report"},
		Elsewhere: map[string]string{
			role + ": update llamastackdistributions/finalizers.llamastack.io":                 "clusters that check owners ask for it when a child is made",
			role + ": bind clusterroles.rbac.authorization.k8s.io system:openshift:scc:anyuid": "the API server asks for it when the RoleBinding is made",
		},
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
		Audit:      true,
		AuditGroup: rights().Group(),
		Manifests:  []string{manifests + "/crd", manifests + "/rbac"},
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensions.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme), llmd.AddToScheme(scheme)); err != nil {
		return err
	}
	if api, err = client.New(cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	servers, err := startServers(ctx)
	if err != nil {
		return err
	}
	return startManager(ctx, servers)
}

// startServers lets emulated servers answer in the pods, and returns the address that stands
// in the place of all Services.
func startServers(ctx context.Context) (servers string, err error) {
	clientset, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return "", err
	}
	if servers, err = cluster.FreeAddress(); err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", servers)
	if err != nil {
		return "", err
	}
	fleet := emulation.NewStackFleet(clientset)
	// Both end with the process.
	go fleet.Run(context.WithoutCancel(ctx))
	go func() { _ = (&http.Server{Handler: fleet, ReadHeaderTimeout: patience}).Serve(listener) }()
	return servers, nil
}

// startManager runs bin/manager with the token of its service account and the shipped
// manifests of Llama Stack.
func startManager(ctx context.Context, servers string) error {
	addresses := make([]string, 2)
	for i := range addresses {
		var err error
		if addresses[i], err = cluster.FreeAddress(); err != nil {
			return err
		}
	}
	webhooks, health := addresses[0], addresses[1]
	if err := cluster.ApplyWebhooks(ctx, webhooks, manifests+"/webhook/serving.yaml", manifests+"/llamastack"); err != nil {
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
	return cluster.StartProcess(ctx, managerProcess("manager", kubeconfig, health, servers,
		"--webhook-host="+host, "--webhook-port="+port, "--webhook-cert-path="+directory))
}

// managerProcess is bin/manager, which is ready when it says so.
func managerProcess(name, kubeconfig, health, servers string, more ...string) localcluster.Process {
	return localcluster.Process{
		Name: name,
		Path: filepath.Join(programs, "manager"),
		Args: append([]string{"--kubeconfig=" + kubeconfig, "--wva-metrics-source=pods", "-v=2", "--health-probe-bind-address=" + health}, more...),
		// The second: as with an API server that does not send what there is when something is watched.
		Env:   []string{"LLAMASTACK_SERVER_ADDRESS=" + servers, "KUBE_FEATURE_WatchListClient=false"},
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}
}
