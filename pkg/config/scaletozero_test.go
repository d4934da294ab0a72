package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestScaleToZero(t *testing.T) {
	off := decision.Idle{Retention: 10 * time.Minute}
	on := decision.Idle{Enabled: true, Retention: 10 * time.Minute}
	model := decision.ModelKey{Namespace: "chat", ID: "meta/llama"}
	tests := map[string]struct {
		settings decision.Idle
		data     map[string]string
		// base is that of models without an entry, want that of the model.
		base, want decision.Idle
		warnings   []string
	}{
		"no data at all":                 {settings: off, base: off, want: off},
		"no data, and the setting is on": {settings: on, base: on, want: on},
		"the default entry":              {settings: off, data: map[string]string{"default": "enable_scale_to_zero: true\nretention_period: 5m\n"}, base: decision.Idle{Enabled: true, Retention: 5 * time.Minute}, want: decision.Idle{Enabled: true, Retention: 5 * time.Minute}},
		"its older name":                 {settings: off, data: map[string]string{"__defaults__": "enable_scale_to_zero: true"}, base: on, want: on},
		"off beats the setting":          {settings: on, data: map[string]string{"default": "enable_scale_to_zero: false"}, base: off, want: off},
		"a retention alone":              {settings: on, data: map[string]string{"default": "retention_period: 90s"}, base: decision.Idle{Enabled: true, Retention: 90 * time.Second}, want: decision.Idle{Enabled: true, Retention: 90 * time.Second}},
		"an entry that says nothing":     {settings: on, data: map[string]string{"default": ""}, base: on, want: on},
		"a model in every namespace":     {settings: off, data: map[string]string{"x": "{model_id: meta/llama, enable_scale_to_zero: true}"}, base: off, want: on},
		"a model in its namespace":       {settings: off, data: map[string]string{"x": "{model_id: meta/llama, namespace: chat, enable_scale_to_zero: true}"}, base: off, want: on},
		"a model in another namespace":   {settings: off, data: map[string]string{"x": "{model_id: meta/llama, namespace: batch, enable_scale_to_zero: true}"}, base: off, want: off},
		"another model":                  {settings: off, data: map[string]string{"x": "{model_id: other, enable_scale_to_zero: true}"}, base: off, want: off},
		"each level gives what it says": {
			settings: decision.Idle{Enabled: true, Retention: time.Minute},
			data: map[string]string{
				"default": "retention_period: 2m",
				"x":       "{model_id: meta/llama, retention_period: 3m}",
				"y":       "{model_id: meta/llama, namespace: chat, enable_scale_to_zero: false}",
			},
			base: decision.Idle{Enabled: true, Retention: 2 * time.Minute}, want: decision.Idle{Retention: 3 * time.Minute},
		},
		"the first of two entries for a model counts": {
			settings: off,
			data: map[string]string{
				"a": "{model_id: meta/llama, retention_period: 3m}",
				"b": "{model_id: meta/llama, retention_period: 4m}",
			},
			base: off, want: decision.Idle{Retention: 3 * time.Minute},
			warnings: []string{`entry "b": has no effect, because entry "a" is for the same model (meta/llama): remove one`},
		},
		"the older name beside the newer": {
			settings: off, data: map[string]string{"default": "retention_period: 2m", "__defaults__": "enable_scale_to_zero: true"},
			base: decision.Idle{Retention: 2 * time.Minute}, want: decision.Idle{Retention: 2 * time.Minute},
			warnings: []string{`entry "__defaults__": has no effect beside the entry "default": remove it`},
		},
		"a very long retention is believed": {
			settings: off, data: map[string]string{"default": "retention_period: 48h"},
			base: decision.Idle{Retention: 48 * time.Hour}, want: decision.Idle{Retention: 48 * time.Hour},
			warnings: []string{`entry "default": retention_period is 48h, more than a day: the model keeps a replica for that long after its last request`},
		},
		"a misspelled field": {
			settings: off, data: map[string]string{"default": "enabled: true"}, base: off, want: off,
			warnings: []string{`entry "default": enabled has no effect: correct its name or remove it`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entries, warnings, err := config.ParseScaleToZero(test.data)
			require.NoError(t, err)
			assert.Equal(t, test.warnings, warnings)
			settings := config.Dynamic{Idle: test.settings, ScaleToZero: entries}
			assert.Equal(t, test.base, settings.Policy().Idle)
			assert.Equal(t, test.base, settings.IdleOf(decision.ModelKey{Namespace: "chat", ID: "unheard-of"}))
			assert.Equal(t, test.want, settings.IdleOf(model))
		})
	}
}

func TestParseScaleToZeroErrors(t *testing.T) {
	tests := map[string]struct {
		data map[string]string
		want []string
	}{
		"no YAML":                  {map[string]string{"default": "true"}, []string{`scale to zero: entry "default": `, "write it as YAML, one field: value per line"}},
		"a switch in quotes":       {map[string]string{"default": `enable_scale_to_zero: "true"`}, []string{`entry "default": enable_scale_to_zero is true: write true or false, without quotes`}},
		"a number for a duration":  {map[string]string{"default": "retention_period: 600"}, []string{`entry "default": retention_period is 600: write a duration with its unit, such as 10m or 1h`}},
		"a retention of nothing":   {map[string]string{"default": "retention_period: 0s"}, []string{`entry "default": retention_period is 0s: write a duration above zero`}},
		"a default for one model":  {map[string]string{"default": "model_id: m"}, []string{`entry "default": names a model (model_id "m", namespace ""): move it to an entry of another name`}},
		"an entry without a model": {map[string]string{"x": "enable_scale_to_zero: true"}, []string{`entry "x": model_id is missing: name the model that the entry is for`}},
		"a model that is no text":  {map[string]string{"x": "model_id: 7"}, []string{`entry "x": model_id is 7: write a text, in quotes`}},
		"all that is wrong":        {map[string]string{"default": "retention_period: soon", "x": "namespace: chat"}, []string{`entry "default"`, `entry "x"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := config.ParseScaleToZero(test.data)
			require.Error(t, err)
			assert.Zero(t, got)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func FuzzParseScaleToZero(f *testing.F) {
	f.Add("enable_scale_to_zero: true\nretention_period: 5m\n", "model_id: m\nnamespace: chat\nretention_period: 1h\n")
	f.Add("retention_period: -5m", "model_id: [m]")
	f.Add("retention_period: 9223372036854775807ns", "enable_scale_to_zero: null\nmodel_id: m")
	f.Fuzz(func(t *testing.T, base, override string) {
		entries, _, err := config.ParseScaleToZero(map[string]string{"default": base, "override": override})
		if err != nil {
			return
		}
		settings := config.Dynamic{ScaleToZero: entries, Idle: decision.Idle{Retention: time.Minute}}
		assert.Positive(t, settings.Policy().Idle.Retention)
		assert.Positive(t, settings.IdleOf(decision.ModelKey{Namespace: "chat", ID: "m"}).Retention)
	})
}
