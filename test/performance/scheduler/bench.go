package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// workload is one of the two kinds of pods.
type workload struct {
	name    string
	devices int64
	// target is where the lower end of the interval of the ratio should be.
	target float64
}

// workloads: pods with devices go by our profile in one arm and by the default one in
// the other; pods without devices go by the default profile in both.
var workloads = []workload{
	{name: "one GPU", devices: 1, target: 1},
	{name: "no devices", target: 0.95},
}

// workloads are those that are to be measured.
func (o options) workloads() []workload {
	return slices.DeleteFunc(slices.Clone(workloads), func(w workload) bool { return !strings.Contains(w.name, o.only) })
}

// bench is a cluster that is measured on.
type bench struct {
	options options
	cluster *localcluster.Cluster
	client  *kubernetes.Clientset
	arms    map[string]*arm
	owners  []types.UID
	say     func(format string, values ...any)
}

// measure does all runs.
func measure(ctx context.Context, o options, say func(format string, values ...any)) (*results, error) {
	b, closeBench, err := newBench(ctx, o, say)
	if err != nil {
		return nil, err
	}
	defer closeBench()
	r := &results{
		Nodes: o.nodes, AcceleratorNodes: o.acceleratorNodes, Pods: o.pods, Pairs: o.pairs,
		Processors: runtime.NumCPU(), Started: time.Now().UTC().Truncate(time.Second),
	}
	// The first runs of an API server are slow ones, whoever has them.
	for _, name := range []string{stockName, oursName} {
		if _, err := b.run(ctx, workloads[0], b.arms[name], 0, max(2, o.pods/10)); err != nil {
			return nil, fmt.Errorf("warm up with the scheduler %s: %w", name, err)
		}
	}
	for pair := 1; pair <= o.pairs; pair++ {
		order := []string{stockName, oursName}
		if pair%2 == 0 {
			order = []string{oursName, stockName}
		}
		for _, w := range o.workloads() {
			for _, name := range order {
				one, err := b.run(ctx, w, b.arms[name], pair, o.pods)
				if err != nil {
					return nil, fmt.Errorf("pair %d, pods with %s, scheduler %s: %w", pair, w.name, name, err)
				}
				r.Runs = append(r.Runs, one)
			}
		}
	}
	r.Minutes = time.Since(r.Started).Minutes()
	for _, w := range o.workloads() {
		r.Summary = append(r.Summary, compare(w, r.Runs))
	}
	return r, nil
}

func newBench(ctx context.Context, o options, say func(format string, values ...any)) (*bench, func(), error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, nil, err
	}
	directory, err := os.MkdirTemp("", "wva-bench-")
	if err != nil {
		return nil, nil, err
	}
	begin := time.Now()
	cluster, client, err := startCluster(ctx, o, root)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(directory))
	}
	b := &bench{options: o, cluster: cluster, client: client, say: say}
	closeBench := func() {
		cluster.Stop()
		_ = os.RemoveAll(directory)
	}
	b.arms, err = newArms(cluster, root, directory)
	if err == nil {
		b.owners, err = ownersOf(ctx, client)
	}
	if err != nil {
		closeBench()
		return nil, nil, err
	}
	b.say("a cluster of %d nodes, %d of them with GPUs, took %.0f s", o.nodes, o.acceleratorNodes, time.Since(begin).Seconds())
	return b, closeBench, nil
}

// moduleRoot is the directory with go.mod upward from the working directory: the
// manifests are in it.
func moduleRoot() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("look for the manifests: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(directory, "go.mod")); err == nil {
			return directory, nil
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", errors.New("no go.mod upward from the working directory, so no manifests: run this inside of the repository")
		}
		directory = parent
	}
}

// run makes the pods while no scheduler runs, lets one of the two bind them, and
// deletes them.
func (b *bench) run(ctx context.Context, w workload, a *arm, pair, pods int) (measured, error) {
	m := measured{Pair: pair, Workload: w.name, Scheduler: a.name, Pods: pods, Load: load()}
	schedulerName := corev1.DefaultSchedulerName
	if w.devices > 0 {
		schedulerName = a.schedulerName
	}
	if err := b.createPods(ctx, w, schedulerName, pods); err != nil {
		return m, err
	}
	wait, err := b.watchBindings(ctx, pods)
	if err != nil {
		return m, err
	}
	s, err := a.start(ctx, b.cluster)
	if err != nil {
		return m, err
	}
	profiled := b.profile(ctx, s, &m)
	seen, err := wait()
	if err == nil {
		m.SchedulerCPUSeconds, err = s.cpuSeconds(ctx)
	}
	if err := errors.Join(err, <-profiled, s.stop()); err != nil {
		return m, err
	}
	m.Seconds = seen.last.Sub(seen.first).Seconds()
	m.PodsPerSecond = float64(m.Pods-1) / m.Seconds
	m.NodesUsed = len(seen.nodes)
	which := fmt.Sprintf("pair %d of %d", pair, b.options.pairs)
	if pair == 0 {
		which = "warm-up"
	}
	b.say("%s, pods with %s, %s: %.0f pods/s (%.1f s, %d nodes, %.1f s of CPU, load %.1f)",
		which, w.name, a.name, m.PodsPerSecond, m.Seconds, m.NodesUsed, m.SchedulerCPUSeconds, m.Load)
	return m, b.deletePods(ctx, pods)
}

// profile takes a CPU profile beside a run, if that is wanted.
func (b *bench) profile(ctx context.Context, s *scheduler, m *measured) <-chan error {
	done := make(chan error, 1)
	if b.options.profiles == "" || m.Pair == 0 {
		done <- nil
		return done
	}
	name := fmt.Sprintf("%02d-%s-%s.pprof", m.Pair, strings.ReplaceAll(m.Workload, " ", "-"), m.Scheduler)
	go func() {
		err := os.MkdirAll(b.options.profiles, 0o755)
		if err == nil {
			err = s.profile(ctx, 5*time.Second, filepath.Join(b.options.profiles, name))
		}
		done <- err
	}()
	return done
}

// load is how many processes of the machine want a processor, over the last minute; 0
// where the system does not say.
func load() float64 {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return value
}
