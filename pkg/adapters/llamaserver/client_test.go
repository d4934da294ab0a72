package llamaserver_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/llamaserver"
)

// server answers every path with a status and a text.
func server(t *testing.T, status int, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestProviders(t *testing.T) {
	url := server(t, http.StatusOK, `{"data": [
		{"api": "inference", "provider_id": "v", "provider_type": "remote::vllm", "config": {"base_url": "u", "api_token": "hush", "tls": {"client_key": "hush"}, "max_tokens": 5}, "health": {"status": "OK", "message": ""}},
		{"api": "safety", "provider_id": "g", "provider_type": "inline::x", "config": null, "health": {"status": "Not Implemented", "message": "m"}}]}`)
	got, err := llamaserver.New("").Providers(t.Context(), url)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.JSONEq(t, `{"base_url": "u", "api_token": "********", "tls": {"client_key": "********"}, "max_tokens": 5}`, string(got[0].Config.Raw))
	assert.Equal(t, "OK", got[0].Health.Status)
	assert.JSONEq(t, `{}`, string(got[1].Config.Raw))
}

// A server turns a secret of digits into a number, and a list may have secrets in it.
func TestSecretsOfOtherForms(t *testing.T) {
	url := server(t, http.StatusOK, `{"data": [{"config": {
		"api_token": 12345678, "max_tokens": 5, "password": null, "api_key": "",
		"servers": [{"url": "u", "secret": "hush"}, [{"key": 1}], "plain"],
		"keys": ["hush"], "tokenizer": {"name": "t"},
		"db": "postgresql://llama:hush@pg.db.svc/stack", "base_url": "http://llama@h/v1"}}]}`)
	got, err := llamaserver.New("").Providers(t.Context(), url)
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"api_token": "********", "max_tokens": 5, "password": null, "api_key": "",
		"servers": [{"url": "u", "secret": "********"}, [{"key": "********"}], "plain"],
		"keys": ["********"], "tokenizer": {"name": "t"},
		"db": "postgresql://llama:********@pg.db.svc/stack", "base_url": "http://llama@h/v1"}`, string(got[0].Config.Raw))
}

// The error is kept in a status, which must not change each time somebody asks.
func TestABrokenConnectionHasTheSameErrorEachTime(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) && assert.NoError(t, connection.(*net.TCPConn).SetLinger(0)) {
			assert.NoError(t, connection.Close())
		}
	}))
	t.Cleanup(s.Close)
	_, first := llamaserver.New("").Version(t.Context(), s.URL)
	_, second := llamaserver.New("").Version(t.Context(), s.URL)
	require.ErrorContains(t, first, "the connection was broken off")
	assert.EqualError(t, second, first.Error())
}

func TestVersion(t *testing.T) {
	got, err := llamaserver.New("").Version(t.Context(), server(t, http.StatusOK, `{"version": "0.5.0"}`))
	require.NoError(t, err)
	assert.Equal(t, "0.5.0", got)
}

func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		url, want string
	}{
		"an error":     {server(t, http.StatusServiceUnavailable, "no"), "the server answers with the status 503"},
		"another form": {server(t, http.StatusOK, "<html>"), "the answer cannot be read"},
		"nobody":       {"http://127.0.0.1:1", "asking http://127.0.0.1:1/v1/version: the connection is refused"},
		"no address":   {"http://%zz", "asking http://%zz/v1/version: it is no URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := llamaserver.New("").Version(t.Context(), c.url)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// A server that a tenant runs would have the operator ask whom it likes, and read the answer in
// the status of an object.
func TestAServerChoosesNobodyElse(t *testing.T) {
	var asked atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"version": "hush", "data": [{"api": "hush"}]}`)
	}))
	t.Cleanup(inner.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner.URL+r.URL.Path, code) }))
		t.Cleanup(outer.Close)
		_, err := llamaserver.New("").Version(t.Context(), outer.URL)
		require.ErrorContains(t, err, "the server redirects with the status")
		assert.NotContains(t, err.Error(), inner.URL)
		_, err = llamaserver.New("").Providers(t.Context(), outer.URL)
		require.Error(t, err)
	}
	assert.Zero(t, asked.Load())
}

// net/http reads the environment once for all, and never asks a proxy for a server of this
// machine: the URL has another host, and the address stands for it.
func TestNoProxyIsAsked(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { assert.Fail(t, "the proxy was asked") }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	address := strings.TrimPrefix(server(t, http.StatusOK, `{"version": "1"}`), "http://")
	got, err := llamaserver.New(address).Version(t.Context(), "http://demo-service.ns.svc.cluster.local:8321")
	require.NoError(t, err)
	assert.Equal(t, "1", got)
}

// Nothing that a server writes is in an error, which goes into a status.
func TestErrorsQuoteNoAnswer(t *testing.T) {
	raw := func(answer string) string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = connection.Read(make([]byte, 4096))
				_, _ = io.WriteString(connection, answer)
				_ = connection.Close()
			}
		}()
		return "http://" + listener.Addr().String()
	}
	for name, url := range map[string]string{
		"another status":             server(t, http.StatusUnauthorized, "hush"),
		"a reason of its own":        raw("HTTP/1.1 500 hush\r\nContent-Length: 4\r\n\r\nhush"),
		"another protocol":           raw("SSH-2.0-hush\r\n"),
		"a header that is none":      raw("HTTP/1.1 200 OK\r\nhush\r\n\r\n"),
		"a length that is none":      raw("HTTP/1.1 200 OK\r\nContent-Length: hush\r\n\r\n"),
		"a body that ends too soon":  raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhush"),
		"no JSON":                    server(t, http.StatusOK, "hush"),
		"JSON of another form":       server(t, http.StatusOK, `{"version": {"hush": 1}}`),
		"more than anybody reads":    server(t, http.StatusOK, `{"version": "hush`+strings.Repeat("x", 1<<20)+`"}`),
		"a header that does not end": raw("HTTP/1.1 200 OK\r\nA: hush" + strings.Repeat("x", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := llamaserver.New("").Version(t.Context(), url)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hush")
			assert.Less(t, len(err.Error()), 200)
		})
	}
}
