package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// scraped is a Prometheus that has scraped a server of vLLM by two jobs, one of SGLang and a
// gateway every 15 seconds for five minutes. It counts the queries.
type scraped struct {
	*prometheus.Server
	mu     sync.Mutex
	ranges []time.Duration
}

func (s *scraped) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (model.Matrix, error) {
	s.mu.Lock()
	s.ranges = append(s.ranges, to.Sub(from))
	s.mu.Unlock()
	return s.Server.Range(ctx, query, from, to, step)
}

// The samples are those of now, since a look at what is now names no time.
func newScraped(t *testing.T) (s *scraped, at func(seconds int) time.Time) {
	t.Helper()
	begin := time.Now().Add(-4 * time.Minute).Truncate(15 * time.Second)
	at = func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	p := prometheustest.New(t)
	for second := 0; second <= 300; second += 15 {
		values := map[string]float64{
			`sglang:num_requests_total{namespace="chat",pod="s",instance="s:1",model_name="qwen"}`:                     2 * float64(second),
			`inference_extension_flow_control_queue_size{pod="gateway",instance="g:1",target_model_name="meta/llama"}`: 4,
			`vllm:request_success_total{namespace="other",pod="o",instance="o:1",model_name="meta/llama"}`:             float64(second),
			`vllm:num_requests_waiting{namespace="chat",pod="x",instance="x:1",engine="0",model_name="meta/llama"}`:    float64(second) / 30,
			`vllm:num_requests_waiting{namespace="chat",pod="x",instance="x:1",engine="1",model_name="meta/llama"}`:    1,
			`vllm:kv_cache_usage_perc{namespace="chat",pod="x",instance="x:1",engine="0",model_name="meta/llama"}`:     0.5,
			`vllm:kv_cache_usage_perc{namespace="chat",pod="x",instance="x:1",engine="1",model_name="meta/llama"}`:     0.75,
			`vllm:time_to_first_token_seconds_bucket{namespace="chat",pod="x",le="0.1",model_name="meta/llama"}`:       0,
			`vllm:time_to_first_token_seconds_bucket{namespace="chat",pod="x",le="0.2",model_name="meta/llama"}`:       4 * float64(second),
			`vllm:time_to_first_token_seconds_bucket{namespace="chat",pod="x",le="+Inf",model_name="meta/llama"}`:      4 * float64(second),
		}
		for _, job := range []string{"a", "b"} {
			values[fmt.Sprintf(`vllm:request_success_total{namespace="chat",pod="x",instance="x:1",job=%q,finished_reason="stop",model_name="meta/llama"}`, job)] = 4 * float64(second)
		}
		p.Append(at(second), values)
	}
	server := httptest.NewServer(p.Handler)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	return &scraped{Server: prometheus.At(address)}, at
}

func TestLoadsAreThoseThatPrometheusKnows(t *testing.T) {
	from, at := newScraped(t)
	q := questions{namespace: "chat", window: time.Minute}
	l, err := newLoads(at(0), 15*time.Second).read(t.Context(), from, q, at(152))
	require.NoError(t, err)
	assert.Equal(t, 10, l.complete)
	llama := l.of(modelKey{"chat", "meta/llama"})
	require.Len(t, llama, 10)
	last := llama[9]
	assert.InDelta(t, 4+1.0/30, *last.Rate, 1e-6, "what was completed, once for two jobs, and the growth of the queue")
	assert.InDelta(t, 195, *last.TTFT, 1e-6, "the 95th percentile of a bucket from 100 to 200 ms")
	assert.Nil(t, last.ITL, "unknown is not zero")
	assert.InDelta(t, 2, *l.of(modelKey{"chat", "qwen"})[9].Rate, 1e-6, "a server of another kind, without gauges")
	assert.Len(t, l.points, 2, "of the namespace alone")
	pod := types.NamespacedName{Namespace: "chat", Name: "x"}
	assert.Equal(t, 0.75, l.kvUse[pod], "as full as its fullest engine")
	waiting, known := l.gatewayOf(modelKey{"chat", "meta/llama"})
	assert.True(t, known)
	assert.Equal(t, 4.0, waiting)
	for _, p := range l.of(modelKey{"chat", "nobody's"}) {
		assert.Nil(t, p.Rate)
	}
}

func TestLoadsAreAskedForOnce(t *testing.T) {
	from, at := newScraped(t)
	q := questions{window: time.Minute}
	first, err := newLoads(at(0), 15*time.Second).read(t.Context(), from, q, at(150))
	require.NoError(t, err)
	from.ranges = nil
	next, err := first.read(t.Context(), from, q, at(181))
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{15 * time.Second, 15 * time.Second, 15 * time.Second}, from.ranges, "two new points")
	assert.Equal(t, 12, next.complete)
	assert.Equal(t, 10, first.complete, "what was read before is as it was")
	whole, err := newLoads(at(0), 15*time.Second).read(t.Context(), from, q, at(181))
	require.NoError(t, err)
	assert.Equal(t, whole.points, next.points)
	assert.Contains(t, next.points, modelKey{"other", "meta/llama"})
	from.ranges = nil
	_, err = next.read(t.Context(), from, q, at(185))
	require.NoError(t, err)
	assert.Empty(t, from.ranges, "no new point")

	later := next.from(at(90))
	assert.Equal(t, at(90), later.start)
	assert.Equal(t, next.of(modelKey{"chat", "meta/llama"})[6:], later.of(modelKey{"chat", "meta/llama"}))
}

// silent is a Prometheus that does not answer.
type silent struct{}

func (silent) Now(context.Context, string) (model.Vector, error) {
	return nil, errors.New("no answer")
}

func (silent) Range(context.Context, string, time.Time, time.Time, time.Duration) (model.Matrix, error) {
	return nil, errors.New("no answer")
}

func TestAPrometheusThatDoesNotAnswerIsSaid(t *testing.T) {
	v := small(t)
	f := &follower{prometheus: silent{}, history: v.history, around: v.around, loads: v.loads, namespace: "chat", window: time.Hour}
	f.ask(t.Context(), after(100))
	assert.Equal(t, "load and latencies are not known: no answer", f.failed)
	assert.Equal(t, v.loads, f.loads, "what was known stays")
}
