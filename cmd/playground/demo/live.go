package demo

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prometheusmodel "github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// liveWindow is the window of the rates that are shown.
const liveWindow = "15s"

// gauges are what Prometheus knows of the pods and of the router now. What it does
// not know is not in the maps.
type gauges struct {
	// By pod.
	kvUse, waiting                           map[string]float64
	ttftSum, ttftCount, tokenSum, tokenCount map[string]float64
	// By model.
	queue map[string]float64
}

// meter asks Prometheus for the gauges.
type meter struct {
	api prometheusv1.API

	mu     sync.Mutex
	latest gauges
}

func newMeter(url string) (*meter, error) {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return nil, fmt.Errorf("making a client of Prometheus: %w", err)
	}
	return &meter{api: prometheusv1.NewAPI(client)}, nil
}

// follow reads the gauges again and again until the context ends.
func (m *meter) follow(ctx context.Context) {
	ticker := time.NewTicker(scrapeInterval)
	defer ticker.Stop()
	for {
		g := m.read(ctx)
		m.mu.Lock()
		m.latest = g
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (m *meter) now() gauges {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

func (m *meter) read(ctx context.Context) gauges {
	pod := func(query string) map[string]float64 { return m.query(ctx, "sum by (pod) ("+query+")", "pod") }
	rate := func(metric string) map[string]float64 {
		return pod(fmt.Sprintf("rate(vllm:%s{namespace=%q}[%s])", metric, namespace, liveWindow))
	}
	return gauges{
		kvUse:      pod(fmt.Sprintf("vllm:kv_cache_usage_perc{namespace=%q}", namespace)),
		waiting:    pod(fmt.Sprintf("vllm:num_requests_waiting{namespace=%q}", namespace)),
		ttftSum:    rate("time_to_first_token_seconds_sum"),
		ttftCount:  rate("time_to_first_token_seconds_count"),
		tokenSum:   rate("inter_token_latency_seconds_sum"),
		tokenCount: rate("inter_token_latency_seconds_count"),
		queue:      m.query(ctx, "sum by (target_model_name) (inference_extension_flow_control_queue_size)", "target_model_name"),
	}
}

// query is an instant query by the values of one label. A failed one knows
// nothing; the next comes soon.
func (m *meter) query(ctx context.Context, query, label string) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, scrapeInterval)
	defer cancel()
	value, _, err := m.api.Query(ctx, query, time.Time{})
	vector, ok := value.(prometheusmodel.Vector)
	if err != nil || !ok {
		return nil
	}
	values := make(map[string]float64, len(vector))
	for _, sample := range vector {
		if v := float64(sample.Value); !math.IsNaN(v) {
			values[string(sample.Metric[prometheusmodel.LabelName(label)])] = v
		}
	}
	return values
}

// ofVariant fills in a variant's gauges from those of its pods: the mean of the KV
// use, the sum of the waiting requests, the mean of the latencies by request.
func (g gauges) ofVariant(v *report.LiveVariant, pods []string) {
	v.KVUse = mean(g.kvUse, pods)
	v.Waiting = sum(g.waiting, pods)
	v.TTFT = ratio(sum(g.ttftSum, pods), sum(g.ttftCount, pods))
	v.ITL = ratio(sum(g.tokenSum, pods), sum(g.tokenCount, pods))
}

func sum(values map[string]float64, pods []string) *float64 {
	var total *float64
	for _, pod := range pods {
		if value, known := values[pod]; known {
			if total == nil {
				total = new(float64)
			}
			*total += value
		}
	}
	return total
}

func mean(values map[string]float64, pods []string) *float64 {
	total, n := sum(values, pods), 0
	for _, pod := range pods {
		if _, known := values[pod]; known {
			n++
		}
	}
	if total != nil {
		*total /= float64(n)
	}
	return total
}

// ratio turns seconds per event into milliseconds; without events it is unknown.
func ratio(seconds, events *float64) *float64 {
	if seconds == nil || events == nil || *events <= 0 {
		return nil
	}
	return new(1000 * *seconds / *events)
}

// arrivalWindow is the window of the arrival rate that is shown.
const arrivalWindow = 5 * time.Second

// moment says how far the run is.
func (p plan) moment(at time.Duration) report.Live {
	l := report.Live{At: at, Of: p.Duration + p.Tail, Phase: "traffic"}
	switch {
	case at > l.Of:
		l.Phase = "finishing the requests in flight"
	case at > p.Duration:
		l.Phase = "tail, without traffic"
	}
	return l
}

// picture is the state of the run at an instant.
func (r *traffic) picture(now time.Time, g gauges) report.Live {
	p := r.stack.plan
	at := now.Sub(r.start)
	l := p.moment(at)
	l.Decisions = r.stack.observer.decisionsSoFar()
	pods := map[string][]string{}
	for pod, variant := range r.stack.observer.variantOf() {
		pods[variant] = append(pods[variant], pod)
	}
	for _, m := range p.models {
		l.Models = append(l.Models, r.liveModel(m, at, g))
		for _, v := range m.Variants {
			one := report.LiveVariant{Name: v.Name, Model: m.ID, Shape: shapeOf(v), CostPerReplicaHour: float64(v.cost())}
			one.Desired, one.Ready, one.Pending = r.stack.observer.counts(v.Name)
			g.ofVariant(&one, pods[v.Name])
			l.Variants = append(l.Variants, one)
		}
	}
	return l
}

func (r *traffic) liveModel(m model, at time.Duration, g gauges) report.LiveModel {
	one := report.LiveModel{Model: m.ID, SLO: report.SLO{TTFT: float64(m.SLO.TTFT), ITL: float64(m.SLO.ITL)}}
	if queue, known := g.queue[m.ID]; known {
		one.Queue = &queue
	}
	one.Arrival, one.Attainment = r.soFar(m, at)
	return one
}

func shapeOf(v variant) string {
	return capacity.Shape{Accelerator: v.Accelerator, Devices: v.Devices, Pods: 1}.String()
}
