package chart

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chartDir  = "../../charts/workload-variant-autoscaler"
	manifests = "../../manifests"

	// A release of this name has the names of the plain manifests.
	plainName      = "workload-variant-autoscaler"
	plainNamespace = "workload-variant-autoscaler-system"
)

// id names an object within an installation.
type id struct{ kind, name string }

// objects is an installation.
type objects map[id]*unstructured.Unstructured

// values are nested as in values.yaml.
type values = map[string]any

// release is what "helm install" is told.
type release struct {
	name, namespace string
	values          values
	// reused says that the values are those of an older chart, in place of the defaults of
	// this one, as helm upgrade --reuse-values has it.
	reused bool
	// kubernetes is the version of the cluster; empty for v1.36.3.
	kubernetes string
	// cluster says that there is one to ask, which knows these kinds beside those of Kubernetes.
	cluster []string
	// objects are what the templates find there when they look.
	objects []runtime.Object
	// chart is the folder or the package of the chart; empty for chartDir.
	chart string
}

// plain has all that the manifests have: the scheduler too.
var plain = release{name: plainName, namespace: plainNamespace, values: withScheduler(nil)}

// withScheduler adds the scheduler, unless the values say otherwise.
func withScheduler(v values) values {
	all := nested("scheduler.enabled", true)
	return chartutil.MergeTables(chartutil.MergeTables(values{}, v), all)
}

func load(t *testing.T) *helmchart.Chart { return loadFrom(t, chartDir) }

func loadFrom(t *testing.T, path string) *helmchart.Chart {
	t.Helper()
	chart, err := loader.Load(path)
	require.NoError(t, err)
	return chart
}

// files renders every template of the chart, by its name.
func (r release) files(t *testing.T) (map[string]string, error) {
	t.Helper()
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: cmp.Or(r.kubernetes, "v1.36.3"), Major: "1"}
	if r.cluster != nil {
		capabilities.APIVersions = append(append(slices.Clone(capabilities.APIVersions), "apiregistration.k8s.io/v1"), r.cluster...)
	}
	options := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, Revision: 1, IsInstall: true}
	chart := loadFrom(t, cmp.Or(r.chart, chartDir))
	if r.reused {
		chart.Values, r.values = r.values, nil
	}
	rendered, err := chartutil.ToRenderValues(chart, r.values, options, capabilities)
	if err != nil {
		return nil, err
	}
	if r.objects != nil {
		return engine.RenderWithClientProvider(chart, rendered, found(r.objects))
	}
	return engine.Render(chart, rendered)
}

// render gives the objects of a release.
func render(t *testing.T, r release) objects {
	t.Helper()
	files, err := r.files(t)
	require.NoError(t, err)
	return objectsIn(t, files)
}

// objectsIn are the objects of rendered templates.
func objectsIn(t *testing.T, files map[string]string) objects {
	t.Helper()
	found := objects{}
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") {
			found.read(t, name, []byte(text))
		}
	}
	return found
}

// read adds the objects of a file, of which no two may have the same id.
func (o objects) read(t *testing.T, name string, text []byte) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "%s:\n%s", name, text)
		if len(object.Object) == 0 {
			continue
		}
		key := id{object.GetKind(), object.GetName()}
		require.NotContains(t, o, key, "%s: rendered twice", name)
		o[key] = object
	}
}

// readManifests gives the objects of a folder of manifests/.
func readManifests(t *testing.T, folder string) objects {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(manifests, folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "manifests/%s is empty", folder)
	found := objects{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		found.read(t, path, text)
	}
	return found
}

func (o objects) get(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	require.Contains(t, o, id{kind, name})
	return o[id{kind, name}]
}

// ids are the ids of an installation in a fixed order, as "Kind name".
func (o objects) ids() []string {
	var all []string
	for key := range o {
		all = append(all, key.kind+" "+key.name)
	}
	slices.Sort(all)
	return all
}

// container is the only container of a Deployment, as it stands in there.
func container(t *testing.T, deployment *unstructured.Unstructured) map[string]any {
	t.Helper()
	containers, found, err := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, containers, 1)
	return containers.([]any)[0].(map[string]any)
}

func arguments(t *testing.T, deployment *unstructured.Unstructured) []string {
	t.Helper()
	list, _, err := unstructured.NestedStringSlice(container(t, deployment), "args")
	require.NoError(t, err)
	return list
}
