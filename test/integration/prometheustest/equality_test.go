package prometheustest_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/podmetrics"
	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	window   = time.Minute
	lookback = 5 * time.Minute
	// scrapeInterval is a step of the subqueries that look for the time of the last
	// good scrape, so that they miss none.
	scrapeInterval = 15 * time.Second
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine is a model server, or a gateway, at chance: what it has counted, and what
// happens to it from one scrape to the next.
type machine struct {
	chance  *rand.Rand
	names   map[string]string
	engines int
	gateway bool
	// forgetful is set where a scrape may show some metrics and others not.
	forgetful bool
	values    map[string]float64
	// failed is set while the next scrape fails, and silent are the metrics that it does
	// not show.
	failed bool
	silent []string
}

func (m *machine) pass() {
	m.failed, m.silent = m.chance.IntN(8) == 0, nil
	for _, name := range []string{"kv_cache_usage", "requests_running", "requests_waiting", "request_success"} {
		if m.forgetful && m.chance.IntN(3) == 0 {
			m.silent = append(m.silent, name)
		}
	}
	if m.values == nil || m.chance.IntN(12) == 0 { // starts, or starts anew
		m.values = map[string]float64{}
	}
	if m.gateway {
		for _, id := range []string{"llama", "granite"} {
			m.values[`inference_extension_flow_control_queue_size{model_name="`+id+`",priority="0"}`] = float64(m.chance.IntN(30))
			m.values[`inference_extension_scheduler_attempts_total{model_name="`+id+`",status="success"}`] += float64(m.chance.IntN(100))
			m.values[`inference_extension_scheduler_attempts_total{model_name="`+id+`",status="failure"}`] += 5
		}
		return
	}
	for e := range m.engines {
		m.step(fmt.Sprintf(`engine="%d"`, e))
	}
}

func (m *machine) step(labels string) {
	set := func(name string, v float64) { m.values[name+"{"+labels+"}"] = v }
	add := func(name string, v float64) { m.values[name+"{"+labels+"}"] += v }
	set("vllm:kv_cache_usage_perc", m.chance.Float64())
	set("vllm:num_requests_running", float64(m.chance.IntN(50)))
	set("vllm:num_requests_waiting", float64(m.chance.IntN(9)))
	if m.chance.IntN(15) == 0 {
		set("vllm:num_requests_waiting", math.NaN())
	}
	n := float64(m.chance.IntN(60))
	m.values[`vllm:request_success_total{finished_reason="stop",`+labels+"}"] += n
	m.values[`vllm:request_success_total{finished_reason="abort",`+labels+"}"] += float64(m.chance.IntN(2))
	for _, histogram := range []string{"request_inference_time_seconds", "request_prompt_tokens", "request_generation_tokens", "time_to_first_token_seconds", "inter_token_latency_seconds"} {
		add("vllm:"+histogram+"_sum", n*(1+m.chance.Float64()))
		add("vllm:"+histogram+"_count", n)
	}
	m.adapters()
	set(`vllm:cache_config_info`, 1)
	m.values[`vllm:cache_config_info{num_gpu_blocks="500",block_size="16",`+labels+"}"] = 1
	delete(m.values, "vllm:cache_config_info{"+labels+"}")
}

// adapters puts some adapters into use, of which old sets stay on the page.
func (m *machine) adapters() {
	some := func() string {
		var names []string
		for _, name := range []string{"sql", "acme/chat", "a b"} {
			if m.chance.IntN(3) == 0 {
				names = append(names, name)
			}
		}
		return strings.Join(names, ",")
	}
	used := start.Add(time.Duration(m.chance.IntN(4)-3) * 25 * time.Minute)
	m.values[fmt.Sprintf(`vllm:lora_requests_info{max_lora="4",running_lora_adapters=%q,waiting_lora_adapters=%q}`, some(), some())] = float64(used.Unix())
}

// shown is what a scrape finds, by the machine's own names.
func (m *machine) shown() map[string]float64 {
	all := map[string]float64{}
	for series, v := range m.values {
		if slices.ContainsFunc(m.silent, func(name string) bool { return strings.Contains(series, name) }) {
			continue
		}
		for old, other := range m.names {
			series = strings.Replace(series, old, other, 1)
		}
		all[series] = v
	}
	return all
}

func (m *machine) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if m.failed {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	var b bytes.Buffer
	for series, v := range m.shown() {
		fmt.Fprintf(&b, "%s %s\n", series, strconv.FormatFloat(v, 'g', -1, 64))
	}
	_, _ = w.Write(b.Bytes())
}

// store writes what a scrape finds into Prometheus, as its scraper does: series that
// are gone end.
func (m *machine) store(p *prometheustest.Prometheus, at time.Time, labels string, before map[string]float64) map[string]float64 {
	now := map[string]float64{}
	if !m.failed {
		for series, v := range m.shown() {
			now[strings.Replace(series, "{", "{"+labels+",", 1)] = v
		}
	}
	written := map[string]float64{}
	for series := range before {
		written[series] = prometheustest.Stale
	}
	for series, v := range now {
		written[series] = v
	}
	p.Append(at, written)
	return now
}

func serve(t *testing.T, h http.Handler) *url.URL {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	return u
}

// Both adapters see the same machines at the same instants, and must say the same.
func TestBothAdaptersSayTheSame(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { compare(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func compare(t *testing.T, chance *rand.Rand) {
	p := prometheustest.New(t)
	asked, err := prometheus.New(prometheus.Options{Address: serve(t, p.Handler).String(), AllowHTTP: true, Timeout: time.Minute})
	require.NoError(t, err)

	epp := &machine{chance: chance, gateway: true}
	now := start
	direct, err := podmetrics.New(podmetrics.Options{
		Interval: scrapeInterval, Now: func() time.Time { return now }, Gateways: []string{serve(t, epp).String()},
	})
	require.NoError(t, err)

	machines := map[string]*machine{
		"new":       {chance: chance, engines: 1},
		"two":       {chance: chance, engines: 2},
		"forgetful": {chance: chance, engines: 1, forgetful: true},
		"old":       {chance: chance, engines: 1, names: map[string]string{"kv_cache_usage_perc": "gpu_cache_usage_perc", "inter_token_latency": "time_per_output_token", "success_total": "success"}},
		"sglang":    {chance: chance, engines: 1, names: map[string]string{"vllm:kv_cache_usage_perc": "sglang:token_usage", "vllm:num_requests_running": "sglang:num_running_reqs", "vllm:num_requests_waiting": "sglang:num_queue_reqs", "vllm:request_success_total": "sglang:num_requests_total"}},
	}
	var targets []modelserver.Target
	for name, m := range machines {
		u := serve(t, m)
		port, err := strconv.Atoi(u.Port())
		require.NoError(t, err)
		targets = append(targets, modelserver.Target{Namespace: "models", Name: name, Address: u.Hostname(), Port: port})
	}
	direct.Follow(targets)
	_, _, _ = direct.Read(t.Context(), now, lookback, lookback) // It keeps as much as it was asked for.

	before := map[string]map[string]float64{}
	for range 14 {
		epp.pass()
		before["epp"] = epp.store(p, now, `instance="epp"`, before["epp"])
		for _, name := range []string{"new", "two", "old", "sglang", "forgetful"} {
			m := machines[name]
			m.pass()
			before[name] = m.store(p, now, fmt.Sprintf(`namespace="models",pod=%q,instance=%q`, name, name), before[name])
		}
		direct.Scrape(t.Context())
		// Prometheus is asked at whole seconds.
		at := now.Add(time.Duration(chance.IntN(12)) * time.Second)
		sameReplicas(t, asked, direct, at)
		sameAdapters(t, asked, direct, at)
		now = now.Add(scrapeInterval)
	}
}

func sameReplicas(t *testing.T, asked *prometheus.Client, direct *podmetrics.Client, at time.Time) {
	want, wantModels, err := asked.Read(t.Context(), at, window, lookback)
	require.NoError(t, err)
	_, gotModels, _ := direct.Read(t.Context(), at, window, lookback)
	// Prometheus is asked over a wider window for pods of which too many scrapes failed, and at the time of the
	// newest scrape where one may be late.
	asOf := at
	for _, w := range want {
		if w.Pace.Window == window {
			asOf = newestOf(want)
		}
	}
	for name, w := range want {
		got, _, _ := direct.Read(t.Context(), asOf, max(window, w.Pace.Window), lookback)
		require.Len(t, got, len(want))
		same(t, name.Name, w, got[name])
	}
	// A gateway that did not answer is gone from Prometheus at once; asked directly, it
	// is what it was, with its time.
	for key, w := range wantModels {
		same(t, key.ID, w, gotModels[key])
	}
}

// newestOf is the newest time of their samples.
func newestOf(replicas map[types.NamespacedName]decision.Replica) time.Time {
	var newest time.Time
	for _, r := range replicas {
		for _, s := range []decision.Sample{r.Running, r.Waiting, r.KVUse, r.Served} {
			if s.Present && s.Time.After(newest) {
				newest = s.Time
			}
		}
	}
	return newest
}

func sameAdapters(t *testing.T, asked *prometheus.Client, direct *podmetrics.Client, at time.Time) {
	want, err := asked.Adapters(t.Context(), at)
	require.NoError(t, err)
	got, err := direct.Adapters(t.Context(), at)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// same compares all samples and all spans of two structs.
func same(t *testing.T, of string, want, got any) {
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		name := of + ": " + w.Type().Field(i).Name
		a, ok := w.Field(i).Interface().(decision.Sample)
		if name == of+": Pace" {
			continue // One was told how often it asks, and the other one finds out how often others did.
		}
		if !ok {
			assert.Equal(t, w.Field(i).Interface(), g.Field(i).Interface(), name)
			continue
		}
		b, _ := g.Field(i).Interface().(decision.Sample)
		assert.Equal(t, a.Present, b.Present, name)
		assert.Equal(t, a.Time, b.Time, name)
		assert.InDelta(t, a.Value, b.Value, 1e-9*max(1, math.Abs(a.Value)), name)
	}
}
