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
			changes:  []string{`PROMETHEUS_BASE_URL (old: "https://p", new: "https://q")`, `LEADER_ELECTION_ID (old: "first", new: "second")`},
		},
		"a query may hold a key, and is not shown": {
			edited:   "PROMETHEUS_BASE_URL: https://q/p?key=secret#secret\nGATEWAY_METRICS_URLS: 'http://epp/metrics?key=secret,http://other/metrics'\n",
			interval: 60 * time.Second,
			changes: []string{
				`PROMETHEUS_BASE_URL (old: "https://p", new: "https://q/p (and a query, which is not shown)")`,
				`GATEWAY_METRICS_URLS (old: "", new: "http://epp/metrics,http://other/metrics (and a query, which is not shown)")`,
			},
		},
		"what may hold a password is not shown": {
			edited:   "PROMETHEUS_BASE_URL: https://me:secret@q\nGATEWAY_METRICS_URLS: 'http://me:secret@epp'\n",
			interval: 60 * time.Second,
			changes: []string{
				`PROMETHEUS_BASE_URL (old: "https://p", new: "(an address with an @, which is not shown)")`,
				`GATEWAY_METRICS_URLS (old: "", new: "(an address with an @, which is not shown)")`,
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
			warnings: 1,
		},
		"a dynamic setting that a flag gives stays": {
			flags:    map[string]string{"global-opt-interval": "5s"},
			edited:   "GLOBAL_OPT_INTERVAL: 45s\n",
			interval: 5 * time.Second,
			warnings: 1,
		},
		"what a flag says too is no mistake": {
			flags:    map[string]string{"global-opt-interval": "60s"},
			edited:   "GLOBAL_OPT_INTERVAL: 1m\n",
			interval: 60 * time.Second,
		},
		"the same in other words is no change": {
			edited:   "WVA_LIMITED_MODE: False\nLEADER_ELECTION_LEASE_DURATION: 1m\nLEADER_ELECT: '0'\nLOG_LEVEL: info\n",
			interval: 60 * time.Second,
		},
		"a wrong value of a static setting is a change all the same, and spoils nothing": {
			edited:   "WVA_LIMITED_MODE: perhaps\nCONTROLLER_INSTANCE: no label!\nGLOBAL_OPT_INTERVAL: 45s\n",
			interval: 45 * time.Second,
			changes:  []string{`CONTROLLER_INSTANCE (old: "", new: "no label!")`, `WVA_LIMITED_MODE (old: "false", new: "perhaps")`},
		},
		"an unknown setting is reported": {
			edited:   "GLOBAL_OPT_INTERVALL: 45s\n",
			interval: 60 * time.Second,
			warnings: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := config.Sources{Flags: test.flags, Map: map[string]string{config.FileEntry: before}, MapName: "home/settings"}
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

			got, edit, err := old.Update(from, map[string]string{config.FileEntry: test.edited})
			require.NoError(t, err)
			assert.Equal(t, old.Static, got.Static)
			assert.Equal(t, old.Saturation, got.Saturation)
			assert.Equal(t, old.ServiceClasses, got.ServiceClasses)
			assert.Equal(t, old.UnitCosts, got.UnitCosts)
			assert.Equal(t, old.ScaleToZero, got.ScaleToZero)
			assert.Equal(t, test.interval, got.Interval)
			assert.Len(t, got.Warnings, test.warnings)
			var said []string
			for _, change := range edit.Rejected {
				said = append(said, change.String())
			}
			assert.Equal(t, test.changes, said)
		})
	}
}

func TestUpdateRefusesWrongValues(t *testing.T) {
	from := config.Sources{Flags: address, MapName: "home/settings"}
	old, err := config.Load(from)
	require.NoError(t, err)
	_, _, err = old.Update(from, map[string]string{"GLOBAL_OPT_INTERVAL": "soon"})
	require.ErrorContains(t, err, `GLOBAL_OPT_INTERVAL in ConfigMap home/settings is "soon"`)
	_, _, err = old.Update(from, map[string]string{config.FileEntry: "{"})
	require.ErrorContains(t, err, "config.yaml of ConfigMap home/settings")
}

func TestUpdateOfEntries(t *testing.T) {
	start := map[string]string{"PROMETHEUS_BASE_URL": "https://p", "GLOBAL_OPT_INTERVAL": "60s", "WVA_LIMITED_MODE": "false"}
	from := config.Sources{Map: start, MapName: "home/settings"}
	c, err := config.Load(from)
	require.NoError(t, err)
	steps := []struct {
		name     string
		data     map[string]string
		applied  []string
		rejected []string
		interval time.Duration
		warnings []string
	}{
		{"both kinds in one edit", map[string]string{"PROMETHEUS_BASE_URL": "https://q", "GLOBAL_OPT_INTERVAL": "120s", "WVA_LIMITED_MODE": "true"},
			[]string{`GLOBAL_OPT_INTERVAL (old: "60s", new: "120s")`},
			[]string{`PROMETHEUS_BASE_URL (old: "https://p", new: "https://q")`, `WVA_LIMITED_MODE (old: "false", new: "true")`}, 2 * time.Minute, nil},
		{"from the last value, not from the first", map[string]string{"GLOBAL_OPT_INTERVAL": "90s"},
			[]string{`GLOBAL_OPT_INTERVAL (old: "120s", new: "90s")`}, nil, 90 * time.Second, nil},
		{"an entry over the file", map[string]string{"GLOBAL_OPT_INTERVAL": "90s", config.FileEntry: "GLOBAL_OPT_INTERVAL: 10s\nWVA_BACKLOG_DRAIN_TIME: 1m\n"},
			[]string{`WVA_BACKLOG_DRAIN_TIME (old: "2m0s", new: "1m")`}, nil, 90 * time.Second,
			[]string{"GLOBAL_OPT_INTERVAL in config.yaml of ConfigMap home/settings has no effect, because it is an entry of its own there, which counts: remove one of them"}},
		{"nothing left", nil, []string{`GLOBAL_OPT_INTERVAL (old: "90s", new: "1m0s")`, `WVA_BACKLOG_DRAIN_TIME (old: "1m", new: "2m0s")`}, nil, time.Minute, nil},
		{"a secret", map[string]string{"PROMETHEUS_BEARER_TOKEN": "hush"}, nil, []string{`PROMETHEUS_BEARER_TOKEN (old: "", new: "(a secret, which is not shown)")`}, time.Minute, nil},
	}
	texts := func(changes []config.Change) (all []string) {
		for _, c := range changes {
			all = append(all, c.String())
		}
		return all
	}
	for _, step := range steps {
		next, edit, err := c.Update(from, step.data)
		require.NoError(t, err, step.name)
		assert.Equal(t, step.applied, texts(edit.Applied), step.name)
		assert.Equal(t, step.rejected, texts(edit.Rejected), step.name)
		assert.Equal(t, step.interval, next.Interval, step.name)
		assert.Equal(t, c.Static, next.Static, step.name)
		assert.False(t, next.Limited, step.name)
		assert.Equal(t, step.warnings, next.Warnings, step.name)
		c = next
	}
}

// Whatever is read once is refused from the ConfigMap while the manager runs, and whatever
// is not takes effect.
func TestUpdateOfEverySetting(t *testing.T) {
	for _, key := range config.Keys() {
		t.Run(key.Name, func(t *testing.T) {
			from := config.Sources{Flags: address, Map: map[string]string{}}
			if key.Name == "PROMETHEUS_BASE_URL" {
				from = config.Sources{Map: map[string]string{key.Name: "https://p"}}
			}
			c, err := config.Load(from)
			require.NoError(t, err)
			next, edit, err := c.Update(from, map[string]string{key.Name: values[key.Name].value})
			require.NoError(t, err)
			switch {
			case key.Name == "CONFIG_MAP_NAME" || key.Name == "POD_NAMESPACE":
				assert.Len(t, next.Warnings, 1, "it cannot say where it is itself")
				assert.Equal(t, values[key.Name].seen(c), values[key.Name].seen(next))
			case key.Static:
				require.Len(t, edit.Rejected, 1)
				assert.Equal(t, key.Name, edit.Rejected[0].Key)
				assert.Equal(t, values[key.Name].seen(c), values[key.Name].seen(next))
			default:
				require.Len(t, edit.Applied, 1)
				assert.Equal(t, values[key.Name].want, values[key.Name].seen(next))
			}
		})
	}
}
