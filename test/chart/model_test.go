package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// valuesFile reads a file of values.
func valuesFile(t *testing.T, path string) values {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var read values
	require.NoError(t, yaml.UnmarshalStrict(text, &read))
	return read
}

func llmd(t *testing.T) values { return valuesFile(t, filepath.Join(chartDir, "values-llm-d.yaml")) }

// published are the values of the published chart.
func published(t *testing.T) values { return valuesFile(t, "testdata/published.yaml") }

func TestEveryFileOfValuesRenders(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(chartDir, "values-*.yaml"))
	require.NoError(t, err)
	require.Len(t, paths, 6)
	for _, path := range paths {
		render(t, release{name: plainName, namespace: plainNamespace, values: withScheduler(valuesFile(t, path))})
	}
}

// TestThePublishedValuesAreThoseOfTheirFile: the second file of values has every published
// key, with its default. The image is the one thing that a chart cannot take from another.
func TestThePublishedValuesAreThoseOfTheirFile(t *testing.T) {
	theirs, ours := published(t), llmd(t)
	delete(theirs["wva"].(values), "image")
	// No labels: the published default is a text without any.
	assert.Empty(t, theirs["wva"].(values)["nodeSelector"])
	delete(theirs["wva"].(values), "nodeSelector")
	contains(t, "values", theirs, ours)
}

// TestEveryDifferentDefaultIsExplained: the README has a line for each published value whose
// default is another one here.
func TestEveryDifferentDefaultIsExplained(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(readme), "## What is different from the published defaults")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	ours := valuesFile(t, filepath.Join(chartDir, "values.yaml"))
	different := 0
	var walk func(path string, theirs, ours any)
	walk = func(path string, theirs, ours any) {
		nested, ok := theirs.(map[string]any)
		if ok && len(nested) > 0 {
			for key, value := range nested {
				of, _ := ours.(map[string]any)
				walk(strings.TrimPrefix(path+"."+key, "."), value, of[key])
			}
			return
		}
		// No labels of nodes: the published default is a text without any.
		if !reflect.DeepEqual(theirs, ours) && path != "wva.nodeSelector" {
			different++
			assert.Contains(t, table, "`"+path+"`")
		}
	}
	walk("", published(t), ours)
	assert.Greater(t, different, 5)
}

// TestAnUpgradeReusesThePublishedValues: nothing of them is refused, and what this chart
// has beyond them does what the published chart did.
func TestAnUpgradeReusesThePublishedValues(t *testing.T) {
	reused := render(t, release{name: "wva", namespace: plainNamespace, values: published(t), reused: true})
	fresh := render(t, release{name: "wva", namespace: plainNamespace, values: llmd(t)})
	assert.Equal(t, fresh.ids(), reused.ids())
	const prefix = "wva-" + plainName
	for _, key := range []id{{"HorizontalPodAutoscaler", prefix + "-hpa"}, {"VariantAutoscaling", prefix + "-va"}, {"Service", prefix + "-vllm"}, {"ServiceMonitor", prefix + "-vllm"}} {
		assert.Equal(t, fresh.get(t, key.kind, key.name).Object, reused.get(t, key.kind, key.name).Object)
	}
	manager := reused.get(t, "Deployment", prefix+"-controller-manager")
	assert.Equal(t, "example/llm-d-workload-variant-autoscaler:v0.5.0", container(t, manager)["image"], "an image that was chosen stays")

	t.Run("which the notes warn of", func(t *testing.T) {
		files, err := release{name: "wva", namespace: plainNamespace, values: published(t), reused: true}.files(t)
		require.NoError(t, err)
		assert.Contains(t, files[plainName+"/templates/NOTES.txt"], "That is the image of the published chart")
	})
	t.Run("again, with what was set since", func(t *testing.T) {
		later, since := published(t), llmd(t)
		for _, all := range []values{later, since} {
			all["wva"].(values)["actuation"] = "Scale"
			all["wva"].(values)["logLevel"] = 4
			all["scheduler"] = values{"enabled": true}
		}
		delete(later["wva"].(values), "image")
		again := render(t, release{name: "wva", namespace: plainNamespace, values: later, reused: true})
		fresh := render(t, release{name: "wva", namespace: plainNamespace, values: since})
		assert.Equal(t, fresh, again)
		assert.Contains(t, again.ids(), "ClusterRoleBinding "+prefix+"-prometheus-reader-cluster-monitoring-view")
	})
	t.Run("also without its secrets and its HPA", func(t *testing.T) {
		few := published(t)
		few["hpa"].(values)["enabled"] = false
		for key := range render(t, release{name: "wva", namespace: plainNamespace, values: few, reused: true}) {
			assert.NotEqual(t, "HorizontalPodAutoscaler", key.kind)
		}
	})
	t.Run("and with a limit that was taken away", func(t *testing.T) {
		later := valuesFile(t, filepath.Join(chartDir, "values.yaml"))
		delete(later["wva"].(values)["resources"].(values)["limits"].(values), "cpu")
		delete(later, "alerts")
		manager := render(t, release{name: "wva", namespace: plainNamespace, values: later, reused: true}).get(t, "Deployment", prefix+"-controller-manager")
		limits := container(t, manager)["resources"].(map[string]any)["limits"]
		assert.Equal(t, map[string]any{"memory": "1Gi"}, limits)
	})
}

func TestAnHPAIsMadeExactlyWhereItIsNeeded(t *testing.T) {
	for _, file := range []string{"values.yaml", "values-llm-d.yaml"} {
		for _, c := range []struct {
			actuation string
			wanted    bool
			says      string
		}{
			{"Metric", true, "-hpa in llm-d-autoscaler scales"},
			{"Scale", false, "No HorizontalPodAutoscaler is needed"},
			{"Off", false, "Decisions are shown and not carried out"},
		} {
			given := valuesFile(t, filepath.Join(chartDir, file))
			assert.Equal(t, true, given["hpa"].(values)["enabled"])
			given["wva"].(values)["actuation"] = c.actuation
			r := release{name: plainName, namespace: plainNamespace, values: given}
			_, found := render(t, r)[id{"HorizontalPodAutoscaler", plainName + "-hpa"}]
			assert.Equal(t, c.wanted, found, "%s: %s", file, c.actuation)
			files, err := r.files(t)
			require.NoError(t, err)
			assert.Contains(t, files[plainName+"/templates/NOTES.txt"], c.says)
		}
	}
}

func TestTheModelsObjectsBelongTogether(t *testing.T) {
	given := llmd(t)
	given["wva"].(values)["controllerInstance"] = "blue"
	all := render(t, release{name: plainName, namespace: plainNamespace, values: given})
	va := all.get(t, "VariantAutoscaling", plainName+"-va")
	assert.Equal(t, "llm-d-autoscaler", va.GetNamespace())
	assert.Equal(t, "H100", va.GetLabels()["inference.optimization/acceleratorName"])
	assert.Equal(t, "blue", va.GetLabels()["wva.llmd.ai/controller-instance"])
	assert.Equal(t, map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "ms-inference-scheduling-llm-d-modelservice-decode"},
		"modelID":        "unsloth/Meta-Llama-3.1-8B", "actuation": "Metric", "variantCost": "10.0",
	}, va.Object["spec"])

	hpa := all.get(t, "HorizontalPodAutoscaler", plainName+"-hpa")
	assert.Equal(t, va.GetNamespace(), hpa.GetNamespace())
	target, _, _ := unstructured.NestedMap(va.Object, "spec", "scaleTargetRef")
	scaled, _, _ := unstructured.NestedMap(hpa.Object, "spec", "scaleTargetRef")
	assert.Equal(t, target, scaled)
	metrics, _, _ := unstructured.NestedSlice(hpa.Object, "spec", "metrics")
	external := metrics[0].(map[string]any)["external"].(map[string]any)
	assert.Equal(t, map[string]any{
		"name":     "wva_desired_replicas",
		"selector": map[string]any{"matchLabels": map[string]any{"variant_name": va.GetName(), "exported_namespace": va.GetNamespace(), "controller_instance": "blue"}},
	}, external["metric"])
	assert.Equal(t, map[string]any{"type": "AverageValue", "averageValue": "1"}, external["target"])

	promises := parse(t, all.get(t, "ConfigMap", plainName+"-service-classes-config"))
	assert.Equal(t, map[string]any{"premium": map[string]any{
		"name": "Premium", "priority": float64(1), "namespaces": []any{va.GetNamespace()},
		"data": []any{map[string]any{"model": "unsloth/Meta-Llama-3.1-8B", "slo-ttft": float64(1000), "slo-tpot": float64(10)}},
	}}, promises)

	t.Run("without a manager of their own", func(t *testing.T) {
		given["controller"].(values)["enabled"] = false
		given["crd"] = values{"install": false}
		assert.Equal(t, []string{
			"HorizontalPodAutoscaler " + plainName + "-hpa", "Service " + plainName + "-vllm", "ServiceMonitor " + plainName + "-vllm", "VariantAutoscaling " + plainName + "-va",
		}, render(t, release{name: plainName, namespace: plainNamespace, values: given}).ids())
	})
}

// A port of 0 would differ for ever from the one that Kubernetes chose.
func TestKubernetesMayChooseThePortOfTheNodes(t *testing.T) {
	all := render(t, release{name: plainName, namespace: plainNamespace, values: nested("vllmService", values{"enabled": true, "nodePort": 0})})
	ports, _, err := unstructured.NestedSlice(all.get(t, "Service", plainName+"-vllm").Object, "spec", "ports")
	require.NoError(t, err)
	assert.NotContains(t, ports[0], "nodePort")
}

func TestTheCertificateOfPrometheusIsChecked(t *testing.T) {
	setting := func(t *testing.T, prometheus values) (settings map[string]any, mounts []any) {
		t.Helper()
		all := render(t, release{name: plainName, namespace: plainNamespace, values: values{"wva": values{"prometheus": prometheus}}})
		mounts, _, err := unstructured.NestedSlice(container(t, all.get(t, "Deployment", plainName+"-controller-manager")), "volumeMounts")
		require.NoError(t, err)
		return parse(t, all.get(t, "ConfigMap", plainName+"-variantautoscaling-config"))["config.yaml"].(map[string]any), mounts
	}
	settings, _ := setting(t, values{})
	assert.Equal(t, false, settings["PROMETHEUS_TLS_INSECURE_SKIP_VERIFY"])
	assert.NotContains(t, settings, "PROMETHEUS_CA_CERT_PATH", "the authorities of the image count")

	const path = "/etc/ssl/certs/prometheus-ca.crt"
	settings, mounts := setting(t, values{"caCert": "-----BEGIN CERTIFICATE-----", "tls": values{"caCertPath": path}})
	assert.Equal(t, false, settings["PROMETHEUS_TLS_INSECURE_SKIP_VERIFY"])
	assert.Equal(t, path, settings["PROMETHEUS_CA_CERT_PATH"])
	assert.Contains(t, mounts, map[string]any{"name": "prometheus-ca", "mountPath": path, "subPath": "ca.crt", "readOnly": true}, "the other authorities beside it stay")
}

func TestANamespaceScopedReleaseHasRoles(t *testing.T) {
	all := render(t, release{name: plainName, namespace: "serving", values: nested("wva.namespaceScoped", true)})
	roles := 0
	for key, object := range all {
		assert.NotContains(t, []string{"ClusterRole", "ClusterRoleBinding"}, key.kind, key.name)
		if key.kind != "Role" {
			continue
		}
		roles++
		assert.Equal(t, "serving", object.GetNamespace())
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		require.NoError(t, err)
		assert.NotEmpty(t, rules)
		for _, rule := range rules {
			resources := rule.(map[string]any)["resources"].([]any)
			assert.NotEmpty(t, resources)
			for _, resource := range []any{"nodes", "runtimeclasses", "priorityclasses"} {
				assert.NotContains(t, resources, resource, "it has no namespace")
			}
		}
		binding := all.get(t, "RoleBinding", key.name)
		role, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
		assert.Equal(t, map[string]string{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": key.name}, role)
	}
	assert.Equal(t, 5, roles)
	assert.Contains(t, arguments(t, all.get(t, "Deployment", plainName+"-controller-manager")), "--watch-namespace=serving")

	hooked := render(t, release{name: plainName, namespace: "serving", values: values{
		"wva": values{"namespaceScoped": true}, "webhooks": values{"validateVariants": values{"enabled": true}, "placePods": values{"enabled": true}},
	}})
	for name, kind := range map[string]string{"variants": "ValidatingWebhookConfiguration", "pods": "MutatingWebhookConfiguration"} {
		webhooks, _, err := unstructured.NestedSlice(hooked.get(t, kind, plainName+"-"+name).Object, "webhooks")
		require.NoError(t, err)
		for _, webhook := range webhooks {
			labels, _, err := unstructured.NestedStringMap(webhook.(map[string]any), "namespaceSelector", "matchLabels")
			require.NoError(t, err)
			assert.Equal(t, "serving", labels["kubernetes.io/metadata.name"], "the objects of other namespaces do not wait for it")
		}
	}

	stack := render(t, release{name: plainName, namespace: "serving", values: values{"wva": values{"namespaceScoped": true}, "llamastack": values{"enabled": true}}})
	assert.Equal(t, "serving", stack.get(t, "Role", plainName+"-llamastack").GetNamespace())
	role, _, _ := unstructured.NestedString(stack.get(t, "RoleBinding", plainName+"-llamastack").Object, "roleRef", "kind")
	assert.Equal(t, "Role", role)
	for key, object := range stack {
		if key.kind == "ClusterRole" && !strings.HasSuffix(key.name, "-view") && !strings.HasSuffix(key.name, "-edit") {
			text, err := object.MarshalJSON()
			require.NoError(t, err)
			assert.NotRegexp(t, `"(secrets|rolebindings|configmaps|deployments|bind)"`, string(text), key.name)
		}
	}
	labels, _, err := unstructured.NestedSlice(stack.get(t, "ValidatingWebhookConfiguration", plainName+"-webhooks").Object, "webhooks")
	require.NoError(t, err)
	only, _, err := unstructured.NestedString(labels[0].(map[string]any), "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
	require.NoError(t, err)
	assert.Equal(t, "serving", only)

	whole := render(t, release{name: plainName, namespace: "serving", values: nested("wva", values{"namespaceScoped": true, "clusterRead": true})})
	for _, name := range []string{"observe", "metrics-auth", "metrics-reader", "view", "edit"} {
		whole.get(t, "ClusterRole", plainName+"-"+name)
	}
	assert.NotContains(t, whole, id{"ClusterRole", plainName + "-scale"}, "it writes in its own namespace alone")
}
