package manager_test

import (
	"maps"
	"strings"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// seriesOf are the gauges of the namespace's variants that a manager serves, by
// their name and labels.
func seriesOf(t *testing.T, instance, namespace string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for series, value := range scrapeManager(t, instance) {
		counts := strings.Contains(series, "_total{") || strings.HasPrefix(series, "wva_breach_duration_seconds")
		if strings.Contains(series, `namespace="`+namespace+`"`) && !counts {
			found[series] = value
		}
	}
	return found
}

// scrapeManager are all series wva_* of a manager.
func scrapeManager(t *testing.T, instance string) map[string]float64 {
	t.Helper()
	found := prometheustest.Scrape(t, metricsOf[instance])
	maps.DeleteFunc(found, func(series string, _ float64) bool { return !strings.HasPrefix(series, "wva_") })
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
