package install

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	chartDir = "../../../charts/workload-variant-autoscaler"
	name     = "wva"
	home     = "wva-system"
)

// helm talks to a cluster as the program of that name does with --namespace.
type helm struct {
	configuration *action.Configuration
	namespace     string
}

func newHelm(t *testing.T, cluster *localcluster.Cluster, namespace string) helm {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	kubeconfig := cluster.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	// What it knows of the cluster is kept beside its other files.
	cache := t.TempDir()
	flags.CacheDir = &cache
	configuration := new(action.Configuration)
	require.NoError(t, configuration.Init(flags, namespace, "secret", t.Logf))
	return helm{configuration, namespace}
}

func load(t *testing.T) *helmchart.Chart {
	t.Helper()
	chart, err := loader.Load(chartDir)
	require.NoError(t, err)
	return chart
}

func valuesFile(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var read map[string]any
	require.NoError(t, yaml.UnmarshalStrict(text, &read))
	return read
}

func (h helm) install(t *testing.T, chart *helmchart.Chart, values map[string]any) error {
	t.Helper()
	run := action.NewInstall(h.configuration)
	run.ReleaseName, run.Namespace, run.TakeOwnership = name, h.namespace, true
	_, err := run.RunWithContext(t.Context(), chart, values)
	return err
}

func (h helm) upgrade(t *testing.T, chart *helmchart.Chart, reuse bool, values map[string]any) error {
	t.Helper()
	run := action.NewUpgrade(h.configuration)
	run.Namespace, run.ReuseValues, run.ResetValues, run.TakeOwnership = h.namespace, reuse, !reuse, true
	_, err := run.RunWithContext(t.Context(), name, chart, values)
	return err
}

func (h helm) rollback(t *testing.T, revision int) {
	t.Helper()
	run := action.NewRollback(h.configuration)
	run.Version = revision
	require.NoError(t, run.Run(name))
}

func (h helm) uninstall(t *testing.T) {
	t.Helper()
	_, err := action.NewUninstall(h.configuration).Run(name)
	require.NoError(t, err)
}
