package prometheus

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	scrapeInterval = 15 * time.Second
	window         = time.Minute
	lookback       = 5 * time.Minute
)

func serve(t *testing.T, handler http.Handler) *Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := New(Options{Address: server.URL, AllowHTTP: true, Timeout: 10 * time.Second})
	require.NoError(t, err)
	return client
}

// scrapes are the times of n scrapes from the start on.
func scrapes(n int) []time.Time {
	times := make([]time.Time, n)
	for i := range times {
		times[i] = start.Add(time.Duration(i) * scrapeInterval)
	}
	return times
}

// engine is one engine of a vLLM server, with the labels that a scrape of the pod
// adds.
func engine(pod, engine string) string {
	return fmt.Sprintf(`engine=%q, model_name="llama", namespace="models", pod=%q, instance="10.0.0.1:8000", job="vllm"`, engine, pod)
}

func read(t *testing.T, client *Client, at time.Time) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model) {
	replicas, models, err := client.Read(t.Context(), at, window, lookback)
	require.NoError(t, err)
	return replicas, models
}

func pod(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "models", Name: name}
}

// load is the metrics of a vLLM server under a steady load: 2 requests per second of
// 1000 prompt and 200 generated tokens, the queue growing by 0.1 per second.
func load(labels string, since time.Duration) map[string]float64 {
	s := since.Seconds()
	return map[string]float64{
		"vllm:kv_cache_usage_perc{" + labels + "}":                                         0.5,
		"vllm:num_requests_running{" + labels + "}":                                        20,
		"vllm:num_requests_waiting{" + labels + "}":                                        0.1 * s,
		"vllm:request_success_total{finished_reason=\"stop\"," + labels + "}":              1.5 * s,
		"vllm:request_success_total{finished_reason=\"length\"," + labels + "}":            0.5 * s,
		"vllm:request_success_total{finished_reason=\"abort\"," + labels + "}":             0,
		"vllm:request_prompt_tokens_sum{" + labels + "}":                                   2000 * s,
		"vllm:request_prompt_tokens_count{" + labels + "}":                                 2 * s,
		"vllm:request_prompt_tokens_bucket{le=\"+Inf\"," + labels + "}":                    2 * s,
		"vllm:request_inference_time_seconds_sum{" + labels + "}":                          16 * s,
		"vllm:request_inference_time_seconds_count{" + labels + "}":                        2 * s,
		"vllm:request_generation_tokens_sum{" + labels + "}":                               400 * s,
		"vllm:request_generation_tokens_count{" + labels + "}":                             2 * s,
		"vllm:time_to_first_token_seconds_sum{" + labels + "}":                             0.6 * s,
		"vllm:time_to_first_token_seconds_count{" + labels + "}":                           2 * s,
		"vllm:inter_token_latency_seconds_sum{" + labels + "}":                             8 * s,
		"vllm:inter_token_latency_seconds_count{" + labels + "}":                           400 * s,
		"vllm:cache_config_info{num_gpu_blocks=\"1000\",block_size=\"16\"," + labels + "}": 1,
	}
}

func TestOneReplicaUnderSteadyLoad(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(9)
	for _, at := range times {
		p.Append(at, load(engine("a", "0"), at.Sub(start)))
	}
	last := times[len(times)-1]
	replicas, models := read(t, serve(t, p.Handler), last.Add(7*time.Second))

	require.Contains(t, replicas, pod("a"))
	r := replicas[pod("a")]
	assert.Equal(t, "a", r.Name)
	for name, want := range map[string]struct {
		sample decision.Sample
		value  float64
	}{
		"KV use":  {r.KVUse, 0.5},
		"running": {r.Running, 20},
		// The scrapes in the window are 75, 90, 105 and 120 seconds after the start.
		"waiting":    {r.Waiting, 0.1 * (75 + 90 + 105 + 120) / 4},
		"served":     {r.Served, 2},
		"growth":     {r.InFlightGrowth, 0.1},
		"in service": {r.InService, 8},
		"input":      {r.Input, 1000},
		"output":     {r.Output, 200},
		"recent":     {r.Recent, 2.1},
		"TTFT":       {r.TTFT, 0.3},
		"ITL":        {r.ITL, 0.02},
		"KV tokens":  {r.KVTokens, 16000},
	} {
		assert.True(t, want.sample.Present, name)
		assert.InDelta(t, want.value, want.sample.Value, 1e-6, name)
		assert.Equal(t, last, want.sample.Time, name)
	}
	assert.Equal(t, scrapeInterval, r.RecentSpan)
	assert.Empty(t, models, "there is no gateway")
}

func TestReplicasInUnusualStates(t *testing.T) {
	const a, b = "a", "b"
	cases := []struct {
		name string
		feed func(p *prometheustest.Prometheus)
		// at is the time of the reading after the start; a minute unless set.
		at     time.Duration
		assert func(t *testing.T, r decision.Replica)
	}{
		{
			name: "the older name of the KV use",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, map[string]float64{
						"vllm:gpu_cache_usage_perc{" + engine(a, "0") + "}": 0.25,
						"vllm:num_requests_running{" + engine(a, "0") + "}": 1,
					})
				}
			},
			assert: func(t *testing.T, r decision.Replica) {
				assert.Equal(t, 0.25, r.KVUse.Value)
				assert.True(t, r.KVUse.Present)
				assert.False(t, r.Waiting.Present, "an absent metric is not zero")
			},
		},
		{
			name: "both names of the KV use on one server",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, map[string]float64{
						"vllm:gpu_cache_usage_perc{" + engine(a, "0") + "}": 0.1,
						"vllm:kv_cache_usage_perc{" + engine(a, "0") + "}":  0.9,
					})
				}
			},
			assert: func(t *testing.T, r decision.Replica) {
				assert.Equal(t, 0.9, r.KVUse.Value)
				assert.True(t, r.KVUse.Present, "without running requests the time comes from the KV use")
			},
		},
		{
			name: "two engines in one pod",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(9) {
					p.Append(at, load(engine(a, "0"), at.Sub(start)))
					second := load(engine(a, "1"), at.Sub(start))
					second["vllm:kv_cache_usage_perc{"+engine(a, "1")+"}"] = 0.7
					p.Append(at, second)
				}
			},
			at: 2 * time.Minute,
			assert: func(t *testing.T, r decision.Replica) {
				assert.InDelta(t, 0.7, r.KVUse.Value, 1e-9, "the fullest engine counts")
				assert.InDelta(t, 40, r.Running.Value, 1e-9)
				assert.InDelta(t, 4, r.Served.Value, 1e-9)
				assert.InDelta(t, 0.2, r.InFlightGrowth.Value, 1e-9)
				assert.InDelta(t, 1000, r.Input.Value, 1e-6, "a mean, not a sum")
				assert.InDelta(t, 32000, r.KVTokens.Value, 1e-9, "each engine has its own cache")
				assert.InDelta(t, 4.2, r.Recent.Value, 1e-9)
			},
		},
		{
			name: "a pod that two jobs scrape",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(9) {
					p.Append(at, load(engine(a, "0"), at.Sub(start)))
					p.Append(at.Add(time.Second), load(`engine="0", model_name="llama", namespace="models", pod="a", instance="10.0.0.1:8000", job="other", service="vllm", endpoint="http"`, at.Sub(start)))
				}
			},
			at: 2*time.Minute + 2*time.Second,
			assert: func(t *testing.T, r decision.Replica) {
				assert.InDelta(t, 20, r.Running.Value, 1e-9, "counted once")
				assert.InDelta(t, 2, r.Served.Value, 1e-2)
				assert.InDelta(t, 16000, r.KVTokens.Value, 1e-9)
				assert.InDelta(t, 2.1, r.Recent.Value, 1e-9)
				assert.Equal(t, scrapeInterval, r.RecentSpan)
			},
		},
		{
			name: "a pod that two jobs scrape, of which one copies the labels of the pod",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(9) {
					for _, e := range []string{"0", "1"} {
						p.Append(at, load(engine(a, e), at.Sub(start)))
						p.Append(at.Add(time.Second), load(engine(a, e)+`, app="vllm", node="n1", pod_template_hash="5d4f"`, at.Sub(start)))
					}
				}
			},
			at: 2*time.Minute + 2*time.Second,
			assert: func(t *testing.T, r decision.Replica) {
				assert.InDelta(t, 40, r.Running.Value, 1e-9, "both engines, counted once")
				assert.InDelta(t, 4, r.Served.Value, 2e-2)
				assert.InDelta(t, 0.2, r.InFlightGrowth.Value, 1e-9)
				assert.InDelta(t, 32000, r.KVTokens.Value, 1e-9)
				assert.InDelta(t, 4.2, r.Recent.Value, 1e-9)
				assert.Equal(t, scrapeInterval, r.RecentSpan)
			},
		},
		{
			name: "two ranks that each have their own requests",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(9) {
					for rank := range 2 {
						labels := fmt.Sprintf(`dp_rank="%d", tp_rank="0", engine_type="unified", %s`, rank, engine(a, "0"))
						p.Append(at, renamed(load(labels, at.Sub(start)), sglangNames))
					}
				}
			},
			at: 2 * time.Minute,
			assert: func(t *testing.T, r decision.Replica) {
				assert.InDelta(t, 40, r.Running.Value, 1e-9)
				assert.InDelta(t, 4, r.Served.Value, 1e-9)
			},
		},
		{
			name: "what is no longer told looks as old as it is",
			feed: func(p *prometheustest.Prometheus) {
				for i, at := range scrapes(9) {
					values := load(engine(a, "0"), at.Sub(start))
					for series := range values {
						switch gone := !strings.HasPrefix(series, "vllm:kv_cache"); {
						case gone && i == 6:
							values[series] = prometheustest.Stale
						case gone && i > 6:
							delete(values, series)
						}
					}
					p.Append(at, values)
				}
			},
			at: 2 * time.Minute,
			assert: func(t *testing.T, r decision.Replica) {
				now, then := start.Add(2*time.Minute), start.Add(5*scrapeInterval)
				assert.Equal(t, now, r.KVUse.Time)
				for name, sample := range map[string]decision.Sample{
					"waiting": r.Waiting, "running": r.Running, "served": r.Served, "growth": r.InFlightGrowth, "input": r.Input,
				} {
					// Two scrapes, at 75 and at 60 seconds: only the former lies within the window.
					if sample.Present {
						assert.Equal(t, then, sample.Time, name)
					}
				}
				assert.True(t, r.Waiting.Present && r.Running.Present)
				assert.False(t, r.Recent.Present)
			},
		},
		{
			name: "the pod's name in the label pod_name",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, load(`namespace="models", pod_name="a"`, at.Sub(start)))
				}
			},
			assert: func(t *testing.T, r decision.Replica) {
				assert.InDelta(t, 2, r.Served.Value, 1e-9)
				assert.True(t, r.KVUse.Present)
			},
		},
		{
			name: "a fresh pod, scraped once",
			feed: func(p *prometheustest.Prometheus) {
				p.Append(start, load(engine(a, "0"), time.Second))
			},
			assert: func(t *testing.T, r decision.Replica) {
				assert.True(t, r.KVUse.Present, "a mean needs one scrape")
				assert.True(t, r.Waiting.Present)
				assert.False(t, r.Served.Present, "a rate needs two")
				assert.False(t, r.InFlightGrowth.Present)
				assert.False(t, r.Input.Present)
				assert.False(t, r.Recent.Present)
				assert.Zero(t, r.RecentSpan)
				assert.InDelta(t, 16000, r.KVTokens.Value, 1e-9)
			},
		},
		{
			name: "no request completed in the window",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, load(engine(a, "0"), 0))
				}
			},
			assert: func(t *testing.T, r decision.Replica) {
				assert.True(t, r.Served.Present)
				assert.Zero(t, r.Served.Value, "that none completed is known")
				assert.False(t, r.Input.Present, "their mean length is not")
				assert.False(t, r.Output.Present)
			},
		},
		{
			name: "a value that is no number",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					values := load(engine(a, "0"), at.Sub(start))
					values["vllm:kv_cache_usage_perc{"+engine(a, "0")+"}"] = math.NaN()
					values["vllm:num_requests_waiting{"+engine(a, "0")+"}"] = math.Inf(1)
					p.Append(at, values)
				}
			},
			assert: func(t *testing.T, r decision.Replica) {
				assert.False(t, r.KVUse.Present)
				assert.False(t, r.Waiting.Present)
				assert.False(t, r.InFlightGrowth.Present)
				assert.True(t, r.Running.Present)
			},
		},
		{
			name: "the newest scrape failed",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, load(engine(a, "0"), at.Sub(start)))
				}
				stale := load(engine(a, "0"), 0)
				for series := range stale {
					stale[series] = prometheustest.Stale
				}
				p.Append(start.Add(5*scrapeInterval), stale)
			},
			at: 76 * time.Second,
			assert: func(t *testing.T, r decision.Replica) {
				assert.True(t, r.KVUse.Present)
				assert.Equal(t, start.Add(4*scrapeInterval), r.KVUse.Time, "the time of the last good scrape")
				assert.InDelta(t, 16000, r.KVTokens.Value, 1e-9)
				assert.False(t, r.Recent.Present, "what the last scrape would have shown is unknown")
			},
		},
		{
			name: "not scraped for longer than the window",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, load(engine(a, "0"), at.Sub(start)))
				}
			},
			at: 4 * time.Minute,
			assert: func(t *testing.T, r decision.Replica) {
				assert.True(t, r.KVUse.Present)
				assert.InDelta(t, 0.1*60, r.Waiting.Value, 1e-9, "the last value")
				assert.Equal(t, start.Add(4*scrapeInterval), r.Waiting.Time)
				assert.False(t, r.Served.Present)
			},
		},
		{
			name: "another pod changes nothing",
			feed: func(p *prometheustest.Prometheus) {
				for _, at := range scrapes(5) {
					p.Append(at, load(engine(a, "0"), at.Sub(start)))
					p.Append(at, load(engine(b, "0"), 2*at.Sub(start)))
				}
			},
			assert: func(t *testing.T, r decision.Replica) { assert.InDelta(t, 2, r.Served.Value, 1e-9) },
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := prometheustest.New(t)
			c.feed(p)
			client := serve(t, p.Handler)
			replicas, _ := read(t, client, start.Add(cmp.Or(c.at, time.Minute)))
			require.Contains(t, replicas, pod(a))
			c.assert(t, replicas[pod(a)])
		})
	}
}

func TestGateway(t *testing.T) {
	const queue, attempts = "inference_extension_flow_control_queue_size", "inference_extension_scheduler_attempts_total"
	type feed func(since float64) map[string]float64
	cases := []struct {
		name    string
		scrapes int
		feed    feed
		want    map[decision.ModelKey]decision.Model
	}{
		{
			name: "arrivals are what leaves plus the growth of the queue", scrapes: 5,
			feed: func(s float64) map[string]float64 {
				return map[string]float64{
					queue + `{target_model_name="llama", model_name="alias", namespace="models", inference_pool="p", priority="0"}`:            0.5 * s,
					queue + `{target_model_name="llama", model_name="alias", namespace="models", inference_pool="p", priority="1"}`:            0.5 * s,
					attempts + `{status="success", target_model_name="llama", model_name="alias", namespace="models", pod_name="a", port="1"}`: 3 * s,
					attempts + `{status="failure", target_model_name="llama", model_name="alias", namespace="models"}`:                         9 * s,
				}
			},
			want: map[decision.ModelKey]decision.Model{
				{Namespace: "models", ID: "llama"}: {Queue: decision.Sample{Value: 60, Present: true}, Arrival: decision.Sample{Value: 4, Present: true}},
			},
		},
		{
			name: "a gateway that two jobs scrape, of which one copies the labels of the pod", scrapes: 5,
			feed: func(s float64) map[string]float64 {
				all := map[string]float64{}
				for _, job := range []string{`job="a"`, `job="b", app="epp", node="n1"`} {
					for _, tenant := range []string{"x", "y"} {
						all[queue+`{model_name="llama", namespace="models", instance="epp", inference_pool="p", priority="0", fairness_id="`+tenant+`",`+job+`}`] = 0.5 * s
					}
					for _, replica := range []string{"a", "b"} {
						all[attempts+`{status="success", model_name="llama", namespace="models", instance="epp", pod_name="`+replica+`", port="1",`+job+`}`] = 1.5 * s
					}
				}
				return all
			},
			want: map[decision.ModelKey]decision.Model{
				{Namespace: "models", ID: "llama"}: {Queue: decision.Sample{Value: 60, Present: true}, Arrival: decision.Sample{Value: 4, Present: true}},
			},
		},
		{
			name: "a shrinking queue leaves faster than requests arrive", scrapes: 5,
			feed: func(s float64) map[string]float64 {
				return map[string]float64{
					queue + `{model_name="llama"}`:                     100 - s,
					attempts + `{status="success",model_name="llama"}`: 3 * s,
				}
			},
			want: map[decision.ModelKey]decision.Model{
				{ID: "llama"}: {Queue: decision.Sample{Value: 40, Present: true}, Arrival: decision.Sample{Value: 2, Present: true}},
			},
		},
		{
			name: "a gateway without a queue", scrapes: 5,
			feed: func(s float64) map[string]float64 {
				return map[string]float64{attempts + `{status="success",model_name="llama",namespace="models"}`: 3 * s}
			},
			want: map[decision.ModelKey]decision.Model{
				{Namespace: "models", ID: "llama"}: {Arrival: decision.Sample{Value: 3, Present: true}},
			},
		},
		{
			name: "requests wait and none was ever dispatched", scrapes: 5,
			feed: func(s float64) map[string]float64 {
				return map[string]float64{queue + `{model_name="llama",namespace="models"}`: s}
			},
			want: map[decision.ModelKey]decision.Model{
				{Namespace: "models", ID: "llama"}: {Queue: decision.Sample{Value: 60, Present: true}},
			},
		},
		{
			name: "a queue that was seen once", scrapes: 1,
			feed: func(float64) map[string]float64 {
				return map[string]float64{
					queue + `{model_name="llama",namespace="models"}`:                     7,
					attempts + `{status="success",model_name="llama",namespace="models"}`: 3,
				}
			},
			want: map[decision.ModelKey]decision.Model{
				{Namespace: "models", ID: "llama"}: {Queue: decision.Sample{Value: 7, Present: true}},
			},
		},
		{
			name: "a queue that is no number", scrapes: 5,
			feed: func(float64) map[string]float64 {
				return map[string]float64{queue + `{model_name="llama",namespace="models"}`: math.NaN()}
			},
			want: map[decision.ModelKey]decision.Model{{Namespace: "models", ID: "llama"}: {}},
		},
		{
			name: "a counter without the model's name", scrapes: 5,
			feed: func(s float64) map[string]float64 {
				return map[string]float64{attempts + `{status="success"}`: 3 * s}
			},
			want: map[decision.ModelKey]decision.Model{},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := prometheustest.New(t)
			var last time.Time
			for _, at := range scrapes(c.scrapes) {
				p.Append(at, c.feed(at.Sub(start).Seconds()))
				last = at
			}
			_, models := read(t, serve(t, p.Handler), last.Add(time.Second))
			require.Len(t, models, len(c.want))
			for key, want := range c.want {
				got := models[key]
				assert.Equal(t, key.Namespace, got.Namespace)
				assert.Equal(t, key.ID, got.ID)
				for name, pair := range map[string][2]decision.Sample{"queue": {want.Queue, got.Queue}, "arrival": {want.Arrival, got.Arrival}} {
					assert.Equal(t, pair[0].Present, pair[1].Present, name)
					assert.InDelta(t, pair[0].Value, pair[1].Value, 1e-6, name)
					if pair[1].Present {
						assert.Equal(t, last, pair[1].Time, name)
					}
				}
			}
		})
	}
}

// What the package's documentation says of the number of queries is what a server
// counts, for one model as for many, with and without a gateway.
func TestTheNumberOfQueriesDoesNotGrow(t *testing.T) {
	const documented = 24
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("A reading is %d PromQL queries", documented))
	for _, models := range []int{0, 1, 50} {
		t.Run(fmt.Sprint(models), func(t *testing.T) {
			p := prometheustest.New(t)
			for i := range models {
				p.Append(start, load(fmt.Sprintf(`namespace="n%d", pod="p", model_name="m%d"`, i, i), 0))
				p.Append(start, map[string]float64{fmt.Sprintf(`inference_extension_flow_control_queue_size{model_name="m%d"}`, i): 1})
			}
			var count atomic.Int64
			client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				count.Add(1)
				p.Handler.ServeHTTP(w, r)
			}))
			replicas, seen := read(t, client, start)
			assert.Len(t, replicas, models)
			assert.Len(t, seen, models)
			assert.Equal(t, int64(documented-max(0, 1-models)), count.Load(), "requests of a reading: one less where no pod is scraped")
			count.Store(0)
			queues, err := client.Queues(t.Context(), start)
			require.NoError(t, err)
			assert.Len(t, queues, models)
			assert.Equal(t, int64(1), count.Load(), "requests of a look at the queues")
		})
	}
}

// Pods whose last scrape failed are as old as their last good one, however many they are
// and by whichever label they are named; the dear question for that is sent only then.
func TestPodsWhoseLastScrapeFailed(t *testing.T) {
	for _, failed := range []int{0, 1, manyPods + 1} {
		for _, label := range []string{"pod", "pod_name"} {
			t.Run(fmt.Sprint(failed, " ", label), func(t *testing.T) {
				p := prometheustest.New(t)
				name := func(i int) string { return fmt.Sprintf(`namespace="models", %s="p.%d", model_name="llama"`, label, i) }
				times := scrapes(6)
				for i, at := range times {
					for j := range max(failed, 1) + 1 {
						values := load(name(j), at.Sub(start))
						if i == len(times)-1 && j < failed {
							for series := range values {
								values[series] = prometheustest.Stale
							}
						}
						p.Append(at, values)
					}
				}
				var count atomic.Int64
				client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					count.Add(1)
					p.Handler.ServeHTTP(w, r)
				}))
				last := times[len(times)-1]
				replicas, _ := read(t, client, last.Add(time.Second))
				require.Len(t, replicas, max(failed, 1)+1)
				assert.Equal(t, int64(24+min(failed, 1)), count.Load())
				for j := range max(failed, 1) + 1 {
					want := last
					if j < failed {
						want = last.Add(-scrapeInterval)
					}
					r := replicas[pod(fmt.Sprintf("p.%d", j))]
					assert.Equal(t, []time.Time{want, want, want}, []time.Time{r.KVUse.Time, r.Running.Time, r.Served.Time}, j)
				}
			})
		}
	}
}

// The times and sizes of requests are as old as the last count of them, also when the window
// holds only one count, of which there is no rate; and they are absent when nobody can say
// when that was.
func TestTimesAndSizesAreAsOldAsTheOnlyCount(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(5)
	for i, at := range times {
		values := load(engine("a", "0"), at.Sub(start))
		for series := range values {
			if strings.Contains(series, "request_success_total") && i != 2 {
				values[series] = prometheustest.Stale
			}
		}
		p.Append(at, values)
		p.Append(at, load(engine("b", "0"), at.Sub(start)))
	}
	last := times[len(times)-1]
	for name, failing := range map[string]string{"": "", ended: lastScrapes(served), earlier: "max_over_time(timestamp(vllm:request_success_total{"} {
		t.Run("without the "+name, func(t *testing.T) {
			client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if failing != "" && strings.Contains(r.FormValue("query"), failing) {
					http.Error(w, "overloaded", http.StatusServiceUnavailable)
					return
				}
				p.Handler.ServeHTTP(w, r)
			}))
			replicas, _, err := client.Read(t.Context(), last, window, lookback)
			r := replicas[pod("a")]
			assert.Equal(t, last, r.Running.Time)
			assert.Equal(t, name != ended, replicas[pod("b")].Served.Present, "the time of its count is known")
			for of, sample := range map[string]decision.Sample{"in service": r.InService, "input": r.Input, "output": r.Output, "TTFT": r.TTFT, "ITL": r.ITL} {
				if name == "" {
					require.NoError(t, err)
					assert.True(t, sample.Present, of)
					assert.Equal(t, times[2], sample.Time, of)
				} else {
					require.ErrorContains(t, err, name)
					assert.False(t, sample.Present, of)
				}
			}
		})
	}
}
