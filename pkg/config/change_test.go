package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

func TestUpdate(t *testing.T) {
	const before = "PROMETHEUS_BASE_URL: https://p\nGLOBAL_OPT_INTERVAL: 30s\nLEADER_ELECTION_ID: first\n"
	tests := map[string]struct {
		flags    map[string]string
		edited   string
		interval time.Duration
		changes  []string
		warnings int
	}{
		"a dynamic setting takes effect": {
			edited:   "PROMETHEUS_BASE_URL: https://p\nGLOBAL_OPT_INTERVAL: 45s\nLEADER_ELECTION_ID: first\n",
			interval: 45 * time.Second,
		},
		"a static setting does not, and the dynamic one beside it does": {
			edited:   "PROMETHEUS_BASE_URL: https://q\nGLOBAL_OPT_INTERVAL: 45s\nLEADER_ELECTION_ID: second\n",
			interval: 45 * time.Second,
			changes:  []string{`PROMETHEUS_BASE_URL from "https://p" to "https://q"`, `LEADER_ELECTION_ID from "first" to "second"`},
		},
		"what may hold a password is not shown": {
			edited:   "PROMETHEUS_BASE_URL: https://me:secret@q\nGATEWAY_METRICS_URLS: 'http://me:secret@epp'\n",
			interval: 60 * time.Second,
			changes: []string{
				`PROMETHEUS_BASE_URL from "https://p" to "(an address with an @, which is not shown)"`,
				`GATEWAY_METRICS_URLS from "" to "(an address with an @, which is not shown)"`,
			},
		},
		"a static setting that is gone is no change": {
			edited:   "GLOBAL_OPT_INTERVAL: 45s\n",
			interval: 45 * time.Second,
		},
		"a dynamic setting that is gone has its default": {
			edited:   "PROMETHEUS_BASE_URL: https://p\n",
			interval: 60 * time.Second,
		},
		"a static setting that a flag gives is no change": {
			flags:    map[string]string{"leader-election-id": "given"},
			edited:   "LEADER_ELECTION_ID: second\n",
			interval: 60 * time.Second,
		},
		"a dynamic setting that a flag gives stays": {
			flags:    map[string]string{"global-opt-interval": "5s"},
			edited:   "GLOBAL_OPT_INTERVAL: 45s\n",
			interval: 5 * time.Second,
		},
		"an unknown setting is reported": {
			edited:   "GLOBAL_OPT_INTERVALL: 45s\n",
			interval: 60 * time.Second,
			warnings: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := config.Sources{Flags: test.flags, File: []byte(before)}
			old, err := config.Load(from)
			require.NoError(t, err)
			old.Saturation, _, err = config.ParseSaturation(map[string]string{"default": "queueLengthThreshold: 9"})
			require.NoError(t, err)

			old.ServiceClasses, _, err = config.ParseServiceClasses("classes", map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-ttft: 5}]}"})
			require.NoError(t, err)
			old.UnitCosts, _, err = config.ParseUnitCosts(map[string]string{"H100": `{"cost": "5"}`})
			require.NoError(t, err)
			old.ScaleToZero, _, err = config.ParseScaleToZero(map[string]string{"default": "enable_scale_to_zero: true"})
			require.NoError(t, err)

			got, changes, err := old.Update(from, []byte(test.edited))
			require.NoError(t, err)
			assert.Equal(t, old.Static, got.Static)
			assert.Equal(t, old.Saturation, got.Saturation)
			assert.Equal(t, old.ServiceClasses, got.ServiceClasses)
			assert.Equal(t, old.UnitCosts, got.UnitCosts)
			assert.Equal(t, old.ScaleToZero, got.ScaleToZero)
			assert.Equal(t, test.interval, got.Interval)
			assert.Len(t, got.Warnings, test.warnings)
			var said []string
			for _, change := range changes {
				said = append(said, change.String())
			}
			assert.Equal(t, test.changes, said)
		})
	}
}

func TestUpdateRefusesWrongValues(t *testing.T) {
	from := config.Sources{Flags: address}
	old, err := config.Load(from)
	require.NoError(t, err)
	_, _, err = old.Update(from, []byte("GLOBAL_OPT_INTERVAL: soon\n"))
	require.ErrorContains(t, err, `GLOBAL_OPT_INTERVAL in the configuration file is "soon"`)
	_, _, err = old.Update(from, []byte("{"))
	require.ErrorContains(t, err, "reading the configuration file")
}
