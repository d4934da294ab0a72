package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/pkg/live"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

const (
	// every is how often the page asks for what is new, and how often listings are
	// compared.
	every = 2 * time.Second
	// refresh is how often what changes seldom is read again.
	refresh = time.Minute
	// points is how many points the charts have at most when the dashboard starts.
	points = 120
	// leastStep is the least time between two points: few servers are scraped more often.
	leastStep = 15 * time.Second
	// patience bounds a look at Prometheus.
	patience = 20 * time.Second
)

// follower keeps the state of the page up to date.
type follower struct {
	api     client.Client
	reader  *reader
	manager *installation.Manager
	// prometheus is nil while none is known.
	prometheus asker
	questions  questions
	namespace  string
	// window is how far back the page goes at least.
	window time.Duration
	where  string
	notes  []string

	// mu guards what the page shows.
	mu      sync.Mutex
	history *history
	around  *surroundings
	loads   *loads
	asking  bool
	failed  string
	asked   time.Time
}

// stepOf is the time between two points of a chart of that length.
func stepOf(window time.Duration) time.Duration {
	return max(leastStep, (window / points).Round(5*time.Second))
}

// begin takes the first listing in.
func (f *follower) begin(ctx context.Context, now time.Time) error {
	step := stepOf(f.window)
	start := now.Add(-f.window).Truncate(step)
	f.history = newHistory(start)
	listed, err := f.reader.list(ctx, now)
	if err != nil {
		return err
	}
	f.around = readSurroundings(ctx, f.api, f.manager, listed.variants)
	f.history.look(listed, newOwners(listed.variants, f.around.selected))
	earlier, err := readEvents(ctx, f.api, f.namespace)
	if err != nil {
		f.notes = append(f.notes, "decisions of before are not known: "+err.Error())
	}
	f.history.add(earlier)
	if f.prometheus != nil {
		f.loads, f.asking = newLoads(start, step), true
		go f.ask(ctx, now)
	}
	return nil
}

// run follows the cluster until the context ends.
func (f *follower) run(ctx context.Context) {
	looks, refreshes := time.NewTicker(every), time.NewTicker(refresh)
	defer looks.Stop()
	defer refreshes.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-looks.C:
			if err := f.look(ctx, now); err != nil {
				klog.ErrorS(err, "Looking at the cluster")
			}
		case <-refreshes.C:
			f.mu.Lock()
			variants := f.history.last.variants
			f.mu.Unlock()
			around := readSurroundings(ctx, f.api, f.manager, variants)
			f.mu.Lock()
			f.around = around
			f.mu.Unlock()
		}
	}
}

// look takes the next listing in, and forgets what is too old.
func (f *follower) look(ctx context.Context, now time.Time) error {
	listed, err := f.reader.list(ctx, now)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.look(listed, newOwners(listed.variants, f.around.selected))
	// A beginning that moves with every look would move all pictures.
	if now.Sub(f.history.start) > f.window*5/4+stepOf(f.window) {
		start := now.Add(-f.window).Truncate(stepOf(f.window))
		f.history.forget(start)
		if f.loads != nil {
			f.loads = f.loads.from(start)
			f.loads.start = start
		}
	}
	return nil
}

// feed is the state of the page now. Prometheus is asked only while somebody looks.
func (f *follower) feed(ctx context.Context) report.Feed {
	now := time.Now()
	f.mu.Lock()
	if f.prometheus != nil && !f.asking && now.Sub(f.asked) >= f.loads.step/2 && (f.loads.pointsAt(now) > f.loads.complete || f.failed != "") {
		f.asking = true
		go f.ask(ctx, now)
	}
	v := &view{where: f.where, all: f.namespace == "", every: every, history: f.history, around: f.around, loads: f.loads, notes: slices.Concat(f.notes, f.history.last.unreadable)}
	if f.failed != "" {
		v.notes = append(v.notes, f.failed)
	}
	d := v.dashboard()
	f.mu.Unlock()
	return report.DashboardFeed(d)
}

// source is what the server of the page asks.
func (f *follower) source(ctx context.Context) live.Source {
	return func() report.Feed { return f.feed(ctx) }
}

// ask reads what Prometheus knows since the last time.
func (f *follower) ask(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f.mu.Lock()
	before, q := f.loads, f.questions
	q.promises = (&view{history: f.history, around: f.around}).promises()
	f.mu.Unlock()
	next, err := before.read(ctx, f.prometheus, q, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asking, f.asked = false, now
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		f.failed = fmt.Sprintf("load and latencies are not known: %v", err)
	case f.loads == before:
		f.loads, f.failed = next, ""
	}
}
