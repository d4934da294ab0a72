package victoriametrics_test

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/past"
	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	window   = time.Minute
	lookback = 5 * time.Minute
	// long is how long servers and gateways have been scraped.
	long = 12 * time.Minute
)

// world is what a namespace shows in a time: two servers under a load that grows, with a restart of
// one of them, and a gateway that counts by endpoint.
func world(namespace string, since time.Duration) map[string]float64 {
	s, all := since.Seconds(), map[string]float64{}
	for i, pod := range []string{"a", "b"} {
		life := s
		if i == 1 && s > 300 {
			life = s - 300
		}
		labels := fmt.Sprintf(`{engine="0",model_name="llama",namespace=%q,pod=%q,instance="10.0.0.%d:8000",job="vllm"`, namespace, pod, i)
		done := 2*life + life*life/1000
		for name, value := range map[string]float64{
			"kv_cache_usage_perc": 0.2 + s/10000, "num_requests_running": 20 + float64(int(s)%7), "num_requests_waiting": 0.05 * s,
			"request_prompt_tokens_sum": 1000 * done, "request_prompt_tokens_count": done,
			"request_generation_tokens_sum": 200 * done, "request_generation_tokens_count": done,
			"request_inference_time_seconds_sum": 8 * done, "request_inference_time_seconds_count": done,
			"time_to_first_token_seconds_sum": 0.3 * done, "time_to_first_token_seconds_count": done,
			"inter_token_latency_seconds_sum": 4 * done, "inter_token_latency_seconds_count": 200 * done,
		} {
			all["vllm:"+name+labels+"}"] = value
		}
		all["vllm:request_success_total"+labels+`,finished_reason="stop"}`] = 0.75 * done
		all["vllm:request_success_total"+labels+`,finished_reason="length"}`] = 0.25 * done
		all["vllm:cache_config_info"+labels+`,num_gpu_blocks="1000",block_size="16"}`] = 1
		// Times of several processes are added up, so that any is possible.
		all["vllm:lora_requests_info"+strings.Replace(labels, `engine="0",model_name="llama",`, `max_lora="2",running_lora_adapters="sql,chat",waiting_lora_adapters="",`, 1)+"}"] = 1e12
		for le, share := range map[string]float64{"0.25": 0.5, "0.5": 0.9, "1.0": 1, "+Inf": 1} {
			all["vllm:time_to_first_token_seconds_bucket"+labels+`,le="`+le+`"}`] = share * done
			all["vllm:request_time_per_output_token_seconds_bucket"+labels+`,le="`+le+`"}`] = share * done
		}
	}
	gateway := fmt.Sprintf(`target_model_name="llama",model_name="llama",namespace=%q,pod="epp",instance="10.0.0.9:9090",job="epp"}`, namespace)
	for i := range 3 {
		all[fmt.Sprintf(`inference_extension_scheduler_attempts_total{status="success",endpoint_name="p%d",`, i)+gateway] = 2 * s
	}
	all[`inference_extension_flow_control_queue_size{inference_pool="p",`+gateway] = 0.5 * s
	return all
}

// of is the reader of one namespace alone.
func of(t *testing.T, address, namespace string) *prometheus.Client {
	t.Helper()
	c, err := prometheus.New(prometheus.Options{Address: address, AllowHTTP: true, Timeout: time.Minute, Matchers: fmt.Sprintf("namespace=%q", namespace)})
	require.NoError(t, err)
	return c
}

// Whatever the reader asks, VictoriaMetrics answers as Prometheus' own engine does: just now, where it
// hides what is young by default, over windows that begin before the five minutes for which it caches
// nothing, and of long ago, whatever the interval and the lag.
func TestVictoriaMetricsAnswersAsPrometheusDoes(t *testing.T) {
	v := startVictoria(t)
	for _, ago := range []time.Duration{0, 225 * time.Second, 6 * time.Hour} {
		for _, every := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute} {
			for _, late := range []time.Duration{0, 45 * time.Second} {
				namespace := fmt.Sprintf("n-%.0f-%.0f-%.0f", ago.Seconds(), every.Seconds(), late.Seconds())
				t.Run(namespace, func(t *testing.T) {
					p, scrapes := prometheustest.New(t), map[time.Time]map[string]float64{}
					at := time.Now().Add(-ago).Truncate(time.Second)
					last := at.Add(-2*time.Second - late)
					begin := last.Add(-long)
					for one := begin; !one.After(last); one = one.Add(every) {
						scrapes[one] = world(namespace, one.Sub(begin))
						p.Append(one, scrapes[one])
					}
					v.append(t, scrapes)
					server := httptest.NewServer(p.Handler)
					t.Cleanup(server.Close)
					asked, victoria := of(t, server.URL, namespace), of(t, v.url, namespace)
					compareReadings(t, asked, victoria, at)
					compareRest(t, asked, victoria, namespace, at, late == 0 && every <= window/2)
					compareHistories(t, asked, victoria, namespace, begin)
					// A step of earlier days has but two or three scrapes every two minutes, while the load grows.
					if every <= time.Minute {
						compareDays(t, asked, victoria, begin, last)
					}
				})
			}
		}
	}
}

// Of one namespace some pods are scraped more seldom than others.
func TestVictoriaMetricsAnswersOfTwoIntervals(t *testing.T) {
	v := startVictoria(t)
	for _, seldom := range []time.Duration{time.Minute, 2 * time.Minute} {
		namespace := fmt.Sprintf("n-%.0f", seldom.Seconds())
		t.Run(namespace, func(t *testing.T) {
			p, scrapes := prometheustest.New(t), map[time.Time]map[string]float64{}
			at := time.Now().Truncate(time.Second)
			begin := at.Add(-long)
			for since := time.Duration(0); since < long; since += 15 * time.Second {
				one := world(namespace, since)
				if since%seldom != 45*time.Second {
					maps.DeleteFunc(one, func(series string, _ float64) bool { return strings.Contains(series, `pod="b"`) })
				}
				scrapes[begin.Add(since)] = one
				p.Append(begin.Add(since), one)
			}
			v.append(t, scrapes)
			server := httptest.NewServer(p.Handler)
			t.Cleanup(server.Close)
			compareReadings(t, of(t, server.URL, namespace), of(t, v.url, namespace), at)
		})
	}
}

func compareReadings(t *testing.T, asked, victoria *prometheus.Client, at time.Time) {
	t.Helper()
	want, wantModels, err := asked.Read(t.Context(), at, window, lookback)
	require.NoError(t, err)
	got, gotModels, err := victoria.Read(t.Context(), at, window, lookback)
	require.NoError(t, err)
	require.Len(t, want, 2)
	require.Len(t, got, 2)
	for key, w := range want {
		assert.True(t, w.Served.Present && w.Recent.Present && w.Input.Present, key.Name)
		same(t, key.Name, w, got[key])
	}
	require.Len(t, wantModels, 1)
	for key, w := range wantModels {
		assert.True(t, w.Arrival.Present && w.Recent.Present && w.Queue.Present)
		same(t, "gateway", w, gotModels[key])
	}
}

// compareRest compares what is asked beside a reading.
func compareRest(t *testing.T, asked, victoria *prometheus.Client, namespace string, at time.Time, fresh bool) {
	t.Helper()
	want, err := asked.Queues(t.Context(), at)
	require.NoError(t, err)
	got, err := victoria.Queues(t.Context(), at)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	wantNames, err := asked.Adapters(t.Context(), at)
	require.NoError(t, err)
	gotNames, err := victoria.Adapters(t.Context(), at)
	require.NoError(t, err)
	assert.Equal(t, wantNames, gotNames)
	assert.Len(t, wantNames, 2)
	promises := map[decision.ModelKey]capacity.SLO{{Namespace: namespace, ID: "llama"}: {TTFT: 500, ITL: 500}}
	wantMet, err := asked.Met(t.Context(), at, window, promises)
	require.NoError(t, err)
	gotMet, err := victoria.Met(t.Context(), at, window, promises)
	require.NoError(t, err)
	// It is asked for over the window that ends now. Where Prometheus' one holds two scrapes, both know it.
	if fresh {
		require.Len(t, wantMet, 1)
	}
	for key, w := range wantMet {
		same(t, "SLO", w, gotMet[key])
	}
}

// compareHistories compares what a replay looks back at.
func compareHistories(t *testing.T, asked, victoria *prometheus.Client, namespace string, begin time.Time) {
	t.Helper()
	span := past.Span{Model: "llama", Namespace: namespace, From: begin.Add(time.Minute), To: begin.Add(11 * time.Minute), Step: time.Minute}
	want, err := past.LookBack(t.Context(), asked, span)
	require.NoError(t, err)
	got, err := past.LookBack(t.Context(), victoria, span)
	require.NoError(t, err)
	require.Len(t, want.Pods, 2)
	require.Len(t, got.Pods, 2)
	for i, w := range want.Pods {
		g := got.Pods[i]
		assert.Equal(t, w.Pod, g.Pod)
		assert.InDelta(t, w.KVTokens, g.KVTokens, 0)
		for k, one := range w.Steps {
			other, step := g.Steps[k], fmt.Sprint(w.Pod.Name, " step ", k)
			assert.Equal(t, one.Seen, other.Seen, step)
			alike(t, step+": completed", one.Completed, other.Completed)
			alike(t, step+": in flight", one.InFlight, other.InFlight)
			alike(t, step+": running", one.Running, other.Running)
			alike(t, step+": waiting", one.Waiting, other.Waiting)
			alike(t, step+": input", one.Input.Sum, other.Input.Sum)
			alike(t, step+": time to first token", one.FirstToken.Value(), other.FirstToken.Value())
		}
	}
}

// compareDays compares the load of earlier days at this time of the day after. Where servers were there for a
// part of a step only, Prometheus counts what they completed over all of it, and VictoriaMetrics over that part.
func compareDays(t *testing.T, asked, victoria *prometheus.Client, begin, last time.Time) {
	t.Helper()
	at, compared := last.Add(forecast.HistoryAgo[0]), 0
	want, err := asked.Earlier(t.Context(), at)
	require.NoError(t, err)
	got, err := victoria.Earlier(t.Context(), at)
	require.NoError(t, err)
	require.Len(t, want, 1)
	for key, w := range want {
		g := got[key]
		require.Len(t, g, len(w))
		for i := range w {
			require.Len(t, g[i].Rates, len(w[i].Rates))
			for k, rate := range w[i].Rates {
				from := w[i].From.Add(time.Duration(k) * w[i].Step)
				if !from.Before(begin) && !from.Add(w[i].Step).After(last) {
					alike(t, fmt.Sprint("rate ", k), rate, g[i].Rates[k])
					compared++
				}
			}
		}
	}
	assert.Positive(t, compared)
}

// alike compares two numbers of which both may be unknown.
func alike(t *testing.T, of string, want, got float64) {
	t.Helper()
	if math.IsNaN(want) || math.IsNaN(got) {
		assert.Equal(t, math.IsNaN(want), math.IsNaN(got), of)
		return
	}
	assert.InDelta(t, want, got, max(0.01, 0.05*math.Abs(want)), of)
}

// same compares samples and spans. A rate may differ a little: VictoriaMetrics knows the value before the
// window and carries nothing on to the ends of it.
func same(t *testing.T, of string, want, got any) {
	t.Helper()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		name := of + ": " + w.Type().Field(i).Name
		a, isSample := w.Field(i).Interface().(decision.Sample)
		if a, isNumber := w.Field(i).Interface().(float64); isNumber {
			assert.InDelta(t, a, g.Field(i).Interface(), 0.01, name)
			continue
		}
		if !isSample {
			assert.Equal(t, w.Field(i).Interface(), g.Field(i).Interface(), name)
			continue
		}
		b, _ := g.Field(i).Interface().(decision.Sample)
		assert.Equal(t, a.Present, b.Present, name)
		assert.Equal(t, a.Time, b.Time, name)
		assert.InDelta(t, a.Value, b.Value, max(0.01, 0.05*a.Value), name)
	}
}

// Hundreds of pods whose last scrape failed are asked for by name, in queries that are not refused.
func TestQueriesOfManyPodsAreNotRefused(t *testing.T) {
	v := startVictoria(t)
	const many = 150
	at := time.Now().Truncate(time.Second)
	scrapes := map[time.Time]map[string]float64{}
	for i := range 12 {
		one, values := at.Add(-time.Duration(12-i)*15*time.Second), map[string]float64{}
		for j := range many {
			labels := fmt.Sprintf(`{namespace="models",pod="a-variant-with-a-long-name-%s-%04d",instance="i%[2]d",job="vllm",model_name="llama"}`, strings.Repeat("x", 30), j)
			values["vllm:num_requests_running"+labels] = 3
			// The counter ended: its time must be asked for.
			if i < 9 {
				values["vllm:request_success_total"+labels] = float64(10 * i)
				values["vllm:request_prompt_tokens_sum"+labels] = float64(1000 * i)
				values["vllm:request_prompt_tokens_count"+labels] = float64(10 * i)
			} else {
				values["vllm:request_success_total"+labels] = prometheustest.Stale
			}
		}
		scrapes[one] = values
	}
	v.append(t, scrapes)
	replicas, _, err := of(t, v.url, "models").Read(t.Context(), at, window, lookback)
	require.NoError(t, err)
	require.Len(t, replicas, many)
	var key types.NamespacedName
	for key = range replicas {
		break
	}
	assert.InDelta(t, 3, replicas[key].Running.Value, 1e-9)
}

// The limit that queries are cut to is the program's own.
func TestTheLimitOfAQueryIsThatOfTheProgram(t *testing.T) {
	v := startVictoria(t)
	status, text := v.get("/api/v1/query?query=" + url.QueryEscape(strings.Repeat("vector(1) or ", 16<<10/13)+"vector(1)"))
	assert.NotEqual(t, http.StatusOK, status)
	assert.Contains(t, text, "16384")
	status, text = v.get("/api/v1/query?query=" + url.QueryEscape(strings.Repeat("vector(1) or ", 15<<10/13)+"vector(1)"))
	assert.Equal(t, http.StatusOK, status, text)
}
