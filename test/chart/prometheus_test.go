package chart

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The files for common installations of Prometheus have its address, let it read the manager's metrics, and
// make a ServiceMonitor that it takes. The names are those of kube-prometheus (manifests/prometheus-service.yaml,
// prometheus-prometheus.yaml) and of kube-prometheus-stack (templates/prometheus/service.yaml) for a release of
// that name.
func TestCommonInstallationsOfPrometheus(t *testing.T) {
	for file, c := range map[string]struct {
		address, account, release string
		discovery                 bool
	}{
		"values-kube-prometheus.yaml":       {"http://prometheus-k8s.monitoring.svc:9090", "prometheus-k8s", "", true},
		"values-kube-prometheus-stack.yaml": {"http://kube-prometheus-stack-prometheus.monitoring.svc:9090", "kube-prometheus-stack-prometheus", "kube-prometheus-stack", false},
	} {
		t.Run(file, func(t *testing.T) {
			rendered := render(t, release{name: plainName, namespace: plainNamespace, values: valuesFile(t, filepath.Join(chartDir, file))})
			settings, _, err := unstructured.NestedStringMap(rendered.get(t, "ConfigMap", plainName+"-variantautoscaling-config").Object, "data")
			require.NoError(t, err)
			assert.Contains(t, settings["config.yaml"], `PROMETHEUS_BASE_URL: "`+c.address+`"`)
			assert.Contains(t, settings["config.yaml"], "PROMETHEUS_ALLOW_HTTP: true")
			who := []any{map[string]any{"kind": "ServiceAccount", "name": c.account, "namespace": "monitoring"}}
			assert.Equal(t, who, rendered.get(t, "ClusterRoleBinding", plainName+"-metrics-reader").Object["subjects"])
			for kind, name := range map[string]string{"ServiceMonitor": plainName + "-controller-manager-metrics", "PrometheusRule": plainName + "-alerts"} {
				assert.Equal(t, c.release, rendered.get(t, kind, name).GetLabels()["release"], kind)
			}
			if c.discovery {
				assert.Equal(t, who, rendered.get(t, "RoleBinding", plainName+"-metrics-discovery").Object["subjects"])
			}
		})
	}
}

// Without a word the manager has a ServiceMonitor where the cluster knows the kind.
func TestAServiceMonitorWhereTheKindIs(t *testing.T) {
	monitor := id{"ServiceMonitor", plainName + "-controller-manager-metrics"}
	for about, c := range map[string]struct {
		given   values
		cluster []string
		want    bool
	}{
		"the kind is there":             {nil, []string{"monitoring.coreos.com/v1/ServiceMonitor"}, true},
		"it is not":                     {nil, nil, false},
		"it is there, and nobody wants": {nested("wva.metrics.serviceMonitor.enabled", false), []string{"monitoring.coreos.com/v1/ServiceMonitor"}, false},
	} {
		t.Run(about, func(t *testing.T) {
			_, made := render(t, release{name: plainName, namespace: plainNamespace, values: c.given, cluster: c.cluster})[monitor]
			assert.Equal(t, c.want, made)
		})
	}
}
