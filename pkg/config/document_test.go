package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// YAML readers take the first of several documents, and say nothing of the others.
func TestAnEntryIsOneDocument(t *testing.T) {
	const want = `entry "a": it has 2 YAML documents, of which only the first would count: write all of it as one, without --- between, or as an entry of its own each`
	saturation := func(text string) error {
		_, _, err := config.ParseSaturation(map[string]string{"a": text})
		return err
	}
	classes := func(text string) error {
		_, _, err := config.ParseServiceClasses("classes", map[string]string{"a": text})
		return err
	}
	zero := func(text string) error {
		_, _, err := config.ParseScaleToZero(map[string]string{"a": text})
		return err
	}
	costs := func(text string) error {
		_, _, err := config.ParseUnitCosts(map[string]string{"a": text})
		return err
	}
	for name, err := range map[string]error{
		"thresholds":         saturation("model_id: m\nnamespace: chat\n---\nmodel_id: n\nnamespace: chat\n"),
		"service classes":    classes("name: A\npriority: 1\ndata: []\n--- # the next\nname: B\npriority: 2\ndata: []\n"),
		"lists of classes":   classes("- {name: A, priority: 1, data: []}\n---\n- {name: B, priority: 2, data: []}\n"),
		"on the same line":   zero("--- {model_id: m}\n--- {model_id: n}\n"),
		"after an end":       zero("model_id: m\n...\nmodel_id: n\n"),
		"maps of JSON":       costs(`{"cost": "40.0"} {"cost": "50.0"}`),
		"a first one of air": zero("# nothing\n---\nmodel_id: m\n---\nenable_scale_to_zero: true\n"),
	} {
		require.ErrorContains(t, err, want, name)
	}
	for name, text := range map[string]string{
		"begun":                "---\nmodel_id: m\n",
		"begun, with a remark": "# of team a\n---\nmodel_id: m\n",
		"ended":                "model_id: m\n...\n",
		"nothing behind":       "model_id: m\n---\n# no more\n",
		"a remark":             `{"model_id": "m"} # of team a`,
		"in a text":            "model_id: |-\n  m\n  ---\n  n\n",
	} {
		assert.NoError(t, zero(text), name)
	}
}
