package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

const samples = "../../manifests/manager"

// sample is a ConfigMap of the manifests.
type sample struct {
	Metadata struct{ Name string }
	Data     map[string]string
}

func readSample(t *testing.T, file string) (parsed sample, text string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(samples, file))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &parsed))
	return parsed, string(content)
}

// example is the data that a comment gives as an example: its lines that are indented.
func example(t *testing.T, text string) map[string]string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		if code, ok := strings.CutPrefix(line, "#   "); ok {
			lines = append(lines, code)
		}
	}
	require.NotEmpty(t, lines)
	data := map[string]string{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.Join(lines, "")), &data))
	return data
}

func TestTheExamplesInTheManifestsAreTrue(t *testing.T) {
	loaded, err := config.Load(config.Sources{Flags: address})
	require.NoError(t, err)
	tests := map[string]struct {
		name  string
		parse func(data map[string]string) (any, []string, error)
	}{
		"saturation.yaml": {loaded.SaturationConfigMap, func(data map[string]string) (any, []string, error) { return config.ParseSaturation(data) }},
		"service-classes.yaml": {loaded.ServiceClassConfigMap, func(data map[string]string) (any, []string, error) {
			return config.ParseServiceClasses(loaded.ServiceClassConfigMap, data)
		}},
		"unit-costs.yaml":    {loaded.UnitCostConfigMap, func(data map[string]string) (any, []string, error) { return config.ParseUnitCosts(data) }},
		"scale-to-zero.yaml": {loaded.ScaleToZeroConfigMap, func(data map[string]string) (any, []string, error) { return config.ParseScaleToZero(data) }},
	}
	for file, test := range tests {
		t.Run(file, func(t *testing.T) {
			installed, text := readSample(t, file)
			assert.Equal(t, test.name, installed.Metadata.Name, "the manager looks for this name")
			for what, data := range map[string]map[string]string{"data": installed.Data, "example": example(t, text)} {
				_, warnings, err := test.parse(data)
				require.NoError(t, err, what)
				assert.Empty(t, warnings, what)
			}
		})
	}
}

func TestTheFileInTheManifestsSaysTheDefaults(t *testing.T) {
	installed, _ := readSample(t, "config.yaml")
	got, err := config.Load(config.Sources{File: []byte(installed.Data["config.yaml"])})
	require.NoError(t, err)
	assert.Empty(t, got.Warnings)
	want, err := config.Load(config.Sources{Flags: address})
	require.NoError(t, err)
	assert.Equal(t, want.Dynamic, got.Dynamic)
	assert.Equal(t, want.ConfigMap, installed.Metadata.Name)
}
