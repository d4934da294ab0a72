package podmetrics

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	interval5 = 5 * time.Second
	window    = time.Minute
	lookback  = 5 * time.Minute
)

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// server shows what it is given.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	values map[string]float64
	status int
	asked  []*http.Request
}

func serve(t *testing.T) *server {
	s := &server{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	w.WriteHeader(s.status)
	_, _ = w.Write(text(s.values))
}

func (s *server) show(values map[string]float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = values
}

func (s *server) refuse(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *server) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// text is an exposition with what servers put around the values.
func text(values map[string]float64) []byte {
	var b bytes.Buffer
	b.WriteString("# HELP python_gc_objects_collected_total Objects collected during gc\n# TYPE python_gc_objects_collected_total counter\n" +
		"python_gc_objects_collected_total{generation=\"0\"} 9.0\n\n# TYPE vllm:num_requests_running gauge\n" +
		"vllm:num_requests_running_by_something{x=\"y\"} 1\nprocess_start_time_seconds 1.7e+09\n")
	for series, v := range values {
		fmt.Fprintf(&b, "%s %s\n", series, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return b.Bytes()
}

func (s *server) target(t *testing.T, name string) modelserver.Target {
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return modelserver.Target{Namespace: "models", Name: name, UID: types.UID(name), Address: u.Hostname(), Port: port, Ready: true}
}

func pods(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "models", Name: name}
}

func client(t *testing.T, o Options) (*Client, *clock) {
	now := &clock{now: start}
	o.Now = now.Now
	c, err := New(o)
	require.NoError(t, err)
	return c, now
}

// load is a vLLM server under a steady load: 2 requests per second of 1000 prompt and
// 200 generated tokens, the queue growing by 0.1 per second.
func load(since time.Duration) map[string]float64 {
	s := since.Seconds()
	return map[string]float64{
		`vllm:kv_cache_usage_perc{engine="0"}`:                                     0.5,
		`vllm:num_requests_running{engine="0"}`:                                    20,
		`vllm:num_requests_waiting{engine="0"}`:                                    0.1 * s,
		`vllm:request_success_total{engine="0",finished_reason="stop"}`:            1000 + 1.5*s,
		`vllm:request_success_total{engine="0",finished_reason="length"}`:          1000 + 0.5*s,
		`vllm:request_prompt_tokens_sum{engine="0"}`:                               2e6 + 2000*s,
		`vllm:request_prompt_tokens_count{engine="0"}`:                             2000 + 2*s,
		`vllm:request_prompt_tokens_bucket{engine="0",le="+Inf"}`:                  2000 + 2*s,
		`vllm:request_generation_tokens_sum{engine="0"}`:                           400000 + 400*s,
		`vllm:request_generation_tokens_count{engine="0"}`:                         2000 + 2*s,
		`vllm:request_inference_time_seconds_sum{engine="0"}`:                      16000 + 16*s,
		`vllm:request_inference_time_seconds_count{engine="0"}`:                    2000 + 2*s,
		`vllm:time_to_first_token_seconds_sum{engine="0"}`:                         600 + 0.6*s,
		`vllm:time_to_first_token_seconds_count{engine="0"}`:                       2000 + 2*s,
		`vllm:inter_token_latency_seconds_sum{engine="0"}`:                         8000 + 8*s,
		`vllm:inter_token_latency_seconds_count{engine="0"}`:                       400000 + 400*s,
		`vllm:cache_config_info{engine="0",num_gpu_blocks="1000",block_size="16"}`: 1,
	}
}

// other is the load under other names.
func other(values map[string]float64, names ...string) map[string]float64 {
	all := map[string]float64{}
	replacer := strings.NewReplacer(names...)
	for series, v := range values {
		all[replacer.Replace(series)] = v
	}
	return all
}

var (
	olderNames  = []string{"kv_cache_usage_perc", "gpu_cache_usage_perc", "inter_token_latency_seconds", "time_per_output_token_seconds", "request_success_total", "request_success"}
	sglangNames = []string{
		"vllm:kv_cache_usage_perc", "sglang:token_usage", "vllm:num_requests_running", "sglang:num_running_reqs", "vllm:num_requests_waiting", "sglang:num_queue_reqs",
		"vllm:request_success_total", "sglang:num_requests_total", "vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram",
		"vllm:request_generation_tokens", "sglang:generation_tokens_histogram", "vllm:time_to_first_token", "sglang:time_to_first_token",
		"vllm:inter_token_latency", "sglang:inter_token_latency", "vllm:cache_config_info", "gone", "vllm:request_inference_time_seconds", "gone",
	}
)

func TestServersOfEveryKind(t *testing.T) {
	kinds := map[string]func(time.Duration) map[string]float64{
		"new": load,
		"old": func(s time.Duration) map[string]float64 { return other(load(s), olderNames...) },
		"both": func(s time.Duration) map[string]float64 {
			all := load(s)
			for series, v := range other(load(s), olderNames...) {
				all[series] = v
			}
			return all
		},
		"sglang": func(s time.Duration) map[string]float64 {
			all := other(load(s), sglangNames...)
			all[`sglang:max_total_num_tokens{tp_rank="0"}`] = 16000
			all[`sglang:max_total_num_tokens{tp_rank="1"}`] = 16000
			return all
		},
	}
	c, now := client(t, Options{})
	var targets []modelserver.Target
	servers := map[string]*server{}
	for name := range kinds {
		servers[name] = serve(t)
		targets = append(targets, servers[name].target(t, name))
	}
	c.Follow(targets)
	for range 13 {
		for name, kind := range kinds {
			servers[name].show(kind(now.Now().Sub(start)))
		}
		c.Scrape(t.Context())
		now.pass(interval5)
	}
	last := now.Now().Add(-interval5)
	replicas, models, err := c.Read(t.Context(), last.Add(time.Second), window, lookback)
	require.NoError(t, err)
	assert.Empty(t, models)
	require.Len(t, replicas, len(kinds))
	for name := range kinds {
		r := replicas[pods(name)]
		assert.Equal(t, name, r.Name)
		for field, want := range map[string]struct {
			sample decision.Sample
			value  float64
		}{
			"KV use": {r.KVUse, 0.5}, "running": {r.Running, 20}, "waiting": {r.Waiting, 0.1 * 32.5}, "served": {r.Served, 2}, "growth": {r.InFlightGrowth, 0.1},
			"input": {r.Input, 1000}, "output": {r.Output, 200}, "TTFT": {r.TTFT, 0.3}, "ITL": {r.ITL, 0.02}, "KV tokens": {r.KVTokens, 16000}, "recent": {r.Recent, 2.1},
		} {
			assert.True(t, want.sample.Present, "%s: %s", name, field)
			assert.InDelta(t, want.value, want.sample.Value, 1e-6, "%s: %s", name, field)
			assert.Equal(t, last, want.sample.Time, "%s: %s", name, field)
		}
		assert.Equal(t, interval5, r.RecentSpan)
		assert.Equal(t, name != "sglang", r.InService.Present, name)
	}
}

func TestHalfOfThePodsAreGone(t *testing.T) {
	c, now := client(t, Options{})
	var targets []modelserver.Target
	var servers []*server
	for i := range 6 {
		s := serve(t)
		s.show(load(0))
		servers = append(servers, s)
		targets = append(targets, s.target(t, fmt.Sprintf("p%d", i)))
	}
	c.Follow(targets)
	c.Scrape(t.Context())
	first := now.Now()
	now.pass(interval5)
	for _, s := range servers[3:] {
		s.refuse(http.StatusServiceUnavailable)
	}
	c.Scrape(t.Context())
	replicas, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "3 of 6 pods did not answer, the first is models/p3")
	require.ErrorContains(t, err, "503")
	var silent interface {
		Of(pod types.NamespacedName) error
	}
	require.ErrorAs(t, err, &silent, "a variant is told of its own pods alone")
	require.ErrorContains(t, silent.Of(pods("p4")), "503")
	require.NoError(t, silent.Of(pods("p0")))
	require.Len(t, replicas, 6)
	assert.Equal(t, now.Now(), replicas[pods("p0")].KVUse.Time)
	assert.Equal(t, first, replicas[pods("p3")].KVUse.Time, "what was seen last, with its time")
	assert.False(t, replicas[pods("p3")].Recent.Present)

	now.pass(lookback - time.Second)
	replicas, _, err = c.Read(t.Context(), now.Now(), window, lookback)
	require.Error(t, err)
	assert.Contains(t, replicas, pods("p0"), "the lookback has just not passed")
	assert.NotContains(t, replicas, pods("p3"))

	c.Follow(targets[:3])
	replicas, _, err = c.Read(t.Context(), first.Add(interval5), window, lookback)
	require.NoError(t, err, "who is not followed cannot fail")
	assert.Len(t, replicas, 3)
}

func TestAPodOfTheSameName(t *testing.T) {
	c, now := client(t, Options{})
	s := serve(t)
	target := s.target(t, "a")
	c.Follow([]modelserver.Target{target})
	for range 3 {
		s.show(load(now.Now().Sub(start)))
		c.Scrape(t.Context())
		now.pass(interval5)
	}
	replicas, _, _ := c.Read(t.Context(), now.Now(), window, lookback)
	require.True(t, replicas[pods("a")].Served.Present)

	target.Path = "/metrics?format=text"
	c.Follow([]modelserver.Target{target})
	replicas, _, _ = c.Read(t.Context(), now.Now(), window, lookback)
	assert.True(t, replicas[pods("a")].Served.Present, "the same pod at another path")
	c.Scrape(t.Context())
	assert.Equal(t, "/metrics?format=text", s.asked[len(s.asked)-1].URL.RequestURI())

	target.UID = "another"
	c.Follow([]modelserver.Target{target})
	replicas, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.NoError(t, err)
	assert.Empty(t, replicas)
}

func TestWhatIsUnknownIsAbsent(t *testing.T) {
	cases := []struct {
		name    string
		scrapes []map[string]float64
		assert  func(t *testing.T, r decision.Replica)
	}{
		{"one scrape", []map[string]float64{load(0)}, func(t *testing.T, r decision.Replica) {
			assert.True(t, r.KVUse.Present && r.Waiting.Present && r.Running.Present && r.KVTokens.Present)
			assert.Equal(t, decision.Sample{}, r.Served)
			assert.Equal(t, decision.Sample{}, r.InFlightGrowth)
			assert.Equal(t, decision.Sample{}, r.Recent)
			assert.Equal(t, decision.Sample{}, r.TTFT)
			assert.Zero(t, r.RecentSpan)
		}},
		{"nothing completed", []map[string]float64{load(0), load(0), load(0)}, func(t *testing.T, r decision.Replica) {
			assert.True(t, r.Served.Present)
			assert.Zero(t, r.Served.Value)
			assert.False(t, r.Input.Present || r.TTFT.Present || r.ITL.Present)
			assert.True(t, r.Recent.Present)
		}},
		{"no number", []map[string]float64{
			{`vllm:kv_cache_usage_perc`: math.NaN(), `vllm:num_requests_waiting`: math.Inf(1), `vllm:num_requests_running`: 3},
			{`vllm:kv_cache_usage_perc`: 0.5, `vllm:num_requests_waiting`: 1, `vllm:num_requests_running`: 3},
		}, func(t *testing.T, r decision.Replica) {
			assert.False(t, r.KVUse.Present || r.Waiting.Present || r.InFlightGrowth.Present || r.Recent.Present)
			assert.True(t, r.Running.Present)
		}},
		{"started anew", []map[string]float64{load(time.Hour), load(time.Hour + interval5), {
			`vllm:num_requests_running{engine="0"}`: 1, `vllm:num_requests_waiting{engine="0"}`: 0,
			`vllm:request_success_total{engine="0",finished_reason="stop"}`: 3, `vllm:request_success_total{engine="0",finished_reason="length"}`: 0,
		}}, func(t *testing.T, r decision.Replica) {
			assert.True(t, r.Served.Present)
			assert.GreaterOrEqual(t, r.Served.Value, 0.0)
			assert.Less(t, r.Served.Value, 10.0)
			assert.False(t, r.Recent.Present || r.InFlightGrowth.Present)
		}},
		{"a cache whose size is not known yet", []map[string]float64{
			{`vllm:num_requests_running`: 0, `vllm:cache_config_info{num_gpu_blocks="None",block_size="16"}`: 1},
		}, func(t *testing.T, r decision.Replica) { assert.False(t, r.KVTokens.Present) }},
		{"two engines", []map[string]float64{{
			`vllm:kv_cache_usage_perc{engine="0"}`: 0.2, `vllm:kv_cache_usage_perc{engine="1"}`: 0.7,
			`vllm:num_requests_running{engine="0"}`: 2, `vllm:num_requests_running{engine="1"}`: 3,
			`vllm:cache_config_info{engine="0",num_gpu_blocks="10",block_size="16"}`: 1, `vllm:cache_config_info{engine="1",num_gpu_blocks="10",block_size="16"}`: 1,
		}}, func(t *testing.T, r decision.Replica) {
			assert.Equal(t, 0.7, r.KVUse.Value)
			assert.Equal(t, 5.0, r.Running.Value)
			assert.Equal(t, 320.0, r.KVTokens.Value)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, now := client(t, Options{})
			s := serve(t)
			m.Follow([]modelserver.Target{s.target(t, "a")})
			for _, values := range c.scrapes {
				s.show(values)
				m.Scrape(t.Context())
				now.pass(interval5)
			}
			replicas, _, err := m.Read(t.Context(), now.Now(), window, lookback)
			require.NoError(t, err)
			require.Contains(t, replicas, pods("a"))
			c.assert(t, replicas[pods("a")])
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	c, now := client(t, Options{})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<html>\nlogin first\n</html>")
	}))
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "vllm:num_requests_running{engine=\"0\" 5\n")
	}))
	elsewhere := httptest.NewServer(http.RedirectHandler("http://203.0.113.1/metrics", http.StatusFound))
	for name, answers := range map[string]*httptest.Server{"no metric of a known": page, "parsing the metrics": broken, "302": elsewhere} {
		t.Cleanup(answers.Close)
		target := (&server{Server: answers}).target(t, "a")
		target.UID = types.UID(name)
		c.Follow([]modelserver.Target{target})
		c.Scrape(t.Context())
		replicas, _, err := c.Read(t.Context(), now.Now(), window, lookback)
		require.ErrorContains(t, err, name)
		assert.Empty(t, replicas)
	}
	reset := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) && assert.NoError(t, connection.(*net.TCPConn).SetLinger(0)) {
			assert.NoError(t, connection.Close())
		}
	}))
	t.Cleanup(reset.Close)
	c.Follow([]modelserver.Target{(&server{Server: reset}).target(t, "reset")})
	c.Scrape(t.Context())
	_, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, ": tcp "+reset.Listener.Addr().String()+": ", "without the port of this end, which is another one each time")
	c.Follow([]modelserver.Target{{Namespace: "models", Name: "a", UID: "host", Address: "metadata.internal", Ready: true}})
	c.Scrape(t.Context())
	_, _, err = c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "no IP address")
	c.Follow([]modelserver.Target{{Namespace: "models", Name: "a", UID: "starting", Address: "metadata.internal"}})
	c.Scrape(t.Context())
	_, _, err = c.Read(t.Context(), now.Now(), window, lookback)
	require.NoError(t, err, "the silence of a pod that is not ready is no failure")
}

// endless is an exposition that does not end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	return copy(b, strings.Repeat("x", 8<<10)+" 1\n"), nil
}

func TestAnEndlessAnswerIsGivenUp(t *testing.T) {
	_, err := vocabularyOf(modelserver.OfServer()).parse(endless{})
	require.ErrorContains(t, err, "more than 64 MiB")
}

func TestAPageOfTooManySeriesIsGivenUp(t *testing.T) {
	many := func(n, width int) string {
		var page strings.Builder
		for i := range n {
			fmt.Fprintf(&page, "vllm:num_requests_running{engine=\"%0*d\"} 1\n", width, i)
		}
		return page.String()
	}
	for name, c := range map[string]struct{ page, want string }{
		"as many as may be": {many(4096, 1), ""},
		"too many":          {many(4097, 1), "more than 4096 series of interest"},
		"too long":          {many(1100, 1000), "more than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.page) }))
			t.Cleanup(s.Close)
			client, now := client(t, Options{})
			client.Follow([]modelserver.Target{(&server{Server: s}).target(t, "big")})
			client.Scrape(t.Context())
			_, _, err := client.Read(t.Context(), now.Now(), window, lookback)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "models/big", "the pod is named")
		})
	}
	_, err := vocabularyOf(modelserver.OfGateway()).parse(strings.NewReader(strings.ReplaceAll(
		many(4097, 1), "vllm:num_requests_running{", `llm_d_epp_flow_control_queue_size{model_name="m",`)))
	require.NoError(t, err, "a gateway has a queue for each of its clients")
}

func TestAPodThatHangsHoldsUpNobody(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, 100)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	c, now := client(t, Options{Timeout: time.Hour, Concurrency: 2})
	good := serve(t)
	targets := []modelserver.Target{(&server{Server: hanging}).target(t, "hangs"), good.target(t, "answers")}
	c.Follow(targets)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 3 {
		good.show(load(now.Now().Sub(start)))
		c.round(ctx)
		require.Eventually(t, func() bool { return good.times() == i+1 && !c.busy("answers") }, 10*time.Second, time.Millisecond)
		now.pass(interval5)
	}
	<-begun
	assert.Empty(t, begun, "who hangs is asked once")
	replicas, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.NoError(t, err)
	assert.True(t, replicas[pods("answers")].Served.Present)
	assert.NotContains(t, replicas, pods("hangs"))
	cancel()
	c.scrapes.Wait()
}

func (c *Client) busy(name string) bool {
	c.mu.Lock()
	p := c.pods[pods(name)]
	c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

func TestAPodThatIsTooSlowIsGivenUp(t *testing.T) {
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hanging.Close)
	c, now := client(t, Options{Timeout: 20 * time.Millisecond})
	c.Follow([]modelserver.Target{(&server{Server: hanging}).target(t, "slow")})
	c.Scrape(t.Context())
	_, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	slow := c.pods[pods("slow")]
	for _, kind := range []*turns{c.missed, c.doubtful, c.doubtful} {
		now.pass(interval5)
		slots, _, due := c.due(slow, now.Now())
		assert.True(t, due)
		assert.Same(t, kind, slots, "it waits among its kind")
		slow.release()
		c.Scrape(t.Context())
	}
}

// A pod that missed one scrape does not wait for all those that are on a node that is gone.
func TestAPodThatIsWellAgainWaitsForNoneThatIsGone(t *testing.T) {
	gone := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(gone.Close)
	c, now := client(t, Options{Timeout: 100 * time.Millisecond, Concurrency: 4})
	good := serve(t)
	good.show(load(0))
	targets := []modelserver.Target{good.target(t, "good")}
	for i := range 4 {
		targets = append(targets, (&server{Server: gone}).target(t, fmt.Sprint("gone", i)))
	}
	c.Follow(targets)
	for i := range 3 {
		if i == 2 {
			good.refuse(http.StatusServiceUnavailable)
		}
		c.Scrape(t.Context())
		now.pass(interval5)
	}
	good.refuse(http.StatusOK)
	c.options.Timeout = time.Hour // those that are gone hold their slots
	ctx, cancel := context.WithCancel(t.Context())
	c.round(ctx)
	assert.Eventually(t, func() bool { return good.times() == 4 && !c.busy("good") }, 10*time.Second, time.Millisecond)
	cancel()
	c.scrapes.Wait()
}

func TestSecrets(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	plain := serve(t)
	plain.show(load(0))
	var seen []string
	var mu sync.Mutex
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write(text(load(0)))
	}))
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	c, now := client(t, Options{Pods: HTTP{TokenFile: token, CAFile: ca}, Scheme: "https"})
	a, b := plain.target(t, "plain"), (&server{Server: secure}).target(t, "secure")
	a.Scheme = "http"
	for _, secret := range []string{"first-secret", "second-secret"} {
		require.NoError(t, os.WriteFile(token, []byte(secret+"\n"), 0o600))
		c.Follow([]modelserver.Target{a, b})
		c.Scrape(t.Context())
		_, _, err := c.Read(t.Context(), now.Now(), window, lookback)
		require.NoError(t, err)
		now.pass(interval5)
	}
	b.Path = "/no"
	c.Follow([]modelserver.Target{b})
	c.Scrape(t.Context())
	_, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "401")
	assert.NotContains(t, err.Error(), "secret")
	assert.Equal(t, []string{"Bearer first-secret", "Bearer second-secret", "Bearer second-secret"}, seen)
	for _, r := range plain.asked {
		assert.Empty(t, r.Header.Get("Authorization"), "no token without TLS")
	}

	// The pod's own annotation does not get it the token.
	seen = nil
	b.Path, b.Scheme = "", "https"
	careful, now := client(t, Options{Pods: HTTP{TokenFile: token, CAFile: ca}})
	careful.Follow([]modelserver.Target{b})
	careful.Scrape(t.Context())
	_, _, err = careful.Read(t.Context(), now.Now(), window, lookback)
	require.NoError(t, err)
	assert.Equal(t, []string{""}, seen)

	named, now := client(t, Options{Pods: HTTP{CAFile: ca, ServerName: "vllm.example"}})
	named.Follow([]modelserver.Target{b})
	named.Scrape(t.Context())
	_, _, err = named.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "vllm.example", "the certificate is for another name")

	untrusting, now := client(t, Options{})
	b.Path = ""
	untrusting.Follow([]modelserver.Target{b})
	untrusting.Scrape(t.Context())
	_, _, err = untrusting.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "certificate")
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"scheme":          {Scheme: "ftp"},
		"port":            {Port: 70000},
		"time-out":        {Timeout: -1},
		"concurrency":     {Concurrency: -1},
		"interval":        {Interval: -1},
		"begin with http": {Gateways: []string{"epp:9090"}},
		"names no host":   {Gateways: []string{"http:///metrics"}},
		"credentials":     {Gateways: []string{"http://user:secret@epp:9090"}},
		"is not a URL":    {Gateways: []string{"http://user:secret@e pp"}},
		"setting up TLS":  {Pods: HTTP{CAFile: "/nowhere/ca.crt"}},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestRunAndReadAtOnce(t *testing.T) {
	c, err := New(Options{Interval: 10 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	var targets []modelserver.Target
	for i := range 8 {
		s := serve(t)
		s.show(load(0))
		targets = append(targets, s.target(t, fmt.Sprintf("p%d", i)))
	}
	for i := range targets {
		c.Follow(targets[:i+1])
	}
	require.Eventually(t, func() bool {
		replicas, _, err := c.Read(ctx, time.Now(), window, lookback)
		served := slices.Collect(func(yield func(bool) bool) {
			for _, r := range replicas {
				if !yield(r.Served.Present) {
					return
				}
			}
		})
		return err == nil && len(served) == len(targets) && !slices.Contains(served, false)
	}, 20*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

// gatewayOf makes a client of one gateway whose host resolves to the addresses.
func gatewayOf(t *testing.T, host string, addresses func() []string) (*Client, *clock) {
	c, now := client(t, Options{Gateways: []string{host}, Timeout: 10 * time.Second})
	c.gateways[0].lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
		var all []netip.Addr
		for _, a := range addresses() {
			all = append(all, netip.MustParseAddr(a))
		}
		if len(all) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		return all, nil
	}
	return c, now
}

// epps are gateways on addresses of this machine, on one port.
func epps(t *testing.T, n int) (port string, all []*server) {
	for i := range n {
		s := &server{status: http.StatusOK}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%s", i+1, map[bool]string{true: "0", false: port}[i == 0]))
		require.NoError(t, err)
		s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
		_ = s.Listener.Close()
		s.Listener = listener
		s.Start()
		t.Cleanup(s.Close)
		_, port, err = net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		all = append(all, s)
	}
	return port, all
}
