package prometheus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

const (
	bucketEnds = "ends of the buckets of latencies"
	kept       = "requests within the SLO"

	// endsEvery is how long the ends of buckets are good. They are many series, and only
	// another version of a server has others.
	endsEvery = time.Hour
)

// latencyEnds are the ends of the buckets of one latency, as they were told last.
type latencyEnds struct {
	// lock makes readings wait for each other.
	lock sync.Mutex
	ends BucketEnds
	// due is when they are asked for next.
	due time.Time
}

// keeping is the share that kept one latency, and when the servers told.
type keeping struct {
	share Share
	at    time.Time
}

// Met returns for each model with a promise the share, 0 to 1, of the requests of the window
// that surely kept it, and the greatest share that may have. Where both latencies are promised
// no histogram tells which requests missed both: all that missed one may have missed the other
// too, or none. A model is missing without requests in the window, and where no server tells
// of a latency that is promised. The time of a sample is that of the last scrape.
//
// There is one query for each latency that is promised, however many models there are, and
// one more for the ends of its buckets once an hour and when servers have others. There are a few more
// where the last reading found that servers are scraped seldom or known late: theirs are the requests of a
// wider window, or of an earlier one. With an error, what is there is good.
func (c *Client) Met(ctx context.Context, at time.Time, window time.Duration, promises map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Kept, error) {
	all := map[decision.ModelKey]decision.Kept{}
	var failures []error
	for own, some := range c.seen.asked(at, window, promises) {
		met, err := c.met(ctx, own.at, own.window, some)
		maps.Copy(all, met)
		failures = append(failures, err)
	}
	return all, errors.Join(failures...)
}

// met is what Met says of models that are asked for alike.
func (c *Client) met(ctx context.Context, at time.Time, window time.Duration, promises map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Kept, error) {
	latencies := []Latency{ToFirstToken(), PerFurtherToken()}
	answers, failures := make([]map[decision.ModelKey]keeping, len(latencies)), make([]error, len(latencies))
	var group errgroup.Group
	for i, l := range latencies {
		group.Go(func() error {
			answers[i], failures[i] = c.within(ctx, l, &c.ends[i], at, window, promises)
			return nil
		})
	}
	_ = group.Wait()
	met, missing := map[decision.ModelKey]decision.Kept{}, map[decision.ModelKey]bool{}
	for i, l := range latencies {
		for key := range l.targets(promises) {
			one, found := answers[i][key]
			all, second := met[key]
			if !found {
				missing[key] = true
				continue
			}
			if !second {
				all = decision.Exactly(modelserver.Known(1, one.at))
			}
			// At most as many kept both as kept the one that fewer kept, and at least all but
			// those that may have missed either.
			all.Value, all.Sure = min(all.Value, one.share.Most), max(0, all.Sure+one.share.Sure-1)
			if one.at.Before(all.Time) {
				all.Time = one.at
			}
			*l.bucket(&all) = one.share.In
			met[key] = all
		}
	}
	maps.DeleteFunc(met, func(key decision.ModelKey, s decision.Kept) bool { return missing[key] || !s.Present })
	return met, errors.Join(failures...)
}

// within are the shares within the targets of one latency.
func (c *Client) within(ctx context.Context, l Latency, e *latencyEnds, at time.Time, window time.Duration, promises map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]keeping, error) {
	if !l.Promised(promises) {
		return nil, nil
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	var failure error
	if !at.Before(e.due) {
		found, err := c.instant(ctx, asking(bucketEnds, l.ends()...), at)
		if err == nil {
			e.ends, e.due = EndsOf(found), at.Add(endsEvery)
		}
		failure = err // Those of before may still be right.
	}
	parts := l.rates(e.ends, promises, window)
	for about, some := range map[string][]string{isTime: l.newest(), isCount: l.counts(e.ends, promises, window)} {
		for _, part := range some {
			parts = append(parts, by(about, part))
		}
	}
	slices.Sort(parts)
	answer, err := c.instant(ctx, asking(kept, parts...), at)
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	var rates, series model.Matrix
	times := map[counting]time.Time{}
	for _, s := range answer {
		one := &model.SampleStream{Metric: s.Metric, Values: []model.SamplePair{{Timestamp: s.Timestamp, Value: s.Value}}}
		switch of, ok := countingOf(s.Metric); s.Metric[labelIs] {
		case isTime:
			if ok {
				times[of] = time.Unix(0, 0).Add(seconds(number(s))).UTC()
			}
		case isCount:
			series = append(series, one)
		default:
			rates = append(rates, one)
		}
	}
	counts, have := countedOf(rates), countedOf(series)
	if l.outdated(e.ends, counts, have, promises) {
		e.due = at
	}
	all := map[decision.ModelKey]keeping{}
	for key, instants := range l.shares(e.ends, counts, have, promises) {
		for _, one := range instants {
			scraped := time.Time{}
			for _, of := range one.of {
				if times[of].After(scraped) {
					scraped = times[of]
				}
			}
			if !scraped.IsZero() {
				all[key] = keeping{one.Share, scraped}
			}
		}
	}
	return all, failure
}
