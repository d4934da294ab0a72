package prometheustest

import (
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// Page reads a metrics page once.
func Page(t testing.TB, url string) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode, url)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return families
}

// Scrape reads a metrics page once: values by series, written as in a query. Of a
// histogram it returns the number of observations, under the name of the metric.
func Scrape(t testing.TB, url string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for name, family := range Page(t, url) {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			series := name + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetGauge() != nil:
				found[series] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				found[series] = m.GetCounter().GetValue()
			case m.GetHistogram() != nil:
				found[series] = float64(m.GetHistogram().GetSampleCount())
			default:
				found[series] = m.GetUntyped().GetValue()
			}
		}
	}
	return found
}
