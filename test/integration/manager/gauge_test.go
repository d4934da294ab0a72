package manager_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// seriesOf are the gauges of the namespace's variants that a manager serves, by
// their name and labels.
func seriesOf(t *testing.T, instance, namespace string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for series, value := range scrapeManager(t, instance) {
		if strings.Contains(series, `namespace="`+namespace+`"`) && !strings.HasPrefix(series, "wva_replica_scaling_total") {
			found[series] = value
		}
	}
	return found
}

// scrapeManager are all series wva_* of a manager.
func scrapeManager(t *testing.T, instance string) map[string]float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metricsOf[instance], nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	found := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			series := name + "{" + strings.Join(labels, ",") + "}"
			switch {
			case !strings.HasPrefix(name, "wva_"):
			case m.GetGauge() != nil:
				found[series] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				found[series] = m.GetCounter().GetValue()
			case m.GetHistogram() != nil:
				found[series] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return found
}

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
