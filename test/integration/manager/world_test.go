package manager_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	// serves is how many requests per second one replica serves, holds how many it has
	// in service then, and queue how many may wait.
	serves, holds, queue = 2.0, 4.0, 10.0
	// scrapeEvery is the time between two scrapes.
	scrapeEvery = 500 * time.Millisecond
)

// switchable is a handler that can be taken out of service: it refuses, or hangs.
type switchable struct {
	handler atomic.Pointer[http.Handler]
	off     atomic.Bool
	// release ends the wait of queries while there is one.
	release atomic.Pointer[chan struct{}]
	// waiting are the queries that hang.
	waiting atomic.Int64
}

// hang lets every query wait until the test ends.
func (s *switchable) hang(t *testing.T) {
	t.Helper()
	release := make(chan struct{})
	s.release.Store(&release)
	t.Cleanup(func() {
		s.release.Store(nil)
		close(release)
	})
}

func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if release := s.release.Load(); release != nil {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		<-*release
	}
	handler := s.handler.Load()
	if handler == nil || s.off.Load() {
		http.Error(w, "out of service", http.StatusServiceUnavailable)
		return
	}
	(*handler).ServeHTTP(w, r)
}

// modelServers expose what the Ready pods of a namespace would under its demand, which
// they share evenly. Every request that arrives is seen to wait, in service or completed
// at the next scrape, however late that is; only what a full queue turns away is not.
type modelServers struct {
	prometheus *prometheustest.Prometheus

	lock   sync.Mutex
	demand map[string]float64
	pods   map[client.ObjectKey]*modelServer
}

// modelServer is one of them: a fluid of requests in front of holds places, each of
// which serves one in holds/serves seconds.
type modelServer struct {
	// since is when it was scraped first, and at when last.
	since, at                   time.Time
	waiting, running, completed float64
}

// pass lets the time go on to a scrape, with so many requests arriving per second.
func (s *modelServer) pass(at time.Time, rate float64) {
	seconds := at.Sub(s.at).Seconds()
	s.at = at
	before := s.waiting
	s.waiting = min(queue, max(0, s.waiting+(rate-serves)*seconds))
	taken := min(serves*seconds, max(0, rate*seconds+before-s.waiting))
	steady := holds * taken / (serves * max(seconds, 1e-9))
	after := steady + (s.running-steady)*math.Exp(-seconds*serves/holds)
	s.completed += taken + s.running - after
	s.running = after
}

// serveModels scrapes until the test ends.
func serveModels(t *testing.T) *modelServers {
	t.Helper()
	m := &modelServers{prometheus: prometheustest.New(t), demand: map[string]float64{}, pods: map[client.ObjectKey]*modelServer{}}
	outage.handler.Store(&m.prometheus.Handler)
	t.Cleanup(func() { outage.handler.Store(nil) })
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
	for namespace, rate := range m.demand {
		var pods corev1.PodList
		if err := api.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			if ctx.Err() == nil {
				t.Errorf("listing the pods of %s: %v", namespace, err)
			}
			return
		}
		var ready []corev1.Pod
		for _, pod := range pods.Items {
			if isReady(&pod) {
				ready = append(ready, pod)
			}
		}
		for _, pod := range ready {
			m.expose(&pod, rate/float64(len(ready)), at)
		}
	}
}

// expose is one scrape of a pod that gets the rate.
func (m *modelServers) expose(pod *corev1.Pod, rate float64, at time.Time) {
	key := client.ObjectKeyFromObject(pod)
	s := m.pods[key]
	if s == nil {
		s = &modelServer{since: at, at: at}
		m.pods[key] = s
	}
	s.pass(at, rate)
	labels := fmt.Sprintf(`engine="0",model_name="llama",namespace=%q,pod=%q,instance=%q`, pod.Namespace, pod.Name, pod.Status.PodIP)
	m.prometheus.Append(at, map[string]float64{
		"vllm:kv_cache_usage_perc{" + labels + "}":                          s.running / holds,
		"vllm:num_requests_running{" + labels + "}":                         s.running,
		"vllm:num_requests_waiting{" + labels + "}":                         s.waiting,
		`vllm:request_success_total{finished_reason="stop",` + labels + "}": s.completed,
		"vllm:request_prompt_tokens_sum{" + labels + "}":                    1000 * s.completed,
		"vllm:request_prompt_tokens_count{" + labels + "}":                  s.completed,
		"vllm:request_generation_tokens_sum{" + labels + "}":                200 * s.completed,
		"vllm:request_generation_tokens_count{" + labels + "}":              s.completed,
	})
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

// settle waits until so many replicas have been scraped for longer than the window,
// so that its means are steady.
func (m *modelServers) settle(t *testing.T, namespace string, replicas int) {
	t.Helper()
	conditiontest.Eventually(t, patience, fmt.Sprint(replicas, " replicas in a steady state"), func() (string, bool) {
		m.lock.Lock()
		defer m.lock.Unlock()
		steady := 0
		for pod, server := range m.pods {
			if pod.Namespace == namespace && time.Since(server.since) > window+2*scrapeEvery {
				steady++
			}
		}
		return fmt.Sprint(steady, " are steady"), steady >= replicas
	})
}
