package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Read returns the samples at an instant: the replicas by pod, and what gateways
// count by model. Of a model only its name, Arrival and Queue are set; its
// namespace is empty when the gateway's series carry none.
//
// Rates and means are taken over the window, which must hold at least two scrapes.
// Where it holds none, the last value of a gauge is looked for as far back as the
// lookback; such a sample is as old as its time says.
//
// A query that fails leaves its samples absent; the error then names the query and
// the server, and the rest of the reading is good.
func (c *Client) Read(ctx context.Context, at time.Time, window, lookback time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	answers, err := c.ask(ctx, at, queries(window, lookback))
	return pods(answers), models(answers), err
}

// ask runs all queries side by side.
func (c *Client) ask(ctx context.Context, at time.Time, queries []query) (map[string]model.Vector, error) {
	vectors := make([]model.Vector, len(queries))
	failures := make([]error, len(queries))
	var group errgroup.Group
	for i, q := range queries {
		group.Go(func() error {
			vectors[i], failures[i] = c.instant(ctx, q, at)
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

func (c *Client) instant(ctx context.Context, q query, at time.Time) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	value, _, err := c.api.Query(ctx, q.promQL, at)
	if err != nil {
		return nil, fmt.Errorf("prometheus %s: query for the %s: %w", c.address, q.about, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("prometheus %s: query for the %s: the answer is a %s and not a vector", c.address, q.about, value.Type())
	}
	return vector, nil
}

func pods(answers map[string]model.Vector) map[types.NamespacedName]decision.Replica {
	times := instants(answers[scraped], podOf)
	replicas := make(map[types.NamespacedName]decision.Replica, len(times))
	for about, field := range map[string]func(*decision.Replica) *decision.Sample{
		kvUse:        func(r *decision.Replica) *decision.Sample { return &r.KVUse },
		waiting:      func(r *decision.Replica) *decision.Sample { return &r.Waiting },
		running:      func(r *decision.Replica) *decision.Sample { return &r.Running },
		served:       func(r *decision.Replica) *decision.Sample { return &r.Served },
		growth:       func(r *decision.Replica) *decision.Sample { return &r.InFlightGrowth },
		inService:    func(r *decision.Replica) *decision.Sample { return &r.InService },
		inputTokens:  func(r *decision.Replica) *decision.Sample { return &r.Input },
		outputTokens: func(r *decision.Replica) *decision.Sample { return &r.Output },
	} {
		for _, s := range answers[about] {
			pod, ok := podOf(s.Metric)
			if !ok {
				continue
			}
			sample, ok := observed(s, times[pod])
			if !ok {
				continue
			}
			replica := replicas[pod]
			replica.Name = pod.Name
			*field(&replica) = sample
			replicas[pod] = replica
		}
	}
	return replicas
}

func models(answers map[string]model.Vector) map[decision.ModelKey]decision.Model {
	times := instants(answers[gatewayScraped], modelOf)
	queues := totals(answers[gatewayQueue])
	growths := totals(answers[gatewayGrowth])
	dispatched := totals(answers[gatewayDispatch])
	read := make(map[decision.ModelKey]decision.Model, len(times))
	for key, at := range times {
		m := decision.Model{Namespace: key.Namespace, ID: key.ID}
		queue, queued := queues[key]
		if queued {
			m.Queue = decision.Sample{Value: queue, Time: at, Present: true}
		}
		// What arrives is what leaves plus what the queue grows by. A gateway without
		// a queue has nothing that could grow; one whose growth is not known yet has an
		// unknown arrival rate.
		leaving, known := dispatched[key]
		grows, measured := growths[key]
		if known && (measured || !queued) {
			m.Arrival = decision.Sample{Value: max(0, leaving+grows), Time: at, Present: true}
		}
		read[key] = m
	}
	return read
}

// podOf prefers the label that the scrape itself adds.
func podOf(labels model.Metric) (types.NamespacedName, bool) {
	name := labels["pod"]
	if name == "" {
		name = labels["pod_name"]
	}
	return types.NamespacedName{Namespace: string(labels["namespace"]), Name: string(name)}, name != ""
}

// modelOf prefers the name after the gateway's own rewriting.
func modelOf(labels model.Metric) (decision.ModelKey, bool) {
	id := labels["target_model_name"]
	if id == "" {
		id = labels["model_name"]
	}
	return decision.ModelKey{Namespace: string(labels["namespace"]), ID: string(id)}, id != ""
}

func observed(s *model.Sample, at time.Time) (decision.Sample, bool) {
	if !finite(s) || at.IsZero() {
		return decision.Sample{}, false
	}
	return decision.Sample{Value: float64(s.Value), Time: at, Present: true}, true
}

func finite(s *model.Sample) bool {
	v := float64(s.Value)
	return s.Histogram == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// instants reads values that are Unix times in seconds; the newest one counts.
func instants[K comparable](vector model.Vector, keyOf func(model.Metric) (K, bool)) map[K]time.Time {
	times := make(map[K]time.Time, len(vector))
	for _, s := range vector {
		key, ok := keyOf(s.Metric)
		if !ok || !finite(s) {
			continue
		}
		if at := time.UnixMilli(int64(math.Round(float64(s.Value) * 1000))).UTC(); at.After(times[key]) {
			times[key] = at
		}
	}
	return times
}

// totals adds up the series of a model. A model with one value that is no number
// has no total.
func totals(vector model.Vector) map[decision.ModelKey]float64 {
	sums := make(map[decision.ModelKey]float64, len(vector))
	broken := map[decision.ModelKey]bool{}
	for _, s := range vector {
		key, ok := modelOf(s.Metric)
		if !ok {
			continue
		}
		if !finite(s) {
			broken[key] = true
		}
		sums[key] += float64(s.Value)
	}
	for key := range broken {
		delete(sums, key)
	}
	return sums
}
