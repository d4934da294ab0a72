package live

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// count is a source that says how often it was asked.
func count() (source Source, asked *int) {
	asked = new(int)
	return func() report.Feed {
		*asked++
		return report.DemoFeed(report.Observation{}, fmt.Sprintf("state %d", *asked), false)
	}, asked
}

func ask(h http.Handler, method, target, host string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestThePageAndItsState(t *testing.T) {
	source, _ := count()
	h := NewHandler(time.Hour, source)
	page := ask(h, "GET", "/", "127.0.0.1:1234")
	assert.Equal(t, http.StatusOK, page.Code)
	assert.Contains(t, page.Body.String(), "state 1")
	policy := page.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'"} {
		assert.Contains(t, policy, part)
	}
	assert.NotContains(t, policy, "script-src 'unsafe-inline'")

	state := ask(h, "GET", "/state.json", "localhost:1234")
	assert.Equal(t, "application/json", state.Header().Get("Content-Type"))
	assert.Contains(t, state.Body.String(), `"state":"state 1"`, "the same state within the interval")
	for _, w := range []*httptest.ResponseRecorder{page, state} {
		assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		assert.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
	}
}

func TestAStateThatIsKnownIsNotSentAgain(t *testing.T) {
	source, asked := count()
	h := &handler{every: time.Second, source: source}
	now := time.Unix(0, 0)
	h.now = func() time.Time { return now }
	mux := http.HandlerFunc(h.data)
	first := ask(mux, "GET", "/state.json", "localhost")
	tag := first.Header().Get("ETag")
	require.NotEmpty(t, tag)
	again := ask(mux, "GET", "/state.json", "localhost", "If-None-Match", tag)
	assert.Equal(t, http.StatusNotModified, again.Code)
	assert.Empty(t, again.Body.String())
	assert.Equal(t, 1, *asked, "two looks, one state")
	now = now.Add(time.Second)
	next := ask(mux, "GET", "/state.json", "localhost", "If-None-Match", tag)
	assert.Equal(t, http.StatusOK, next.Code)
	assert.NotEqual(t, tag, next.Header().Get("ETag"))
}

func TestOnlyLoopbackHostsAreAnswered(t *testing.T) {
	source, asked := count()
	h := NewHandler(0, source)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1": 200, "127.0.0.1:9": 200, "127.3.2.1:9": 200, "[::1]:9": 200, "[::1]": 200, "[::ffff:127.0.0.1]:9": 200,
		"": 421, "example.com": 421, "example.com:9": 421, "10.0.0.1:9": 421, "localhost.example.com": 421, "127.0.0.1.example.com:9": 421, "0.0.0.0:9": 421, "[::]:9": 421,
	} {
		before := *asked
		w := ask(h, "GET", "/state.json", host)
		assert.Equal(t, want, w.Code, host)
		assert.Equal(t, want == 200, *asked > before, "nothing is read for %q", host)
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	source, _ := count()
	h := NewHandler(time.Hour, source)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"} {
		for _, path := range []string{"/", "/state.json"} {
			assert.Equal(t, http.StatusMethodNotAllowed, ask(h, method, path, "localhost").Code, method)
		}
	}
	assert.Equal(t, http.StatusOK, ask(h, "HEAD", "/", "localhost").Code)
	assert.Equal(t, http.StatusNotFound, ask(h, "GET", "/other", "localhost").Code)
}

func TestItListensOnLoopbackUntilItIsClosed(t *testing.T) {
	source, _ := count()
	s, err := Listen(t.Context(), 0, time.Hour, source)
	require.NoError(t, err)
	assert.Regexp(t, `^http://127\.0\.0\.1:[1-9]\d*/$`, s.URL())
	get := func() (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), http.NoBody)
		require.NoError(t, err)
		return http.DefaultClient.Do(request)
	}
	answer, err := get()
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, string(body), "state 1")

	port := strings.Split(strings.Trim(s.URL(), "/"), ":")[2]
	var number int
	_, err = fmt.Sscan(port, &number)
	require.NoError(t, err)
	_, err = Listen(t.Context(), number, time.Hour, source)
	assert.ErrorContains(t, err, "127.0.0.1:"+port, "a port that is taken")

	require.NoError(t, s.Close())
	require.NoError(t, <-s.Failed())
	if answer, err = get(); err == nil {
		require.NoError(t, answer.Body.Close())
	}
	require.Error(t, err)
}
