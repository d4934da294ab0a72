package chart

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestToggles says which objects a value adds to a plain release, and which it takes
// away.
func TestToggles(t *testing.T) {
	const (
		metrics = plainName + "-controller-manager-metrics"
		kind    = "CustomResourceDefinition variantautoscalings.llmd.ai"
	)
	served := []string{
		"Role " + plainName + "-webhook-cert", "RoleBinding " + plainName + "-webhook-cert",
		"Secret " + plainName + "-webhook-cert", "Service " + plainName + "-webhook",
	}
	for name, toggle := range map[string]struct {
		values      values
		more, fewer []string
	}{
		"nothing": {},
		"no metrics": {
			values: nested("wva.metrics.enabled", false),
			fewer:  []string{"Service " + metrics},
		},
		"plain metrics need no rights to check readers": {
			values: nested("wva.metrics.secure", false),
			fewer: []string{
				"ClusterRole " + plainName + "-metrics-auth",
				"ClusterRole " + plainName + "-metrics-reader",
				"ClusterRoleBinding " + plainName + "-metrics-auth",
			},
		},
		"victims are left to Kubernetes": {
			values: nested("wva.chooseVictims", false),
			fewer:  []string{"ClusterRole " + plainName + "-victims", "ClusterRoleBinding " + plainName + "-victims", "ValidatingAdmissionPolicy " + plainName + "-victims", "ValidatingAdmissionPolicyBinding " + plainName + "-victims"},
		},
		"namespaces with a say of their own": {
			values: nested("wva.namespaceConfig", true),
			more:   []string{"ClusterRole " + plainName + "-namespace-config", "ClusterRoleBinding " + plainName + "-namespace-config"},
		},
		"no manager": {
			values: nested("wva.enabled", false),
			fewer:  slices.DeleteFunc(render(t, plain).ids(), func(s string) bool { return isOfTheScheduler(s) || s == kind }),
		},
		"no programs": {
			values: nested("controller.enabled", false),
			fewer:  slices.DeleteFunc(render(t, plain).ids(), func(s string) bool { return s == kind }),
		},
		"a kind that another release keeps": {
			values: nested("crd.install", false),
			fewer:  []string{kind},
		},
		"one of each": {
			values: values{"wva": values{"replicas": 1}, "scheduler": values{"replicas": 1}},
			fewer:  []string{"PodDisruptionBudget " + plainName + "-controller-manager", "PodDisruptionBudget variant-scheduler"},
		},
		"a priority that every namespace admits": {
			values: nested("scheduler.priorityClassName", "gpu-system"),
			fewer:  []string{"ResourceQuota variant-scheduler"},
		},
		"a ServiceMonitor of the scheduler": {
			values: nested("scheduler.serviceMonitor.enabled", true),
			more:   []string{"Service variant-scheduler-metrics", "ServiceMonitor variant-scheduler-metrics"},
		},
		"alerts": {
			values: nested("alerts.enabled", true),
			more:   []string{"PrometheusRule " + plainName + "-alerts"},
		},
		"a dashboard": {
			values: nested("dashboards.enabled", true),
			more:   []string{"ConfigMap " + plainName + "-dashboard"},
		},
		"network policies": {
			values: nested("networkPolicy.enabled", true),
			more:   []string{"NetworkPolicy " + plainName + "-controller-manager", "NetworkPolicy variant-scheduler"},
		},
		"no scheduler": {
			values: nested("scheduler.enabled", false),
			fewer:  slices.DeleteFunc(render(t, plain).ids(), func(s string) bool { return !isOfTheScheduler(s) }),
		},
		"gang scheduling": {
			values: nested("scheduler.gangScheduling", true),
			more:   []string{"ClusterRole variant-scheduler-gang", "ClusterRoleBinding variant-scheduler-gang"},
		},
		"Llama Stack servers": {
			values: nested("llamastack.enabled", true),
			more:   slices.Concat(readManifests(t, "llamastack").ids(), served),
		},
		"objects are checked": {
			values: nested("webhooks.validateVariants.enabled", true),
			more: append([]string{
				"ClusterRole " + plainName + "-webhook-cert-variants", "ClusterRoleBinding " + plainName + "-webhook-cert-variants",
				"ValidatingWebhookConfiguration " + plainName + "-variants",
			}, served...),
		},
		"pods are placed": {
			values: nested("webhooks.placePods.enabled", true),
			more: append([]string{
				"ClusterRole " + plainName + "-webhook-cert-pods", "ClusterRoleBinding " + plainName + "-webhook-cert-pods",
				"ClusterRole " + plainName + "-webhook-pods", "ClusterRoleBinding " + plainName + "-webhook-pods",
				"MutatingWebhookConfiguration " + plainName + "-pods",
			}, served...),
		},
		"a certificate of one's own needs no rights": {
			values: ownCertificate,
			more:   []string{"Service " + plainName + "-webhook", "ValidatingWebhookConfiguration " + plainName + "-variants"},
		},
		"a ServiceMonitor": {
			values: nested("wva.metrics.serviceMonitor.enabled", true),
			more:   []string{"ServiceMonitor " + metrics},
		},
		"a Prometheus that may read": {
			values: nested("wva.prometheus", values{"serviceAccountName": "prometheus", "monitoringNamespace": "monitoring"}),
			more:   []string{"ClusterRoleBinding " + plainName + "-metrics-reader"},
		},
		"a Prometheus that may look into few namespaces": {
			values: nested("wva.prometheus", values{"serviceAccountName": "prometheus", "monitoringNamespace": "monitoring", "discovery": true}),
			more:   []string{"ClusterRoleBinding " + plainName + "-metrics-reader", "Role " + plainName + "-metrics-discovery", "RoleBinding " + plainName + "-metrics-discovery"},
		},
		"an authority of Prometheus": {
			values: nested("wva.prometheus.caCert", "-----BEGIN CERTIFICATE-----"),
			more:   []string{"ConfigMap " + plainName + "-prometheus-ca"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := render(t, plain).ids()
			after := render(t, release{name: plainName, namespace: plainNamespace, values: withScheduler(toggle.values)}).ids()
			assert.ElementsMatch(t, toggle.more, without(after, before), "more objects")
			assert.ElementsMatch(t, toggle.fewer, without(before, after), "fewer objects")
		})
	}
}

func isOfTheScheduler(s string) bool { return strings.Contains(s, " variant-scheduler") }

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func TestTheManagerIsRestartedForWhatItDoesNotFollow(t *testing.T) {
	template := func(v values) map[string]any {
		manager := render(t, release{name: plainName, namespace: plainNamespace, values: v}).get(t, "Deployment", plainName+"-controller-manager")
		pod, _, err := unstructured.NestedMap(manager.Object, "spec", "template")
		require.NoError(t, err)
		return pod
	}
	assert.NotEqual(t, template(nil), template(nested("wva.prometheus.baseURL", "https://thanos:9091")), "the address of Prometheus is read once")
	assert.NotEqual(t, template(nil), template(nested("wva.metricsSource", "pods")), "the source of samples is chosen once")
	for mode, other := range map[string]bool{"wva.limitedMode": true, "wva.scaleToZero": true, "wva.proactiveModel": false} {
		assert.NotEqual(t, template(nil), template(nested(mode, other)), "%s is read once", mode)
	}
	assert.Equal(t, template(nil), template(nested("wva.reconcileInterval", "15s")), "the interval is followed")
	assert.Equal(t, template(nil), template(nested("wva.capacityScaling.default.kvCacheThreshold", 0.9)), "thresholds are followed")
}

// TestEveryObjectHasTheCommonLabels, and every pod, while what selects pods has not.
func TestEveryObjectHasTheCommonLabels(t *testing.T) {
	given := valuesFile(t, filepath.Join(chartDir, "values-production.yaml"))
	given = chartutil.MergeTables(values{
		"commonLabels": values{"example.com/team": "serving"}, "scheduler": values{"enabled": true}, "llamastack": values{"enabled": true},
		"webhooks": values{"validateVariants": values{"enabled": true}, "placePods": values{"enabled": true}},
		"va":       values{"enabled": true}, "vllmService": values{"enabled": true},
	}, given)
	for key, object := range render(t, release{name: plainName, namespace: plainNamespace, values: given}) {
		assert.Equal(t, "serving", object.GetLabels()["example.com/team"], "%s %s", key.kind, key.name)
		if key.kind == "Deployment" {
			labels, _, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
			require.NoError(t, err)
			assert.Equal(t, "serving", labels["example.com/team"])
			selector, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
			require.NoError(t, err)
			assert.NotContains(t, selector, "example.com/team")
		}
	}
}

// TestADefaultThatIsTakenAwayStaysAway: null takes it away.
func TestADefaultThatIsTakenAwayStaysAway(t *testing.T) {
	all := render(t, release{name: plainName, namespace: plainNamespace, values: values{
		"wva":        values{"actuation": "Metric", "resources": values{"limits": nil}},
		"hpa":        values{"behavior": values{"scaleUp": nil}},
		"dashboards": values{"enabled": true, "labels": values{"grafana_dashboard": nil, "mine": "1"}},
	}})
	assert.NotContains(t, container(t, all.get(t, "Deployment", plainName+"-controller-manager"))["resources"], "limits")
	assert.NotContains(t, all.get(t, "HorizontalPodAutoscaler", plainName+"-hpa").Object["spec"].(map[string]any)["behavior"], "scaleUp")
	labels := all.get(t, "ConfigMap", plainName+"-dashboard").GetLabels()
	assert.NotContains(t, labels, "grafana_dashboard")
	assert.Equal(t, "1", labels["mine"])
}

// TestADigestNamesTheImage, in place of a tag.
func TestADigestNamesTheImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	image := values{"image": values{"repository": "mirror:5000/program", "tag": "v9", "digest": digest}}
	r := release{name: plainName, namespace: plainNamespace, values: values{"wva": image, "scheduler": chartutil.MergeTables(values{"enabled": true}, image)}}
	for key, object := range render(t, r) {
		if key.kind == "Deployment" {
			assert.Equal(t, "mirror:5000/program@"+digest, container(t, object)["image"])
		}
	}
	files, err := r.files(t)
	require.NoError(t, err)
	assert.Contains(t, files["workload-variant-autoscaler/templates/NOTES.txt"], "The autoscaler mirror:5000/program@"+digest+" runs")
}

func TestTheSchedulerIsRestartedForItsConfiguration(t *testing.T) {
	checksum := func(v values) string {
		scheduler := render(t, release{name: plainName, namespace: plainNamespace, values: withScheduler(v)}).get(t, "Deployment", "variant-scheduler")
		sum, found, err := unstructured.NestedString(scheduler.Object, "spec", "template", "metadata", "annotations", "checksum/config")
		require.NoError(t, err)
		require.True(t, found)
		return sum
	}
	assert.NotEqual(t, checksum(nil), checksum(nested("scheduler.gangScheduling", true)))
}

func TestTheManagerFindsItsConfigMaps(t *testing.T) {
	for _, r := range []release{plain, {name: "blue", namespace: "serving"}} {
		all := render(t, r)
		prefix := plainName
		if r.name != plainName {
			prefix = r.name + "-" + plainName
		}
		manager := all.get(t, "Deployment", prefix+"-controller-manager")
		for flag, name := range map[string]string{
			"--config-map-name=":                   prefix + "-variantautoscaling-config",
			"--saturation-config-map-name=":        prefix + "-wva-saturation-scaling-config",
			"--accelerator-names-config-map-name=": prefix + "-accelerator-names",
			"--service-class-config-map-name=":     prefix + "-service-classes-config",
			"--accelerator-cost-config-map-name=":  prefix + "-accelerator-unit-costs",
			"--scale-to-zero-config-map-name=":     prefix + "-wva-model-scale-to-zero-config",
		} {
			assert.Contains(t, arguments(t, manager), flag+name)
			assert.Equal(t, r.namespace, all.get(t, "ConfigMap", name).GetNamespace())
		}
	}
}

// The whole Secret is a folder, not a single file of it: only so is a change of it followed, and its
// other entries are beside the configuration.
func TestTheLoginAtPrometheusIsFollowed(t *testing.T) {
	all := render(t, release{name: plainName, namespace: plainNamespace, values: nested("wva.prometheus.httpConfigSecret", "login")})
	settings := parse(t, all.get(t, "ConfigMap", plainName+"-variantautoscaling-config"))["config.yaml"].(map[string]any)
	assert.Equal(t, "/etc/prometheus-http/http.yaml", settings["PROMETHEUS_HTTP_CONFIG_PATH"])
	manager := all.get(t, "Deployment", plainName+"-controller-manager")
	volumes, _, err := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "volumes")
	require.NoError(t, err)
	assert.Contains(t, volumes, map[string]any{"name": "prometheus-http", "secret": map[string]any{"secretName": "login"}})
	mounts, _, err := unstructured.NestedSlice(container(t, manager), "volumeMounts")
	require.NoError(t, err)
	assert.Contains(t, mounts, map[string]any{"name": "prometheus-http", "mountPath": "/etc/prometheus-http", "readOnly": true})
}

func TestTheFilesOfPathsAreThere(t *testing.T) {
	manager := render(t, release{name: plainName, namespace: plainNamespace, values: values{"wva": values{
		"podMetrics":        values{"caCertPath": "/etc/pod-tls/ca.crt"},
		"extraVolumes":      []any{values{"name": "pod-tls", "secret": values{"secretName": "pods"}}},
		"extraVolumeMounts": []any{values{"name": "pod-tls", "mountPath": "/etc/pod-tls", "readOnly": true}},
	}}}).get(t, "Deployment", plainName+"-controller-manager")
	volumes, _, err := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "volumes")
	require.NoError(t, err)
	assert.Contains(t, volumes, map[string]any{"name": "pod-tls", "secret": map[string]any{"secretName": "pods"}})
	assert.Len(t, volumes, 3, "the configuration and the certificate stay")
	mounts, _, err := unstructured.NestedSlice(container(t, manager), "volumeMounts")
	require.NoError(t, err)
	assert.Contains(t, mounts, map[string]any{"name": "pod-tls", "mountPath": "/etc/pod-tls", "readOnly": true})
	assert.Len(t, mounts, 3)
}

func TestNotesSayWhatToDoNext(t *testing.T) {
	files, err := plain.files(t)
	require.NoError(t, err)
	notes := files["workload-variant-autoscaler/templates/NOTES.txt"]
	assert.Contains(t, notes, "kubectl get va")
	assert.Contains(t, notes, "schedulerName: variant-scheduler")
	const nowhere = "No image is published under that name."
	assert.Contains(t, notes, nowhere)
	files, err = release{name: plainName, namespace: plainNamespace, values: nested("wva.image.repository", "registry.example/manager")}.files(t)
	require.NoError(t, err)
	assert.NotContains(t, files["workload-variant-autoscaler/templates/NOTES.txt"], nowhere)
}

// TestKindsThatTheClusterDoesNotKnow: Helm alone would name neither the value nor who brings
// the kind.
func TestKindsThatTheClusterDoesNotKnow(t *testing.T) {
	const operator = "install the Prometheus operator first, or set the value to false"
	for value, c := range map[string]struct{ kind, says string }{
		"wva.metrics.serviceMonitor.enabled": {"monitoring.coreos.com/v1/ServiceMonitor", operator},
		"scheduler.serviceMonitor.enabled":   {"monitoring.coreos.com/v1/ServiceMonitor", operator},
		"vllmService.enabled":                {"monitoring.coreos.com/v1/ServiceMonitor", operator},
		"alerts.enabled":                     {"monitoring.coreos.com/v1/PrometheusRule", operator},
		"scheduler.gangScheduling":           {"scheduling.x-k8s.io/v1alpha1/PodGroup", "install the CRD podgroups.scheduling.x-k8s.io of scheduler-plugins first"},
	} {
		t.Run(value, func(t *testing.T) {
			r := release{name: plainName, namespace: plainNamespace, values: withScheduler(nested(value, true)), cluster: []string{}}
			_, err := r.files(t)
			require.ErrorContains(t, err, value+": this cluster does not know the kind ")
			require.ErrorContains(t, err, c.says)
			r.cluster = []string{c.kind}
			render(t, r)
			r.cluster = nil
			render(t, r)
		})
	}
}
