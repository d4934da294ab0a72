package podmetrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// once is what one scrape of a server shows of its pod.
func once(t *testing.T, handler http.Handler) (decision.Replica, error) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, now := client(t, Options{})
	c.Follow([]modelserver.Target{(&server{Server: s}).target(t, "a")})
	c.Scrape(t.Context())
	replicas, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	return replicas[pods("a")], err
}

// A server that ends while it answers may cut a number, and a connection that is closed says no
// more than that there is no more. Half of a number is another number.
func TestAPageThatIsCutIsNotRead(t *testing.T) {
	closed := func(page string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			connection, buffer, err := http.NewResponseController(w).Hijack()
			if !assert.NoError(t, err) {
				return
			}
			_, _ = fmt.Fprint(buffer, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"+page)
			_ = buffer.Flush()
			_ = connection.Close()
		}
	}
	r, err := once(t, closed("vllm:num_requests_running 120\n"))
	require.NoError(t, err)
	assert.InDelta(t, 120, r.Running.Value, 0)

	r, err = once(t, closed("vllm:num_requests_waiting 3\nvllm:num_requests_running 12"))
	require.ErrorContains(t, err, "models/a: asking http://127.0.0.1:")
	require.ErrorContains(t, err, "the page ends within a line")
	assert.Equal(t, decision.Sample{}, r.Running)

	// Where the length is known the page is whole, and some writers leave out the last line break.
	r, err = once(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "vllm:num_requests_running 120")
	}))
	require.NoError(t, err)
	assert.InDelta(t, 120, r.Running.Value, 0)
}

// Servers that mount their metrics as an application of its own send /metrics on to /metrics/, as
// older versions of vLLM do. Prometheus follows.
func TestAPageThatIsNextDoorIsRead(t *testing.T) {
	page := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics/" {
			_, _ = io.WriteString(w, "vllm:num_requests_running 120\n")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}
	for name, to := range map[string]string{"its path": "/metrics/", "its address": "http://%s/metrics/"} {
		t.Run(name, func(t *testing.T) {
			r, err := once(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					where := to
					if name == "its address" {
						where = fmt.Sprintf(to, r.Host)
					}
					http.Redirect(w, r, where, http.StatusTemporaryRedirect)
					return
				}
				page(w, r)
			}))
			require.NoError(t, err)
			assert.InDelta(t, 120, r.Running.Value, 0)
		})
	}
	_, err := once(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"/", http.StatusFound) }))
	require.ErrorContains(t, err, "302", "an endless chain ends")
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	_, err = once(t, http.RedirectHandler(other.URL+"/metrics?key=secret", http.StatusFound))
	require.ErrorContains(t, err, "302 Found: it sends to "+other.URL+"/metrics, and only another page of the same address is followed")
	assert.NotContains(t, err.Error(), "secret")
	assert.Zero(t, elsewhere)
}

// Some servers write OpenMetrics whatever they are asked for: the example of a trace behind a
// value, times in seconds, and a line that says the end.
func TestAPageOfOpenMetricsIsRead(t *testing.T) {
	r, err := once(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
		_, _ = io.WriteString(w, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="a # b"} 120.0 1772366400.123
# TYPE vllm:request_success counter
vllm:request_success_total{finished_reason="stop"} 7.0 # {trace_id="a\"b"} 1.0 1772366400.123
vllm:request_success_created{finished_reason="stop"} 1772366400.1
vllm:num_requests_waiting{model_name="a # b"} 3 1772366400123
# EOF
`)
	}))
	require.NoError(t, err)
	assert.InDelta(t, 120, r.Running.Value, 0)
	assert.InDelta(t, 3, r.Waiting.Value, 0)
}
