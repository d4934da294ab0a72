package metricrule

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

// The rules that we ship, as whoever asks sees them.
func TestTheShippedRules(t *testing.T) {
	rules, err := Read("../../../manifests/hpa/prometheus-adapter.yaml")
	require.NoError(t, err)
	require.Len(t, rules, 2)
	selector, err := labels.Parse(`variant_name=llama,controller_instance`)
	require.NoError(t, err)
	var queries []string
	for _, r := range rules {
		assert.Equal(t, "wva_desired_replicas", r.Metric())
		query, err := r.Query("models", selector)
		require.NoError(t, err)
		queries = append(queries, query)
	}
	assert.Equal(t, []string{
		`max(wva_desired_replicas{controller_instance!="",exported_namespace="models",variant_name=~"llama",namespace="workload-variant-autoscaler-system"})`,
		`max(wva_desired_replicas{controller_instance!="",namespace="models",variant_name=~"llama",exported_namespace=""})`,
	}, queries)
}

func TestRulesThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"no ConfigMap":   "a: b",
		"no rules":       "data:\n  config.yaml: |\n    externalRules: []\n",
		"an unknown key": "data:\n  config.yaml: |\n    externalRules:\n    - series: up\n",
		"no name":        "data:\n  config.yaml: |\n    externalRules:\n    - seriesQuery: '{job=\"a\"}'\n",
	} {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Read(path)
		assert.ErrorContains(t, err, path, name)
	}
	_, err := Rule{SeriesQuery: "up", MetricsQuery: "<<.Other>>"}.Query("models", labels.Everything())
	assert.ErrorContains(t, err, `fill in the metricsQuery "<<.Other>>"`)
}
