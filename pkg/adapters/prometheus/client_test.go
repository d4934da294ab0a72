package prometheus

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

func options(address string) Options {
	return Options{Address: address, Timeout: 10 * time.Second}
}

func TestAddressesThatAreRefused(t *testing.T) {
	cases := []struct {
		name, address string
		allowHTTP     bool
		want          string
	}{
		{"none", "", false, "is empty"},
		{"no TLS", "http://prometheus:9090", false, "PROMETHEUS_ALLOW_HTTP=true"},
		{"no scheme", "prometheus:9090", true, "names no host"},
		{"no host", "https://", true, "names no host"},
		{"a port without a host", "https://:9090", true, "names no host"},
		{"another scheme", "ftp://prometheus:9090", true, "must begin with https://"},
		{"no URL, with a password", "https://user:secret@prom etheus", false, "is not a URL"},
		{"a password", "https://user:secret@prometheus", false, "holds credentials"},
		{"a password and no TLS", "http://user:secret@prometheus", false, "holds credentials"},
		{"a password and no host", "https://user:secret@", false, "holds credentials"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := options(c.address)
			o.AllowHTTP = c.allowHTTP
			_, err := New(o)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

// A proxy may want its key in the query of the address. Errors stand in the status of objects,
// which others read.
func TestWhatAnAddressAsksIsNotTold(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	o := options(server.URL + "/prometheus?key=secret")
	o.AllowHTTP = true
	client, err := New(o)
	require.NoError(t, err)
	_, _, err = client.Read(t.Context(), start, window, lookback)
	require.ErrorContains(t, err, "prometheus "+server.URL+"/prometheus: query for the "+kvUse)
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "secret")
	_, err = client.Earlier(t.Context(), start)
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "secret")
	o.AllowHTTP = false
	_, err = New(o)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
}

func TestTheCertificateIsChecked(t *testing.T) {
	p := prometheustest.New(t)
	server := httptest.NewTLSServer(p.Handler)
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil

	client, err := New(options(server.URL))
	require.NoError(t, err)
	_, _, err = client.Read(t.Context(), start, window, lookback)
	require.ErrorContains(t, err, "certificate")
	assert.ErrorContains(t, err, server.URL, "the address is named")
	assert.ErrorContains(t, err, kvUse, "the query is named")

	o := options(server.URL)
	o.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(o.CAFile, certificate, 0o600))
	client, err = New(o)
	require.NoError(t, err)
	_, _, err = client.Read(t.Context(), start, window, lookback)
	require.NoError(t, err)
}

func TestARotatedTokenIsUsedAtOnce(t *testing.T) {
	var mutex sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		seen = append(seen, r.Header.Get("Authorization"))
		mutex.Unlock()
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	o := options(server.URL)
	o.AllowHTTP = true
	o.TokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(o.TokenFile, []byte("first-secret\n"), 0o600))
	client, err := New(o)
	require.NoError(t, err)

	for _, token := range []string{"first-secret", "second-secret"} {
		require.NoError(t, os.WriteFile(o.TokenFile, []byte(token+"\n"), 0o600))
		seen = nil
		_, _, err = client.Read(t.Context(), start, window, lookback)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), token)
		assert.Contains(t, err.Error(), server.URL)
		for _, header := range seen {
			assert.Equal(t, "Bearer "+token, header)
		}
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	var followed atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	o := options(server.URL)
	o.AllowHTTP = true
	o.TokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(o.TokenFile, []byte("secret"), 0o600))
	client, err := New(o)
	require.NoError(t, err)
	_, _, err = client.Read(t.Context(), start, window, lookback)
	require.ErrorContains(t, err, "307")
	assert.Zero(t, followed.Load())
}

func TestOneFailingQueryLeavesTheRest(t *testing.T) {
	p := prometheustest.New(t)
	for _, at := range scrapes(5) {
		p.Append(at, load(engine("a", "0"), at.Sub(start)))
	}
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "request_success_total") {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		p.Handler.ServeHTTP(w, r)
	}))
	replicas, _, err := client.Read(t.Context(), start.Add(time.Minute), window, lookback)
	require.ErrorContains(t, err, served)
	assert.NotContains(t, err.Error(), "waiting")
	require.Contains(t, replicas, pod("a"))
	assert.True(t, replicas[pod("a")].KVUse.Present)
	assert.False(t, replicas[pod("a")].Served.Present)
}

func TestASlowServerIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	o := options(server.URL)
	o.AllowHTTP = true
	o.Timeout = 50 * time.Millisecond
	client, err := New(o)
	require.NoError(t, err)
	replicas, models, err := client.Read(t.Context(), start, window, lookback)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, replicas)
	assert.Empty(t, models)
}

// Thanos and Mimir answer with what they have while a store is away. The load of half of the
// gateways would remove replicas.
func TestAPartOfAnAnswerIsAnError(t *testing.T) {
	p := prometheustest.New(t)
	for _, at := range scrapes(5) {
		p.Append(at, load(engine("a", "0"), at.Sub(start)))
	}
	var warning string
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		p.Handler.ServeHTTP(answer, r)
		_, _ = w.Write(bytes.Replace(answer.Body.Bytes(), []byte(`{"status":"success",`), fmt.Appendf(nil, `{"status":"success","warnings":[%q],`, warning), 1))
	}))
	at := start.Add(time.Minute)
	warning = "PromQL info: metric might not be a counter"
	replicas, _ := read(t, client, at)
	assert.True(t, replicas[pod("a")].KVUse.Present, "that is about the query")

	warning = "receive series from store-b: context deadline exceeded"
	replicas, _, err := client.Read(t.Context(), at, window, lookback)
	require.ErrorContains(t, err, "query for the "+kvUse+": the answer is only a part: "+warning)
	assert.Empty(t, replicas)
	_, err = client.Range(t.Context(), running, StepsOf(scrapeInterval, "llama", "").Over("avg_over_time", modelserver.Running, ""), v1.Range{Start: start, End: at, Step: scrapeInterval})
	assert.ErrorContains(t, err, "the answer is only a part")
}

// VictoriaMetrics says in a field of its own that a store did not answer.
func TestAPartWithoutAWarningIsAnErrorToo(t *testing.T) {
	p := prometheustest.New(t)
	for _, at := range scrapes(5) {
		p.Append(at, load(engine("a", "0"), at.Sub(start)))
	}
	var partial bool
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		p.Handler.ServeHTTP(answer, r)
		_, _ = w.Write(bytes.Replace(answer.Body.Bytes(), []byte(`{"status":"success",`), fmt.Appendf(nil, `{"status":"success","isPartial":%t,`, partial), 1))
	}))
	at := start.Add(time.Minute)
	replicas, _ := read(t, client, at)
	assert.True(t, replicas[pod("a")].KVUse.Present)

	partial = true
	replicas, _, err := client.Read(t.Context(), at, window, lookback)
	require.ErrorContains(t, err, "query for the "+kvUse+": the answer is only a part: ")
	assert.Empty(t, replicas)
	_, err = client.Earlier(t.Context(), at)
	assert.ErrorContains(t, err, "the answer is only a part")
}

func TestAnswersThatAreNone(t *testing.T) {
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, c := range map[string]struct {
		answer http.Handler
		want   string
	}{
		"another program":  {says(http.StatusOK, "<!doctype html><title>Grafana</title>"), ": the answer is not one of Prometheus: its address may lead to another program, or to a page to log in; it says: Grafana"},
		"half of it":       {says(http.StatusOK, `{"status":"success","data":{"resultType":"vec`), ": the answer is not one of Prometheus"},
		"nothing in it":    {says(http.StatusOK, `{"status":"success"}`), ": the answer is not one of Prometheus"},
		"another path":     {says(http.StatusNotFound, "404 page not found"), ": HTTP status 404 Not Found: its address must be the part before /api/v1; it says: 404 page not found"},
		"no token":         {says(http.StatusUnauthorized, "no org id"), ": HTTP status 401 Unauthorized: look at the login and what it permits; it says: no org id"},
		"a token too weak": {says(http.StatusForbidden, `{"message":"not of this tenant"}`), ": HTTP status 403 Forbidden: look at the login and what it permits; it says: not of this tenant"},
		"too often":        {says(http.StatusTooManyRequests, "slow\ndown"), ": HTTP status 429 Too Many Requests; it says: slow down"},
		"no words":         {says(http.StatusBadGateway, ""), ": HTTP status 502 Bad Gateway"},
		"too long for it":  {says(http.StatusServiceUnavailable, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`), ": HTTP status 503 Service Unavailable; it says: query timed out in expression evaluation"},
		"a bad query":      {says(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"unknown\u001b position"}`), `: bad_data: unknown\x1b position`},
		"a bad page":       {says(http.StatusBadRequest, "<h1>Bad tenant</h1>"), ": HTTP status 400 Bad Request; it says: Bad tenant"},
		"another method":   {says(http.StatusMethodNotAllowed, "only POST"), ": HTTP status 405 Method Not Allowed; it says: only POST"},
		"a login":          {http.RedirectHandler("https://login.example/?key=secret", http.StatusFound), ": HTTP status 302 Found: a redirect is not followed, because it could carry the login elsewhere; give the address where it leads"},
		"no sample":        {says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[null]}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, c.answer)
			queues, err := client.Queues(t.Context(), start)
			assert.Empty(t, queues)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "query for the "+gatewayQueue+c.want)
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// The error is kept in a condition, which must not change in each round.
func TestABrokenConnectionHasTheSameErrorEachTime(t *testing.T) {
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) && assert.NoError(t, connection.(*net.TCPConn).SetLinger(0)) {
			assert.NoError(t, connection.Close())
		}
	}))
	_, _, first := client.Read(t.Context(), start, window, lookback)
	_, _, second := client.Read(t.Context(), start, window, lookback)
	require.ErrorContains(t, first, "connection reset by peer")
	assert.EqualError(t, second, first.Error())
}
