package prometheus

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// renamed is the load of a server whose metrics have other names; an empty name takes
// a metric away.
func renamed(load map[string]float64, names map[string]string) map[string]float64 {
	all := make(map[string]float64, len(load))
	for series, value := range load {
		name, labels, _ := strings.Cut(series, "{")
		for old, other := range names {
			rest, found := strings.CutPrefix(name, old)
			switch {
			case !found || rest != "" && rest != "_sum" && rest != "_count" && rest != "_bucket":
			case other == "":
				name = ""
			default:
				name = other + rest
			}
		}
		if name != "" {
			all[name+"{"+labels] = value
		}
	}
	return all
}

var (
	olderNames = map[string]string{
		"vllm:kv_cache_usage_perc":         "vllm:gpu_cache_usage_perc",
		"vllm:inter_token_latency_seconds": "vllm:time_per_output_token_seconds",
	}
	bareNames   = map[string]string{"vllm:request_success_total": "vllm:request_success"}
	sglangNames = map[string]string{
		"vllm:kv_cache_usage_perc":            "sglang:token_usage",
		"vllm:num_requests_running":           "sglang:num_running_reqs",
		"vllm:num_requests_waiting":           "sglang:num_queue_reqs",
		"vllm:request_success_total":          "sglang:num_requests_total",
		"vllm:request_inference_time_seconds": "",
		"vllm:request_prompt_tokens":          "sglang:prompt_tokens_histogram",
		"vllm:request_generation_tokens":      "sglang:generation_tokens_histogram",
		"vllm:time_to_first_token_seconds":    "sglang:time_to_first_token_seconds",
		"vllm:inter_token_latency_seconds":    "sglang:inter_token_latency_seconds",
		"vllm:cache_config_info":              "",
	}
)

// fleet is one scrape of pods of every kind under the same load.
func fleet(p *prometheustest.Prometheus, at time.Time) {
	since := at.Sub(start)
	p.Append(at, load(engine("new", "0"), since))
	p.Append(at, renamed(load(engine("old", "0"), since), olderNames))
	p.Append(at, renamed(load(engine("bare", "0"), since), bareNames))
	p.Append(at, load(engine("both", "0"), since))
	p.Append(at, renamed(load(engine("both", "0"), since), olderNames))
	p.Append(at, renamed(load(engine("both", "0"), since), bareNames))
	for rank := range 2 { // two processes of one engine tell the same
		labels := fmt.Sprintf(`tp_rank="%d", pp_rank="0", %s`, rank, engine("sglang", "0"))
		p.Append(at, renamed(load(labels, since), sglangNames))
		p.Append(at, map[string]float64{"sglang:max_total_num_tokens{" + labels + "}": 16000})
	}
	broken := load(engine("broken", "0"), since)
	for series := range broken {
		if !strings.Contains(series, "num_requests_running") && !strings.Contains(series, "cache_config_info") {
			broken[series] = math.NaN()
		}
	}
	p.Append(at, broken)
}

func TestAMixedFleet(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(9)
	for _, at := range times {
		// Of twelve pods that serve, half say nothing: another port is scraped.
		fleet(p, at)
		for i := range 6 {
			p.Append(at, map[string]float64{fmt.Sprintf(`up{namespace="models", pod="silent-%d"}`, i): 1})
		}
	}
	last := times[len(times)-1]
	replicas, _ := read(t, serve(t, p.Handler), last.Add(time.Second))
	require.Len(t, replicas, 6, "who says nothing is absent")

	want := replicas[pod("new")]
	require.True(t, want.TTFT.Present && want.ITL.Present && want.KVTokens.Present && want.Recent.Present)
	for _, name := range []string{"old", "bare", "both", "sglang"} {
		got := replicas[pod(name)]
		expected := want
		expected.Name = name
		if name == "sglang" {
			expected.InService = decision.Sample{}
		}
		assert.Equal(t, expected, got, name)
	}

	broken := replicas[pod("broken")]
	at := decision.Sample{Value: 20, Time: last, Present: true}
	assert.Equal(t, decision.Replica{Name: "broken", Running: at, KVTokens: decision.Sample{Value: 16000, Time: last, Present: true}, Pace: broken.Pace}, broken,
		"what is no number is absent")
}

// history is one pod, scrape by scrape: completions so far, running, waiting. A nil
// scrape failed.
type history []*[3]float64

func (h history) feed(p *prometheustest.Prometheus) time.Time {
	const labels = `{namespace="models", pod="a", instance="10.0.0.1:8000"}`
	series := []string{"vllm:request_success_total" + labels, "vllm:num_requests_running" + labels, "vllm:num_requests_waiting" + labels}
	at := start
	for i, scrape := range h {
		at = start.Add(time.Duration(i) * scrapeInterval)
		values := map[string]float64{}
		for k, name := range series {
			values[name] = prometheustest.Stale
			if scrape != nil {
				values[name] = scrape[k]
			}
		}
		p.Append(at, values)
	}
	return at
}

func TestArrivalsSinceTheScrapeBefore(t *testing.T) {
	cases := []struct {
		name    string
		history history
		recent  float64
		span    time.Duration
		absent  bool
		// growth says whether that over the window is known.
		growth bool
	}{
		{
			name:    "a step is seen at once",
			history: history{{100, 10, 0}, {130, 10, 0}, {160, 10, 0}, {190, 10, 0}, {220, 100, 60}},
			recent:  2 + (90.+60.)/15, span: scrapeInterval, growth: true,
		},
		{
			name:    "an idle server",
			history: history{{100, 0, 0}, {100, 0, 0}},
			recent:  0, span: scrapeInterval, growth: true,
		},
		{
			name:    "a failed scrape in between makes the span longer",
			history: history{{100, 10, 0}, {130, 10, 0}, nil, {190, 10, 0}},
			recent:  2, span: 2 * scrapeInterval, growth: true,
		},
		{
			name:    "what drains without completing is no negative rate",
			history: history{{100, 10, 50}, {100, 10, 0}},
			recent:  0, span: scrapeInterval, growth: true,
		},
		{
			name:    "the server started anew",
			history: history{{1000, 40, 9}, {1030, 40, 9}, {3, 1, 0}},
			absent:  true,
		},
		{
			name:    "the server started anew a while ago",
			history: history{{1000, 40, 9}, {3, 10, 0}, {33, 10, 0}, {63, 10, 0}},
			recent:  2, span: scrapeInterval,
		},
		{
			name:    "a series of which only one value is known",
			history: history{{5000, 10, 0}},
			absent:  true,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := prometheustest.New(t)
			last := c.history.feed(p)
			replicas, _ := read(t, serve(t, p.Handler), last.Add(time.Second))
			r := replicas[pod("a")]
			require.Equal(t, "a", r.Name)
			assert.GreaterOrEqual(t, r.Served.Value, 0.0)
			assert.Less(t, r.Served.Value, 10.0, "the first value of a counter is no increase")
			assert.Equal(t, c.growth, r.InFlightGrowth.Present, "growth")
			if c.absent {
				assert.Equal(t, decision.Sample{}, r.Recent)
				assert.Zero(t, r.RecentSpan)
				return
			}
			assert.InDelta(t, c.recent, r.Recent.Value, 1e-9)
			assert.Equal(t, last, r.Recent.Time)
			assert.Equal(t, c.span, r.RecentSpan)
		})
	}
}

func TestTheGatewayUnderTwoNames(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(5)
	for i, at := range times {
		s := at.Sub(start).Seconds()
		queue := 0.0
		if i == len(times)-1 {
			queue = 45
		}
		p.Append(at, map[string]float64{
			`llm_d_epp_flow_control_queue_size{model_name="llama", target_model_name="llama", namespace="models"}`: queue,
			// The older name of the same thing lacks a label.
			`inference_extension_flow_control_queue_size{model_name="llama", namespace="models"}`:                                     queue,
			`llm_d_epp_scheduler_attempts_total{status="success", model_name="llama", target_model_name="llama", namespace="models"}`: 3 * s,
			`inference_extension_scheduler_attempts_total{status="success", model_name="llama", namespace="models"}`:                  3 * s,
			// Another gateway has the older names alone.
			`inference_extension_flow_control_queue_size{model_name="granite", namespace="models"}`:                    7,
			`inference_extension_scheduler_attempts_total{status="success", model_name="granite", namespace="models"}`: s,
		})
	}
	last := times[len(times)-1]
	client := serve(t, p.Handler)
	_, models := read(t, client, last.Add(time.Second))
	llama, granite := decision.ModelKey{Namespace: "models", ID: "llama"}, decision.ModelKey{Namespace: "models", ID: "granite"}
	require.Len(t, models, 2)
	sample := func(v float64) decision.Sample { return decision.Sample{Value: v, Time: last, Present: true} }
	assert.Equal(t, sample(45), models[llama].Queue)
	assert.InDelta(t, 3+45./15, models[llama].Recent.Value, 1e-9, "the queue jumped with the last scrape")
	assert.Equal(t, scrapeInterval, models[llama].RecentSpan)
	assert.Equal(t, sample(7), models[granite].Queue)
	assert.InDelta(t, 1, models[granite].Arrival.Value, 1e-9)
	assert.InDelta(t, 1, models[granite].Recent.Value, 1e-9)

	queues, err := client.Queues(t.Context(), last.Add(time.Second))
	require.NoError(t, err)
	assert.Equal(t, map[decision.ModelKey]decision.Sample{llama: sample(45), granite: sample(7)}, queues)
}

// A gateway that counts by replica has a new series for each new replica.
func TestTheQueueEmptiesIntoNewReplicas(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(6)
	sent := func(pod, labels string) string {
		return `llm_d_epp_scheduler_attempts_total{status="success", model_name="llama", namespace="models", pod_name="` + pod + `", instance="` + labels + `"}`
	}
	for i, at := range times {
		s := at.Sub(start).Seconds()
		values := map[string]float64{
			`llm_d_epp_flow_control_queue_size{model_name="llama", namespace="models", instance="epp"}`: 300,
			sent("a", "epp"): 1000 + 2*s,
		}
		if i == len(times)-1 {
			values[`llm_d_epp_flow_control_queue_size{model_name="llama", namespace="models", instance="epp"}`] = 0
			values[sent("b", "epp")], values[sent("c", "epp")] = 200, 130
			// Another gateway is seen for the first time: what it ever counted is not new.
			values[sent("a", "another")] = 1e6
		}
		p.Append(at, values)
	}
	last := times[len(times)-1]
	_, models := read(t, serve(t, p.Handler), last.Add(time.Second))
	m := models[decision.ModelKey{Namespace: "models", ID: "llama"}]
	assert.InDelta(t, 2+(330.-300.)/15, m.Recent.Value, 1e-9)
	// The queue's slope over the scrapes 300, 300, 300 and 0 is -6 per second.
	assert.InDelta(t, 2+330./60-6, m.Arrival.Value, 1e-6)
}

func TestQueuesThatCannotBeRead(t *testing.T) {
	p := prometheustest.New(t)
	p.Append(start, map[string]float64{
		`inference_extension_flow_control_queue_size{model_name="broken"}`:         math.NaN(),
		`inference_extension_flow_control_queue_size{model_name="ok"}`:             0,
		`inference_extension_flow_control_queue_size{model_name="", priority="1"}`: 5,
	})
	queues, err := serve(t, p.Handler).Queues(t.Context(), start)
	require.NoError(t, err)
	assert.Equal(t, map[decision.ModelKey]decision.Sample{{ID: "ok"}: {Time: start, Present: true}}, queues)
}
