package llamaserver_test

import (
	"io"
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
