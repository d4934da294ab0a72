package llamaserver_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	got, err := llamaserver.Client{}.Providers(t.Context(), url)
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
	got, err := llamaserver.Client{}.Providers(t.Context(), url)
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
	_, first := llamaserver.Client{}.Version(t.Context(), s.URL)
	_, second := llamaserver.Client{}.Version(t.Context(), s.URL)
	require.ErrorContains(t, first, "connection reset by peer")
	assert.EqualError(t, second, first.Error())
}

func TestVersion(t *testing.T) {
	got, err := llamaserver.Client{}.Version(t.Context(), server(t, http.StatusOK, `{"version": "0.5.0"}`))
	require.NoError(t, err)
	assert.Equal(t, "0.5.0", got)
}

func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		url, want string
	}{
		"an error":     {server(t, http.StatusServiceUnavailable, "no"), "503 Service Unavailable"},
		"another form": {server(t, http.StatusOK, "<html>"), "the answer cannot be read"},
		"nobody":       {"http://127.0.0.1:1", "asking http://127.0.0.1:1/v1/version"},
		"no address":   {"http://%zz", "asking"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := llamaserver.Client{}.Version(t.Context(), c.url)
			assert.ErrorContains(t, err, c.want)
		})
	}
}
