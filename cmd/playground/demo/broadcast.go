package demo

import (
	"context"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/demo/live"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// broadcast is the page of the run, which is served while the run goes on. Nothing is
// computed for it while nobody looks.
type broadcast struct {
	server *live.Server

	mu   sync.Mutex
	feed live.Source
}

// serve begins with what is known before anything has started.
func (b *broadcast) serve(ctx context.Context, p plan) error {
	b.showState(p.unobserved(), "The cluster is starting.", false)
	var err error
	b.server, err = live.Listen(ctx, 0, report.FeedInterval, b.now)
	return err
}

func (b *broadcast) url() string { return b.server.URL() }

func (b *broadcast) close() error {
	if b.server == nil {
		return nil
	}
	return b.server.Close()
}

func (b *broadcast) now() report.Feed {
	b.mu.Lock()
	feed := b.feed
	b.mu.Unlock()
	return feed()
}

// show says where the states come from.
func (b *broadcast) show(feed live.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feed = feed
}

// showState shows one state until the next.
func (b *broadcast) showState(o report.Observation, state string, ended bool) {
	feed := report.DemoFeed(o, state, ended)
	b.show(func() report.Feed { return feed })
}

// feed is the state of the run now.
func (r *traffic) feed() report.Feed {
	at := time.Since(r.start)
	o := r.observed(at)
	r.mu.Lock()
	for i, m := range o.Models {
		// Not nil: requests that were sent have no outcome yet.
		o.Models[i].Arrivals = append([]time.Duration{}, r.sent[m.ID]...)
	}
	r.mu.Unlock()
	return report.DemoFeed(o, r.stack.plan.moment(at).Headline(), false)
}
