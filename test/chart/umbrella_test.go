package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// TestAnotherChartMayContainThisOne, and switch it by the condition that such charts use.
func TestAnotherChartMayContainThisOne(t *testing.T) {
	for name, enabled := range map[string]bool{"on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			umbrella := &helmchart.Chart{Metadata: &helmchart.Metadata{
				APIVersion: "v2", Name: "platform", Version: "1.0.0",
				Dependencies: []*helmchart.Dependency{{Name: plainName, Version: "*", Condition: plainName + ".enabled"}},
			}}
			umbrella.AddDependency(load(t))
			given := values{"global": values{"imageRegistry": "mirror"}, plainName: values{"enabled": enabled}}
			require.NoError(t, chartutil.ProcessDependenciesWithMerge(umbrella, given))
			capabilities := chartutil.DefaultCapabilities.Copy()
			capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.3", Major: "1"}
			all, err := chartutil.ToRenderValues(umbrella, given, chartutil.ReleaseOptions{Name: "platform", Namespace: "serving"}, capabilities)
			require.NoError(t, err)
			files, err := engine.Render(umbrella, all)
			require.NoError(t, err)
			_, found := objectsIn(t, files)[id{"Deployment", "platform-" + plainName + "-controller-manager"}]
			assert.Equal(t, enabled, found)
		})
	}
}
