package shadow

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// answering is a Prometheus with one value for each metric whose query has all words of its key, at
// the second of three steps.
func answering(t *testing.T, at time.Time, values map[string]float64) *prometheus.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, result := r.URL.Query().Get("query"), ""
		assert.Contains(t, query, `model_name="meta/llama",`)
		for words, value := range values {
			all := true
			for _, word := range strings.Fields(words) {
				all = all && strings.Contains(query, word)
			}
			if all {
				result = fmt.Sprintf(`{"metric":{},"values":[[%d,"%g"]]}`, at.Unix(), value)
			}
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, result)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	return prometheus.At(address)
}

func TestTheShareIsReadWhereThereIsAnSLO(t *testing.T) {
	t.Parallel()
	from := time.Unix(1_800_000_000, 0)
	object := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: "chat", Name: "a"}, Spec: v1alpha1.VariantAutoscalingSpec{ModelID: "meta/llama"}}
	all := map[string]float64{
		"wva_slo_objective_ratio": 0.99, "wva_slo_met_ratio lower": 0.97, "wva_slo_met_ratio upper": 0.98, "wva_model_requests_per_second": 4,
	}
	read := func(values map[string]float64) (samples []Sample, objective float64) {
		samples = make([]Sample, 3)
		objective, err := readMet(t.Context(), answering(t, from.Add(time.Minute), values), object, samples, from, from.Add(2*time.Minute), time.Minute)
		require.NoError(t, err)
		return samples, objective
	}
	samples, objective := read(all)
	assert.InDelta(t, 0.99, objective, 0)
	assert.Equal(t, []Sample{{}, {Met: Share{Least: 0.97, Most: 0.98}, Requests: 4, MetKnown: true}, {}}, samples)

	samples, objective = read(map[string]float64{"wva_slo_met_ratio lower": 0.97})
	assert.Zero(t, objective, "without an SLO")
	assert.Equal(t, make([]Sample, 3), samples)

	delete(all, "wva_model_requests_per_second")
	samples, _ = read(all)
	assert.False(t, samples[1].MetKnown, "a share of nobody knows how many requests weighs nothing")
}
