package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// folders are those of manifests/ that the templates stand for.
var folders = []string{"crd", "rbac", "manager", "scheduler"}

// renamed are the objects that a release prefixes although the plain manifests do
// not, so that two releases can live in one namespace.
var renamed = map[id]string{
	{"ConfigMap", "wva-saturation-scaling-config"}:  plainName + "-wva-saturation-scaling-config",
	{"ConfigMap", "service-classes-config"}:         plainName + "-service-classes-config",
	{"ConfigMap", "accelerator-unit-costs"}:         plainName + "-accelerator-unit-costs",
	{"ConfigMap", "wva-model-scale-to-zero-config"}: plainName + "-wva-model-scale-to-zero-config",
}

// notPlain are the objects of manifests/ that a plain release does not have: Helm
// makes the namespace (--create-namespace).
var notPlain = []id{{"Namespace", plainNamespace}}

func TestAReleaseWithWebhooksHasWhatItsManifestsAre(t *testing.T) {
	all := values{"llamastack": values{"enabled": true}, "webhooks": values{"validateVariants": values{"enabled": true}, "placePods": values{"enabled": true}}}
	rendered := render(t, release{name: plainName, namespace: plainNamespace, values: all})
	for _, folder := range []string{"llamastack", "webhook"} {
		for key, manifest := range readManifests(t, folder) {
			t.Run(key.kind+" "+key.name, func(t *testing.T) {
				object := rendered.get(t, key.kind, key.name)
				assert.Equal(t, manifest.GetAPIVersion(), object.GetAPIVersion())
				assert.Equal(t, manifest.GetNamespace(), object.GetNamespace())
				compare(t, key.kind, manifest, object)
				assert.Equal(t, manifest.Object["webhooks"], object.Object["webhooks"])
			})
		}
	}
	for wanted, of := range map[string]values{
		"llamastack.enabled: the manager runs Llama Stack servers, so controller.enabled and wva.enabled must be true too": {"llamastack": values{"enabled": true}},
		"webhooks: the manager serves them, so controller.enabled and wva.enabled must be true too":                        nested("webhooks.placePods.enabled", true),
	} {
		of["wva"] = values{"enabled": false}
		_, err := release{name: plainName, namespace: plainNamespace, values: of}.files(t)
		assert.ErrorContains(t, err, wanted)
	}
}

// A certificate that somebody else keeps is mounted, and its authority stands wherever the
// API server looks for it.
func TestACertificateOfOnesOwn(t *testing.T) {
	rendered := render(t, release{name: plainName, namespace: plainNamespace, values: values{
		"llamastack": values{"enabled": true},
		"webhooks": values{"validateVariants": values{"enabled": true}, "placePods": values{"enabled": true}, "certificate": values{
			"secretName": "mine", "authority": "-----BEGIN CERTIFICATE-----", "annotations": values{"cert-manager.io/inject-ca-from": "n/c"},
		}},
	}})
	clients := map[string]any{}
	for key, object := range rendered {
		var client any
		if list, found, _ := unstructured.NestedSlice(object.Object, "webhooks"); found {
			client = list[0].(map[string]any)["clientConfig"]
		} else if client, found, _ = unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig"); !found {
			continue
		}
		clients[key.kind+" "+key.name] = client.(map[string]any)["caBundle"]
		assert.Equal(t, "n/c", object.GetAnnotations()["cert-manager.io/inject-ca-from"], key.name)
	}
	const pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t" // base64
	assert.Equal(t, map[string]any{
		"ValidatingWebhookConfiguration " + plainName + "-webhooks":      pem,
		"ValidatingWebhookConfiguration " + plainName + "-variants":      pem,
		"MutatingWebhookConfiguration " + plainName + "-pods":            pem,
		"CustomResourceDefinition llamastackdistributions.llamastack.io": pem,
	}, clients)
	manager := rendered.get(t, "Deployment", plainName+"-controller-manager")
	assert.Contains(t, arguments(t, manager), "--webhook-cert-secret=")
	volumes, _, err := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "volumes")
	require.NoError(t, err)
	assert.Contains(t, volumes, map[string]any{"name": "webhook-cert", "secret": map[string]any{"secretName": "mine", "optional": true}})
}

func TestAPlainReleaseIsWhatTheManifestsAre(t *testing.T) {
	rendered := render(t, plain)
	expected := map[id]bool{}
	for _, folder := range folders {
		for key, manifest := range readManifests(t, folder) {
			if slices.Contains(notPlain, key) {
				continue
			}
			if name, ok := renamed[key]; ok {
				key.name = name
			}
			expected[key] = true
			t.Run(fmt.Sprintf("%s/%s %s", folder, key.kind, key.name), func(t *testing.T) {
				object := rendered.get(t, key.kind, key.name)
				assert.Equal(t, manifest.GetAPIVersion(), object.GetAPIVersion())
				assert.Equal(t, manifest.GetNamespace(), object.GetNamespace())
				compare(t, key.kind, manifest, object)
			})
		}
	}
	for key := range rendered {
		assert.True(t, expected[key], "%s %s is in the chart and not in manifests/", key.kind, key.name)
	}
}

// compare checks that the object of the chart says all that the manifest says; of
// rights it may not say more.
func compare(t *testing.T, kind string, manifest, object *unstructured.Unstructured) {
	t.Helper()
	for _, field := range []string{"rules", "aggregationRule", "roleRef", "subjects"} {
		assert.Equal(t, manifest.Object[field], object.Object[field], field)
	}
	wantedLabels, _ := manifest.Object["metadata"].(map[string]any)["labels"].(map[string]any)
	for name, value := range wantedLabels {
		assert.Equal(t, value, object.GetLabels()[name], "label %s", name)
	}
	switch kind {
	case "ConfigMap":
		contains(t, "data", parse(t, manifest), parse(t, object))
	case "Deployment":
		image := container(t, object)["image"].(string)
		wanted := container(t, manifest)["image"].(string)
		assert.Equal(t, repository(wanted), repository(image), "image")
		assert.Subset(t, arguments(t, object), arguments(t, manifest), "args")
		for _, d := range []*unstructured.Unstructured{manifest, object} {
			delete(container(t, d), "image")
			delete(container(t, d), "args")
		}
		contains(t, "spec", manifest.Object["spec"], object.Object["spec"])
	default:
		contains(t, "spec", manifest.Object["spec"], object.Object["spec"])
	}
}

func repository(image string) string {
	name, _, _ := strings.Cut(image, ":")
	return name
}

// parse reads the entries of a ConfigMap, which are YAML themselves.
func parse(t *testing.T, configMap *unstructured.Unstructured) map[string]any {
	t.Helper()
	data, found, err := unstructured.NestedStringMap(configMap.Object, "data")
	require.NoError(t, err)
	require.True(t, found)
	parsed := map[string]any{}
	for name, text := range data {
		var entry any
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &entry), "entry %s:\n%s", name, text)
		parsed[name] = entry
	}
	return parsed
}

// contains checks that got says all that want says. Lists are equally long.
func contains(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		actual, ok := got.(map[string]any)
		if !assert.True(t, ok, "%s: expected fields, found %v", path, got) {
			return
		}
		for field := range want {
			contains(t, path+"."+field, want[field], actual[field])
		}
	case []any:
		actual, ok := got.([]any)
		if !assert.True(t, ok, "%s: expected a list, found %v", path, got) ||
			!assert.Len(t, actual, len(want), path) {
			return
		}
		for i := range want {
			contains(t, fmt.Sprintf("%s[%d]", path, i), want[i], actual[i])
		}
	default:
		assert.Equal(t, want, got, path)
	}
}

func TestTheChartAsksForAKubernetesThatIsNewEnough(t *testing.T) {
	wanted := load(t).Metadata.KubeVersion
	assert.True(t, chartutil.IsCompatibleRange(wanted, "v1.29.0"))
	assert.True(t, chartutil.IsCompatibleRange(wanted, "v1.36.2-gke.1234"), "what vendors add is no pre-release")
	assert.False(t, chartutil.IsCompatibleRange(wanted, "v1.28.15"))

	old := release{name: plainName, namespace: plainNamespace, kubernetes: "v1.35.9"}
	for key, object := range render(t, old) {
		if key.kind == "Deployment" {
			assert.NotContains(t, container(t, object)["image"], "scheduler", "its floor is a newer one")
		}
	}
	old.values = nested("scheduler.enabled", true)
	_, err := old.files(t)
	assert.ErrorContains(t, err, "the scheduler needs Kubernetes 1.36 or newer, and this cluster has v1.35.9")
}

func TestTheNotesSayWhereTheSchedulerIsTooOld(t *testing.T) {
	const tooOld, build = "which is too old here", "make image\nKUBERNETES=1.37"
	for _, c := range []struct {
		kubernetes string
		scheduler  bool
		said, not  []string
	}{
		{"v1.37.2", true, nil, []string{tooOld, build}},
		{"v1.38.0-gke.100", true, []string{tooOld, build, "has Kubernetes v1.38.0-gke.100"}, nil},
		{"v1.39.1", true, []string{tooOld, "So is the other one"}, []string{build}},
		{"v1.39.1", false, nil, []string{tooOld, build}},
	} {
		r := release{name: plainName, namespace: plainNamespace, kubernetes: c.kubernetes, values: nested("scheduler.enabled", c.scheduler)}
		files, err := r.files(t)
		require.NoError(t, err, c.kubernetes)
		notes := files[plainName+"/templates/NOTES.txt"]
		for _, text := range c.said {
			assert.Contains(t, notes, text, c.kubernetes)
		}
		for _, text := range c.not {
			assert.NotContains(t, notes, text, c.kubernetes)
		}
	}
}

func TestTheCRDUpgradesWithTheReleaseAndStaysBehindIt(t *testing.T) {
	assert.Empty(t, load(t).CRDObjects(), "Helm never upgrades what is in crds/")
	for key, manifest := range readManifests(t, "crd") {
		crd := render(t, plain).get(t, key.kind, key.name)
		assert.Equal(t, manifest.Object["spec"], crd.Object["spec"])
		assert.Equal(t, "keep", crd.GetAnnotations()["helm.sh/resource-policy"])
		assert.Equal(t, manifest.GetAnnotations()["controller-gen.kubebuilder.io/version"], crd.GetAnnotations()["controller-gen.kubebuilder.io/version"])
	}
}

func TestGangSchedulingIsWhatItsManifestsAre(t *testing.T) {
	rendered := render(t, release{name: plainName, namespace: plainNamespace, values: nested("scheduler", values{"enabled": true, "gangScheduling": true})})
	for key, manifest := range readManifests(t, "scheduler-gang") {
		t.Run(key.kind+" "+key.name, func(t *testing.T) {
			compare(t, key.kind, manifest, rendered.get(t, key.kind, key.name))
		})
	}
}

func TestEveryObjectIsOneThatKubernetesKnows(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	all := render(t, plain)
	for _, folder := range []string{"scheduler-gang", "rbac", "manager", "scheduler"} {
		for key, object := range readManifests(t, folder) {
			all[id{key.kind, folder + "/" + key.name}] = object
		}
	}
	for key, object := range all {
		if key.kind == "CustomResourceDefinition" {
			continue
		}
		text, err := object.MarshalJSON()
		require.NoError(t, err)
		_, _, err = decoder.Decode(text, nil, nil)
		assert.NoError(t, err, "%s %s", key.kind, key.name)
	}
}

func TestAnotherReleaseSharesNoNames(t *testing.T) {
	blue := release{name: "blue", namespace: "serving", values: values{"scheduler": values{"enabled": true, "name": "blue-scheduler"}, "crd": values{"install": false}}}
	files, err := blue.files(t)
	require.NoError(t, err)
	for name, text := range files {
		for number, line := range strings.Split(text, "\n") {
			line = strings.ReplaceAll(line, "blue-"+plainName, "")
			assert.NotContains(t, line, plainNamespace, "%s:%d", name, number+1)
			assert.NotRegexp(t, `^  name: (`+plainName+`|variant-scheduler)`, line, "%s:%d", name, number+1)
		}
	}
	mine := render(t, blue).ids()
	for _, key := range render(t, plain).ids() {
		assert.NotContains(t, mine, key)
	}
}

// TestThePageNamesTheConfigMapsThatThereAre: those of the plain manifests and those of the
// chart, all of them.
func TestThePageNamesTheConfigMapsThatThereAre(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	require.NoError(t, err)
	var plainNames, ofTheChart []string
	for _, row := range regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z-]+)` \\| `<release>-([a-z-]+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		plainNames, ofTheChart = append(plainNames, "ConfigMap "+row[1]), append(ofTheChart, "ConfigMap wva-"+plainName+"-"+row[2])
	}
	assert.Contains(t, string(page), "`<release>` is `wva-"+plainName+"` for a release called `wva`")
	configMaps := func(all objects) []string {
		return slices.DeleteFunc(all.ids(), func(s string) bool { return !strings.HasPrefix(s, "ConfigMap ") })
	}
	assert.ElementsMatch(t, plainNames, configMaps(readManifests(t, "manager")))
	assert.ElementsMatch(t, ofTheChart, configMaps(render(t, release{name: "wva", namespace: plainNamespace})))
}

// Helm takes names with dots and with a digit in front. No Service can have them.
func TestANameThatNoServiceCanHaveIsRefused(t *testing.T) {
	for _, name := range []string{"wva.v2", "2nd"} {
		_, err := release{name: name, namespace: plainNamespace}.files(t)
		require.ErrorContains(t, err, "no Service can have the name of the release, "+name)
		require.ErrorContains(t, err, "set fullnameOverride")
		render(t, release{name: name, namespace: plainNamespace, values: nested("fullnameOverride", "wva")})
	}
}

// TestNamesOfDigitsStayNames: YAML would read them as numbers, and no cluster takes those.
func TestNamesOfDigitsStayNames(t *testing.T) {
	given := chartutil.MergeTables(values{
		"fullnameOverride": "wva", "scheduler": values{"enabled": true}, "llamastack": values{"enabled": true}, "llmd": values{"namespace": "5678"},
		"webhooks": values{"validateVariants": values{"enabled": true}, "placePods": values{"enabled": true}}, "wva": values{"actuation": "Metric"},
		"va": values{"enabled": true}, "vllmService": values{"enabled": true},
	}, valuesFile(t, filepath.Join(chartDir, "values-production.yaml")))
	for _, scoped := range []bool{false, true} {
		given["wva"].(values)["namespaceScoped"] = scoped
		for key, object := range render(t, release{name: "42", namespace: "1234", values: given}) {
			metadata := object.Object["metadata"].(map[string]any)
			assert.Equal(t, "42", metadata["labels"].(map[string]any)["app.kubernetes.io/instance"], "%s %s", key.kind, key.name)
			text, err := yaml.Marshal(object.Object)
			require.NoError(t, err)
			assert.NotRegexp(t, `: (42|1234|5678)\n|- (42|1234|5678)\n`, string(text), "%s %s", key.kind, key.name)
		}
	}
}

// A manager that never becomes ready must not keep nodes from being drained.
func TestPodsThatAreNotReadyMayGo(t *testing.T) {
	for _, all := range []objects{render(t, plain), readManifests(t, "manager"), readManifests(t, "scheduler")} {
		budgets := 0
		for key, object := range all {
			if key.kind == "PodDisruptionBudget" {
				budgets++
				assert.Equal(t, "AlwaysAllow", object.Object["spec"].(map[string]any)["unhealthyPodEvictionPolicy"], key.name)
			}
		}
		assert.Positive(t, budgets)
	}
}

// A label of YAML's own kinds of keys, such as a number, stays what it is.
func TestEntriesKeepTheirNames(t *testing.T) {
	all := render(t, release{name: plainName, namespace: plainNamespace, values: nested("wva", values{
		"acceleratorUnitCosts": values{"1.10": values{"cost": "1"}},
		"serviceClasses":       values{"on": values{"name": "On", "priority": 1}},
		"modelScaleToZero":     values{"0x10": values{"model_id": "m"}},
		"capacityScaling":      values{"overrides": values{"1e3": values{"modelID": "m", "namespace": "n"}}},
	})})
	for name, entry := range map[string]string{
		"accelerator-unit-costs": "1.10", "service-classes-config": "on", "wva-model-scale-to-zero-config": "0x10", "wva-saturation-scaling-config": "1e3",
	} {
		assert.Contains(t, all.get(t, "ConfigMap", plainName+"-"+name).Object["data"], entry, name)
	}
}

// The name of a release has 53 characters at most, and those of Services 63.
func TestTheServicesOfAReleaseWithALongNameHaveGoodNames(t *testing.T) {
	for _, name := range []string{"wva-team-a", strings.Repeat("r", 53)} {
		found := 0
		for one := range render(t, release{name: name, namespace: plainNamespace, values: withScheduler(nested("webhooks.placePods.enabled", true))}) {
			if one.kind == "Service" {
				found++
				assert.Empty(t, validation.NameIsDNS1035Label(one.name, false), one.name)
			}
		}
		assert.GreaterOrEqual(t, found, 2, "of metrics and of webhooks")
	}
}
