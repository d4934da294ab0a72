package chart

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOpenShiftTakesTheServiceMonitors: its Prometheus for user workloads refuses one that
// names a file, and takes the token of a Secret, which must be that of an account with the
// right to read.
func TestOpenShiftTakesTheServiceMonitors(t *testing.T) {
	for _, file := range []string{"values-openshift.yaml", "values-llm-d.yaml"} {
		given := valuesFile(t, filepath.Join(chartDir, file))
		given = chartutil.MergeTables(given, values{"scheduler": values{"enabled": true, "serviceMonitor": values{"enabled": true}}})
		rendered := render(t, release{name: plainName, namespace: plainNamespace, values: given})
		for monitor, role := range map[string]string{
			plainName + "-controller-manager-metrics": plainName + "-metrics-reader",
			"variant-scheduler-metrics":               "variant-scheduler-metrics-reader",
		} {
			t.Run(file+" "+monitor, func(t *testing.T) {
				endpoints, _, err := unstructured.NestedSlice(rendered.get(t, "ServiceMonitor", monitor).Object, "spec", "endpoints")
				require.NoError(t, err)
				endpoint := endpoints[0].(map[string]any)
				assert.NotContains(t, endpoint, "bearerTokenFile")
				assert.Equal(t, map[string]any{"insecureSkipVerify": true}, endpoint["tlsConfig"])
				name, _, err := unstructured.NestedString(endpoint, "authorization", "credentials", "name")
				require.NoError(t, err)
				secret := rendered.get(t, "Secret", name)
				assert.Equal(t, "kubernetes.io/service-account-token", secret.Object["type"])
				account := rendered.get(t, "ServiceAccount", secret.GetAnnotations()["kubernetes.io/service-account.name"])
				assert.Contains(t, rendered.get(t, "ClusterRoleBinding", role).Object["subjects"],
					map[string]any{"kind": "ServiceAccount", "name": account.GetName(), "namespace": plainNamespace})
			})
		}
	}
}
