package empty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// scrapeInterval is short, so that a decision is seen soon.
const scrapeInterval = 5 * time.Second

// profile is that of every emulated model server, whatever its pod asks for:
// Llama-3.1-8B on one H100, fitted on the published measurements that the demo uses.
var profile = serving.Profile{Base: 6.46, PerResidentToken: 4.71e-5, PerPrefillToken: 0.0220, KVTokens: 447_936, BatchLimit: 128}

// playground is what runs.
type playground struct {
	options
	cluster *localcluster.Cluster
	// router is the address of the router, manager the one where Prometheus looks for
	// the metrics of a manager.
	router, manager string
	// failed takes the first error of a part that runs in this process.
	failed chan error
	parts  sync.WaitGroup
}

// run starts everything, says how to use it, and ends everything with the context.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	p := &playground{options: o, failed: make(chan error, 4)}
	emulating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		stop()
		p.parts.Wait()
		if p.cluster != nil {
			p.cluster.Stop()
			_ = os.Remove(o.Env)
		}
	}()
	if err := p.start(ctx, out); err != nil {
		return err
	}
	if err := p.emulate(emulating); err != nil {
		return err
	}
	if err := p.writeEnvironment(); err != nil {
		return err
	}
	if _, err := io.WriteString(out, p.welcome()); err != nil {
		return fmt.Errorf("say how to use the cluster: %w", err)
	}
	select {
	case err := <-p.cluster.Failed():
		return err
	case err := <-p.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// start starts the cluster.
func (p *playground) start(ctx context.Context, out io.Writer) error {
	var err error
	p.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Programs: p.programs,
		Logs:     p.Logs,
		Components: localcluster.Components{
			ControllerManager: true,
			Scheduler:         true,
			Kwok:              true,
			Prometheus:        &localcluster.Prometheus{ScrapeInterval: scrapeInterval},
		},
		Nodes: nodes(),
		Started: func(name string, took time.Duration) {
			_, _ = fmt.Fprintf(out, "  %-28s %5.1f s\n", name, took.Seconds())
		},
	})
	if err != nil {
		return err
	}
	// What this process logs would hide what it says.
	file, err := os.Create(filepath.Join(p.cluster.Logs(), "playground.log"))
	if err != nil {
		return fmt.Errorf("make the log: %w", err)
	}
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file))))
	if p.manager, err = p.cluster.FreeAddress(); err != nil {
		return err
	}
	return p.cluster.AddScrapeTarget("workload-variant-autoscaler", p.manager, nil)
}

// nodes are two machines of eight H100, two of four L40S, and one without GPUs. No
// scheduler owns them.
func nodes() []*corev1.Node {
	made := []*corev1.Node{
		localcluster.EightH100.Node("h100-0", "zone-a"), localcluster.EightH100.Node("h100-1", "zone-b"),
		localcluster.FourL40S.Node("l40s-0", "zone-a"), localcluster.FourL40S.Node("l40s-1", "zone-b"),
		localcluster.CPUOnly.Node("cpu-0", "zone-a"),
	}
	for _, node := range made {
		var kept []corev1.Taint
		for _, taint := range node.Spec.Taints {
			if taint.Key != localcluster.OwnershipTaint {
				kept = append(kept, taint)
			}
		}
		node.Spec.Taints = kept
	}
	return made
}

// emulate runs the model servers of all pods that ask for one, and the router.
func (p *playground) emulate(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.cluster.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	router, err := emulation.NewRouter(emulation.RoutedModel{Namespace: p.Namespace, Name: p.Model})
	if err != nil {
		return err
	}
	fleet, err := emulation.NewFleet(emulation.FleetOptions{Client: client, Describe: p.describe, Directory: router})
	if err != nil {
		return err
	}
	p.parts.Go(func() { p.tell(fleet.Run(ctx)) })
	return p.route(ctx, router)
}

// describe is the model server of a pod: it serves the model that its arguments name.
func (p *playground) describe(pod *corev1.Pod) (emulation.ServerOptions, error) {
	model, named := emulation.Argument(pod, "served-model-name")
	if !named {
		model, named = emulation.Argument(pod, "model")
	}
	if !named {
		model = p.Model
	}
	return emulation.ServerOptions{Model: model, Profile: profile, TokenBudget: simulation.LargeTokenBudget, Startup: p.Startup}, nil
}

func (p *playground) route(ctx context.Context, router http.Handler) error {
	var err error
	if p.router, err = p.cluster.FreeAddress(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", p.router)
	if err != nil {
		return fmt.Errorf("start the router: %w", err)
	}
	server := &http.Server{Handler: router, ReadHeaderTimeout: 10 * time.Second}
	p.parts.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.tell(fmt.Errorf("the router ended: %w", err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return p.cluster.AddScrapeTarget("router", p.router, nil)
}

// tell keeps the first errors; the rest follow from them.
func (p *playground) tell(err error) {
	if err == nil {
		return
	}
	select {
	case p.failed <- err:
	default:
	}
}

// writeEnvironment writes the settings for kubectl and for a manager that is started by
// hand, as a shell reads them.
func (p *playground) writeEnvironment() error {
	content := fmt.Sprintf(`export KUBECONFIG='%s'
export PROMETHEUS_BASE_URL='%s'
export PROMETHEUS_ALLOW_HTTP=true
export METRICS_BIND_ADDRESS='%s'
export METRICS_SECURE=false
export HEALTH_PROBE_BIND_ADDRESS=0
export REQUESTS='http://%s/v1/completions'
`, p.cluster.Kubeconfig(), p.cluster.PrometheusURL(), p.manager, p.router)
	if err := os.WriteFile(p.Env, []byte(content), 0o600); err != nil {
		return fmt.Errorf("--env: %w; expected a file that can be written", err)
	}
	return nil
}

// welcome says what there is and how to use it. A shell looks for a name without a slash on
// the PATH.
func (p *playground) welcome() string {
	env := p.Env
	if !strings.Contains(env, "/") {
		env = "./" + env
	}
	return fmt.Sprintf(`
The cluster is empty. Ctrl-C stops it.

  nodes        2 with 8 H100, 2 with 4 L40S, 1 without GPUs
  Prometheus   %s
  requests     http://%s/v1/completions, for %s in the namespace %s

In another shell, here:

  . %s
  export PATH="$PWD/bin:$PATH"
  kubectl get nodes

docs/empty-cluster.md goes on from there.
`, p.cluster.PrometheusURL(), p.router, p.Model, p.Namespace, env)
}
