package emulation_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

// asked sends a request to a handler and returns the status and the body of its answer.
func asked(t *testing.T, handler http.Handler, method, path, body string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return recorder.Code, recorder.Body.String()
}

func TestAStackAnswersThroughItsProviders(t *testing.T) {
	seen := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			return
		}
		text, _ := io.ReadAll(r.Body)
		seen <- r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(text)
		_, _ = io.WriteString(w, "answered")
	}))
	defer provider.Close()
	stack, err := emulation.NewStack([]byte(`
providers:
  inference:
  - {provider_id: big, provider_type: "remote::vllm", config: {base_url: "${env.URL}/v1", api_token: "${env.TOKEN:=none}"}}
  - {provider_id: "${env.MISSING:+off}", provider_type: "remote::ollama"}
  safety:
  - {provider_id: guard, provider_type: "inline::llama-guard"}
registered_resources:
  models:
  - {model_id: m, provider_id: big, provider_model_id: org/m}
  - {model_id: gone, provider_id: "${env.MISSING:+off}"}
`), map[string]string{"URL": provider.URL, "TOKEN": "t"})
	require.NoError(t, err)

	status, text := asked(t, stack, http.MethodGet, "/v1/providers", "")
	assert.Equal(t, http.StatusOK, status)
	var listed struct {
		Data []struct {
			ID     string `json:"provider_id"`
			Health struct{ Status string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &listed))
	require.Len(t, listed.Data, 2)
	assert.Equal(t, "OK", listed.Data[0].Health.Status)
	assert.Equal(t, "Not Implemented", listed.Data[1].Health.Status)

	for _, name := range []string{"m", "big/m"} {
		status, text = asked(t, stack, http.MethodPost, "/v1/completions", `{"model": "`+name+`", "prompt": "p"}`)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "answered", text)
		assert.Equal(t, `/v1/completions Bearer t {"model":"org/m","prompt":"p"}`, <-seen)
	}
	status, text = asked(t, stack, http.MethodPost, "/v1/completions", `{"model": "gone"}`)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, text, `the model \"gone\" is not registered here`)

	provider.Close()
	status, _ = asked(t, stack, http.MethodPost, "/v1/completions", `{"model": "m"}`)
	assert.Equal(t, http.StatusBadGateway, status)
	_, text = asked(t, stack, http.MethodGet, "/v1/providers", "")
	assert.Contains(t, text, `"Error"`)
}

func TestAStackThatCannotStart(t *testing.T) {
	for text, want := range map[string]string{
		"providers: {inference: [{provider_id: a, config: {k: '${env.KEY}'}}]}": "the variable KEY is not set",
		"registered_resources: {models: [{model_id: m, provider_id: other}]}":   `the model "m" has the provider "other", which there is not`,
		"a: [": "reading the configuration",
	} {
		_, err := emulation.NewStack([]byte(text), nil)
		assert.ErrorContains(t, err, want)
	}
}
