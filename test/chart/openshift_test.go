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

// The restricted security context constraint of OpenShift refuses a user from outside the namespace's range.
func TestTheUserOfThePods(t *testing.T) {
	for file, want := range map[string]any{"values.yaml": int64(65532), "values-openshift.yaml": nil, "values-llm-d.yaml": nil} {
		given := chartutil.MergeTables(values{"scheduler": values{"enabled": true}, "controller": values{"enabled": true}}, valuesFile(t, filepath.Join(chartDir, file)))
		rendered := render(t, release{name: plainName, namespace: plainNamespace, values: given})
		for _, name := range []string{plainName + "-controller-manager", "variant-scheduler"} {
			user, _, err := unstructured.NestedFieldNoCopy(rendered.get(t, "Deployment", name).Object, "spec", "template", "spec", "securityContext", "runAsUser")
			require.NoError(t, err)
			assert.Equal(t, want, user, "%s: %s", file, name)
		}
	}
}

// An upgrade that reuses the values of an older release gives the chart's own user.
func TestOpenShiftChoosesTheUserWhereHelmSeesIt(t *testing.T) {
	rendered := render(t, release{name: plainName, namespace: plainNamespace, cluster: []string{"security.openshift.io/v1"}})
	_, given, err := unstructured.NestedFieldNoCopy(rendered.get(t, "Deployment", plainName+"-controller-manager").Object, "spec", "template", "spec", "securityContext", "runAsUser")
	require.NoError(t, err)
	assert.False(t, given)
}

// Both programs reach DNS and the API server, and the manager what else is named.
func TestTheEgressThatIsNamed(t *testing.T) {
	rule := map[string]any{"to": []any{map[string]any{"namespaceSelector": map[string]any{}}}, "ports": []any{map[string]any{"port": int64(9090)}}}
	rendered := render(t, release{name: plainName, namespace: plainNamespace, values: values{
		"networkPolicy": values{"enabled": true, "egress": []any{rule}}, "scheduler": values{"enabled": true},
	}})
	for name, rules := range map[string]int{plainName + "-controller-manager": 2, "variant-scheduler": 1} {
		policy := rendered.get(t, "NetworkPolicy", name).Object
		types, _, err := unstructured.NestedStringSlice(policy, "spec", "policyTypes")
		require.NoError(t, err)
		assert.Equal(t, []string{"Ingress", "Egress"}, types, name)
		egress, _, err := unstructured.NestedSlice(policy, "spec", "egress")
		require.NoError(t, err)
		require.Len(t, egress, rules, name)
		assert.Equal(t, []any{
			map[string]any{"port": int64(53), "protocol": "UDP"}, map[string]any{"port": int64(53), "protocol": "TCP"},
			map[string]any{"port": int64(443), "protocol": "TCP"}, map[string]any{"port": int64(6443), "protocol": "TCP"},
		}, egress[0].(map[string]any)["ports"], name)
		if rules > 1 {
			assert.Equal(t, rule, egress[1], name)
		}
	}
}
