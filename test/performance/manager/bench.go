package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	// window is the manager's metrics window.
	window = time.Minute
	// patience is how long something may take before the bench gives up.
	patience = 10 * time.Minute
	// steady is how many rounds are measured while nothing changes.
	steady = 4
	// deletions is how many Deployments are deleted, one after the other.
	deletions = 5
	pace      = 100 * time.Millisecond
)

// bench is one measurement.
type bench struct {
	options
	say      func(format string, values ...any)
	began    time.Time
	cluster  *localcluster.Cluster
	api      client.Client
	typed    kubernetes.Interface
	exporter *exporter
	gate     *gate
	manager  localcluster.Process
	// metrics is where the manager serves its metrics.
	metrics string
}

// measure is the whole bench. With an error the results are those of the parts before it.
func measure(ctx context.Context, o options, say func(format string, values ...any)) (*results, error) {
	b := &bench{options: o, say: say, began: time.Now(), exporter: newExporter(o)}
	r := &results{
		Started: b.began, Processors: runtime.NumCPU(), Variants: o.variants, Nodes: o.nodes, Pods: o.variants * o.replicas,
		Interval: o.interval.String(), ScrapeInterval: o.scrape.String(),
	}
	b.say("starting a cluster")
	var err error
	if b.cluster, err = startCluster(ctx, o); err != nil {
		return nil, err
	}
	defer b.cluster.Stop()
	b.say("writing %d nodes, %d variants and %d pods", o.nodes, o.variants, r.Pods)
	if err := b.fill(ctx); err != nil {
		return nil, fmt.Errorf("fill the cluster: %w", err)
	}
	r.FillSeconds = time.Since(b.began).Seconds()
	b.say("waiting until Prometheus has a window of all series")
	if err := b.export(ctx); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, *results) error{b.first, b.constant, b.change, b.restart, b.deleteTargets} {
		err = part(ctx, r)
		r.Minutes = time.Since(b.began).Minutes()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// listen serves at a new address until the process ends.
func (b *bench) listen(handler http.Handler) (string, error) {
	address, err := b.cluster.FreeAddress()
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(listener, handler) }() // #nosec G114: only our own programs ask
	return address, nil
}

// export lets Prometheus scrape all pods, and waits until it has seen them for a window.
func (b *bench) export(ctx context.Context) error {
	address, err := b.listen(b.exporter)
	if err != nil {
		return err
	}
	for i := range b.exporter.pages() {
		path := map[string]string{"__metrics_path__": fmt.Sprintf("/page/%d", i)}
		if err := b.cluster.AddScrapeTarget(fmt.Sprintf("page-%03d", i), address, path); err != nil {
			return err
		}
	}
	asking, err := api.NewClient(api.Config{Address: b.cluster.PrometheusURL()})
	if err != nil {
		return err
	}
	queries := prometheusv1.NewAPI(asking)
	return b.until(ctx, time.Second, "series of all pods", func() (bool, error) {
		value, _, err := queries.Query(ctx, fmt.Sprintf("count(vllm:num_requests_running and vllm:num_requests_running offset %s)", window), time.Now())
		if err != nil {
			return false, err
		}
		vector, ok := value.(model.Vector)
		return ok && len(vector) == 1 && int(vector[0].Value) == b.variants*b.replicas, nil
	})
}

// until waits for a state.
func (b *bench) until(ctx context.Context, every time.Duration, what string, look func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := look()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s did not come: %w", what, ctx.Err()), err)
		case died := <-b.cluster.Failed():
			return died
		case <-ticker.C:
		}
	}
}

// start runs the manager and returns the seconds until its first full round ended.
func (b *bench) start(ctx context.Context) (float64, error) {
	before := time.Now()
	if err := b.cluster.StartProcess(ctx, b.manager); err != nil {
		return 0, err
	}
	err := b.until(ctx, pace, "the first round", func() (bool, error) { return b.lastRound(ctx).After(before), nil })
	return time.Since(before).Seconds(), err
}

// lastRound is when the manager's last round ended; the zero time while there was none.
func (b *bench) lastRound(ctx context.Context) time.Time {
	metrics, err := b.cluster.Metrics(ctx, b.metrics)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(1000 * localcluster.Total(metrics, "wva_last_round_timestamp_seconds")))
}

// first starts the manager on a cluster that it has never seen.
func (b *bench) first(ctx context.Context, r *results) error {
	if err := b.prepareManager(ctx); err != nil {
		return err
	}
	b.say("starting the manager")
	var err error
	if r.FirstRound, err = b.start(ctx); err != nil {
		return err
	}
	return b.weigh(ctx, &r.Begin)
}

func (b *bench) prepareManager(ctx context.Context) error {
	kubeconfig, err := b.cluster.KubeconfigFor(ctx, home, account)
	if err != nil {
		return err
	}
	if b.gate, err = newGate(b.cluster.PrometheusURL()); err != nil {
		return err
	}
	prometheus, err := b.listen(b.gate)
	if err != nil {
		return err
	}
	metrics, err := b.cluster.FreeAddress()
	if err != nil {
		return err
	}
	health, err := b.cluster.FreeAddress()
	if err != nil {
		return err
	}
	programs, err := localcluster.Programs()
	if err != nil {
		return err
	}
	b.metrics = "http://" + metrics + "/metrics"
	b.manager = localcluster.Process{
		Name: "manager", Path: filepath.Join(programs, "manager"),
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + metrics, "--metrics-secure=false", "--health-probe-bind-address=" + health,
			"--prometheus-base-url=http://" + prometheus, "--prometheus-allow-http", "--prometheus-metrics-window=" + window.String(),
			"--global-opt-interval=" + b.interval.String(), "--wva-limited-mode",
		},
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}
	return nil
}

// constant measures rounds in which nothing changes. The first rounds still do.
func (b *bench) constant(ctx context.Context, r *results) error {
	b.say("rounds of a constant load")
	from, err := b.quiet(ctx)
	if err != nil {
		return err
	}
	before, err := b.requests(ctx)
	if err != nil {
		return err
	}
	err = b.until(ctx, time.Second, "more rounds", func() (bool, error) {
		rounds, err := b.rounds(from)
		return len(rounds) > steady, err
	})
	if err != nil {
		return err
	}
	after, err := b.requests(ctx)
	if err != nil {
		return err
	}
	rounds, err := b.rounds(from)
	r.Constant = rounds[:len(rounds)-1] // the last one may still be under way
	r.ConstantRequests = (after - before) / float64(len(rounds))
	return errors.Join(err, b.weigh(ctx, &r.End))
}

// quiet waits for a round that writes nothing, and returns when it was over.
func (b *bench) quiet(ctx context.Context) (time.Time, error) {
	err := b.until(ctx, time.Second, "a round that writes nothing", func() (bool, error) {
		rounds, err := b.rounds(b.began)
		n := len(rounds)
		return n > 2 && rounds[n-2].Scales+rounds[n-2].Statuses == 0, err
	})
	return time.Now(), err
}

// rounds are those that began after a time.
func (b *bench) rounds(from time.Time) ([]round, error) {
	requests, err := b.cluster.Requests()
	if err != nil {
		return nil, err
	}
	all := roundsOf(b.gate.seen(), requests)
	for len(all) > 0 && all[0].From.Before(from) {
		all = all[1:]
	}
	return all, nil
}

// requests are all that the manager has sent to the API server.
func (b *bench) requests(ctx context.Context) (float64, error) {
	metrics, err := b.cluster.Metrics(ctx, b.metrics)
	return localcluster.Total(metrics, "rest_client_requests_total"), err
}

// change lets the load of all models rise, and measures the round that answers most of
// it.
func (b *bench) change(ctx context.Context, r *results) error {
	b.say("all loads rise")
	before, err := b.requests(ctx)
	if err != nil {
		return err
	}
	changed := time.Now()
	b.exporter.become(heavy)
	err = b.until(ctx, time.Second, "the answers", func() (bool, error) {
		rounds, err := b.rounds(changed)
		sum := 0
		for _, one := range rounds {
			sum += one.Scales
		}
		// One of the two variants of a model is enough; and all of it is shown.
		last := len(rounds) - 1
		return sum >= b.variants/2 && rounds[last].Scales+rounds[last].Statuses == 0, err
	})
	if err != nil {
		return err
	}
	after, err := b.requests(ctx)
	if err != nil {
		return err
	}
	rounds, err := b.rounds(changed)
	next := time.Now()
	for i, one := range rounds {
		if one.Scales <= r.Changed.Scales {
			continue
		}
		if r.Changed, next = one, time.Now(); i+1 < len(rounds) {
			next = rounds[i+1].From
		}
	}
	requests, auditErr := b.cluster.Requests()
	r.Shown, r.ShownStatuses = shown(requests, r.Changed, next)
	r.ChangedRequests = after - before
	return errors.Join(err, auditErr, b.weigh(ctx, &r.End))
}

// restart ends the manager and starts it again.
func (b *bench) restart(ctx context.Context, r *results) error {
	b.say("restarting the manager")
	if err := b.cluster.Terminate(b.manager.Name); err != nil {
		return err
	}
	var err error
	r.Restart, err = b.start(ctx)
	return err
}

// deleteTargets deletes Deployments and waits until the status says so.
func (b *bench) deleteTargets(ctx context.Context, r *results) error {
	if _, err := b.quiet(ctx); err != nil {
		return err
	}
	b.say("deleting %d Deployments", deletions)
	for i := range min(deletions, b.variants) {
		v := variant(i * (b.variants / min(deletions, b.variants)))
		before := time.Now()
		if err := b.typed.AppsV1().Deployments(b.namespace(v)).Delete(ctx, v.name(), metav1.DeleteOptions{}); err != nil {
			return err
		}
		err := b.until(ctx, pace/5, "the status of a deleted Deployment", func() (bool, error) {
			var object v1alpha1.VariantAutoscaling
			err := b.api.Get(ctx, client.ObjectKey{Namespace: b.namespace(v), Name: v.name()}, &object)
			c := apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
			return c != nil && c.Reason == v1alpha1.ReasonDeploymentNotFound, err
		})
		if err != nil {
			return err
		}
		r.Deleted = append(r.Deleted, time.Since(before).Seconds())
	}
	return nil
}

// weigh notes what the programs take.
func (b *bench) weigh(ctx context.Context, into *weight) error {
	manager, err := b.cluster.Metrics(ctx, b.metrics)
	if err != nil {
		return err
	}
	placing, err := b.cluster.Metrics(ctx, b.cluster.VariantSchedulerURL()+"/metrics")
	if err != nil {
		return err
	}
	const memory, goroutines = "process_resident_memory_bytes", "go_goroutines"
	*into = weight{
		Manager: localcluster.Total(manager, memory), Scheduler: localcluster.Total(placing, memory), Goroutines: localcluster.Total(manager, goroutines),
	}
	return nil
}
