package adopt

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
)

func TestWhetherPrometheusScrapesTheManager(t *testing.T) {
	t.Parallel()
	const answer = `{"status":"success","data":{"resultType":"vector","result":`
	for name, c := range map[string]struct{ answer, says string }{
		"it does":             {answer + `[{"metric":{},"value":[1800000000,"1800000000"]}]}}`, ""},
		"it does not":         {answer + `[]}}`, "Prometheus has no metrics of the manager, so `kubectl wva shadow` will have nothing to compare"},
		"it cannot be asked":  {`{"status":"error","error":"unauthorized"}`, "whether Prometheus scrapes the manager cannot be seen"},
		"it is no Prometheus": {`hello`, "it answered 200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, ofManager, r.URL.Query().Get("query"))
				_, _ = w.Write([]byte(c.answer))
			}))
			t.Cleanup(server.Close)
			address, err := url.Parse(server.URL)
			require.NoError(t, err)
			said := seriesOf(t.Context(), prometheus.At(address))
			if c.says == "" {
				assert.Empty(t, said)
			}
			assert.Contains(t, said, c.says)
		})
	}
}
