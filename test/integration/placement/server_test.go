package placement_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	// serves is how many requests per second one unit (a device, or two halved ones)
	// serves, and holds how many it has in service then.
	serves, holds = 2.0, 40.0
	// halved is the label of pods whose devices serve half as much.
	halved = "halved"
	// promptTokens and outputTokens are those of each request.
	promptTokens, outputTokens = 1000, 200
	scrapeEvery                = 500 * time.Millisecond
)

// modelServers expose what the Ready pods of a namespace would under its demand,
// shared by what they can serve: replicas in a steady state, with a queue when they
// get more than they serve.
type modelServers struct {
	prometheus *prometheustest.Prometheus
	api        client.Client

	lock   sync.Mutex
	demand map[string]float64
	// last is the time of the last scrape: on a busy machine some come late.
	last time.Time
	// completed are the requests of each pod so far, arrived those of each namespace.
	completed map[client.ObjectKey]float64
	arrived   map[string]float64
}

// serveModels scrapes until the test ends.
func serveModels(t *testing.T, api client.Client) *modelServers {
	t.Helper()
	m := &modelServers{
		prometheus: prometheustest.New(t), api: api, demand: map[string]float64{},
		completed: map[client.ObjectKey]float64{}, arrived: map[string]float64{},
	}
	conditiontest.Every(t, scrapeEvery, func(ctx context.Context, at time.Time) { m.scrape(ctx, t, at) })
	return m
}

// ask sets the requests per second of a namespace's model.
func (m *modelServers) ask(namespace string, rate float64) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.demand[namespace] = rate
}

func (m *modelServers) scrape(ctx context.Context, t *testing.T, at time.Time) {
	m.lock.Lock()
	defer m.lock.Unlock()
	seconds := scrapeEvery.Seconds()
	if !m.last.IsZero() {
		seconds = at.Sub(m.last).Seconds()
	}
	m.last = at
	for namespace, rate := range m.demand {
		m.count(namespace, rate, seconds, at)
		var pods corev1.PodList
		if err := m.api.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			if ctx.Err() == nil {
				t.Errorf("listing the pods of %s: %v", namespace, err)
			}
			return
		}
		var ready []*corev1.Pod
		all := 0.0
		for i := range pods.Items {
			if pod := &pods.Items[i]; isReady(pod) && pod.Labels["app"] != filler {
				ready = append(ready, pod)
				all += units(pod.Labels, &pod.Spec)
			}
		}
		for _, pod := range ready {
			m.expose(pod, rate/all, seconds, at)
		}
	}
}

// count is one scrape of the namespace's gateway, so many seconds after the last. It keeps no
// queue of its own.
func (m *modelServers) count(namespace string, rate, seconds float64, at time.Time) {
	m.arrived[namespace] += rate * seconds
	labels := fmt.Sprintf(`model_name="llama",target_model_name="llama",namespace=%q`, namespace)
	m.prometheus.Append(at, map[string]float64{
		`inference_extension_scheduler_attempts_total{status="success",` + labels + "}": m.arrived[namespace],
		"inference_extension_flow_control_queue_size{" + labels + "}":                   0,
	})
}

// expose is one scrape of a pod each of whose units gets the rate.
func (m *modelServers) expose(pod *corev1.Pod, rate, seconds float64, at time.Time) {
	size, use, waiting := units(pod.Labels, &pod.Spec), min(1, rate/serves), 0.0
	if rate > serves {
		waiting = 10
	}
	key := client.ObjectKeyFromObject(pod)
	m.completed[key] += size * min(rate, serves) * seconds
	done := m.completed[key]
	labels := fmt.Sprintf(`engine="0",model_name="llama",namespace=%q,pod=%q,instance=%q`, pod.Namespace, pod.Name, pod.Status.PodIP)
	m.prometheus.Append(at, map[string]float64{
		"vllm:kv_cache_usage_perc{" + labels + "}":                          use,
		"vllm:num_requests_running{" + labels + "}":                         size * holds * use,
		"vllm:num_requests_waiting{" + labels + "}":                         waiting,
		`vllm:request_success_total{finished_reason="stop",` + labels + "}": done,
		"vllm:request_prompt_tokens_sum{" + labels + "}":                    promptTokens * done,
		"vllm:request_prompt_tokens_count{" + labels + "}":                  done,
		"vllm:request_generation_tokens_sum{" + labels + "}":                outputTokens * done,
		"vllm:request_generation_tokens_count{" + labels + "}":              done,
	})
}

// units is how much a pod serves.
func units(labels map[string]string, spec *corev1.PodSpec) float64 {
	devices := spec.Containers[0].Resources.Limits[localcluster.GPUResource]
	if _, ok := labels[halved]; ok {
		return float64(devices.Value()) / 2
	}
	return float64(devices.Value())
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
