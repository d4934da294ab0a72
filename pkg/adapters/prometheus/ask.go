package prometheus

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
)

// queriesAtOnce is how many queries of a reading the server has before it at a time. With all of
// them at once a slow server has answered none when the reading must end, and a fast one has
// answers of a large cluster ready faster than they can be read, which then all need memory.
const queriesAtOnce = 6

// ask runs all queries, a few at a time, in their order.
func (c *Client) ask(ctx context.Context, at time.Time, queries []query) (map[string]model.Vector, error) {
	vectors := make([]model.Vector, len(queries))
	failures := make([]error, len(queries))
	var known labelSets
	var group errgroup.Group
	group.SetLimit(queriesAtOnce)
	for i, q := range queries {
		group.Go(func() error {
			vectors[i], failures[i] = c.instant(ctx, q, at)
			known.share(vectors[i])
			return nil
		})
	}
	_ = group.Wait()
	answers := make(map[string]model.Vector, len(queries))
	for i, q := range queries {
		answers[q.about] = vectors[i]
	}
	return answers, errors.Join(failures...)
}

// labelSets are the labels of the answers so far. The zero labelSets has none. It is safe for
// concurrent use.
type labelSets struct {
	mu   sync.Mutex
	sets map[model.Fingerprint]model.Metric
}

// share gives samples the labels of others that have the same ones, so that those that came with
// the samples need no memory any more. Nobody may change them then.
func (l *labelSets) share(vector model.Vector) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sets == nil {
		l.sets = make(map[model.Fingerprint]model.Metric, len(vector))
	}
	for _, s := range vector {
		mark := s.Metric.FastFingerprint()
		if known, found := l.sets[mark]; !found {
			l.sets[mark] = s.Metric
		} else if maps.Equal(known, s.Metric) {
			s.Metric = known
		}
	}
}
