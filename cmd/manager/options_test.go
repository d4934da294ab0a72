package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// loaded are the settings of a command line, an environment and a file.
func loaded(t *testing.T, arguments []string, environment map[string]string, file string) (config.Config, error) {
	t.Helper()
	o := newOptions()
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	sets := o.flags()
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		arguments = append(arguments, "--config-file="+path)
	}
	require.NoError(t, flags.Parse(arguments))
	sources, err := o.sources(flags, func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(sources)
}

func TestWhereSettingsComeFrom(t *testing.T) {
	const address = "PROMETHEUS_BASE_URL: https://prometheus:9090\n"
	cases := []struct {
		name        string
		arguments   []string
		environment map[string]string
		file        string
		assert      func(t *testing.T, c config.Config)
	}{
		{"defaults", nil, nil, address, func(t *testing.T, c config.Config) {
			t.Helper()
			assert.Equal(t, time.Minute, c.Interval)
			assert.False(t, c.LeaderElection.Enabled)
			assert.True(t, c.Serving.MetricsSecure)
		}},
		{"a flag wins over the environment and the file", []string{"--global-opt-interval=1s"}, map[string]string{"GLOBAL_OPT_INTERVAL": "2s"}, address + "GLOBAL_OPT_INTERVAL: 3s\n", func(t *testing.T, c config.Config) {
			t.Helper()
			assert.Equal(t, time.Second, c.Interval)
		}},
		{"the environment wins over the file", nil, map[string]string{"GLOBAL_OPT_INTERVAL": "2s"}, address + "GLOBAL_OPT_INTERVAL: 3s\n", func(t *testing.T, c config.Config) {
			t.Helper()
			assert.Equal(t, 2*time.Second, c.Interval)
		}},
		{"a switch needs no value", []string{"--leader-elect", "--metrics-secure=false"}, map[string]string{"LEADER_ELECT": "false"}, address, func(t *testing.T, c config.Config) {
			t.Helper()
			assert.True(t, c.LeaderElection.Enabled)
			assert.False(t, c.Serving.MetricsSecure)
		}},
		{"flags that have no effect", []string{"--enable-http2", "--zap-log-level=debug", "-v=4"}, nil, address, func(t *testing.T, c config.Config) {
			t.Helper()
			assert.Len(t, c.Warnings, 2)
			assert.Equal(t, 4, c.Verbosity)
		}},
		{"the other names of flags", []string{"--enable-leader-election", "--metrics-addr=:1", "--probe-addr=:2"}, nil, address, func(t *testing.T, c config.Config) {
			t.Helper()
			assert.True(t, c.LeaderElection.Enabled)
			assert.Equal(t, ":1", c.Serving.MetricsBindAddress)
			assert.Equal(t, ":2", c.Serving.HealthProbeBindAddress)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := loaded(t, c.arguments, c.environment, c.file)
			require.NoError(t, err)
			c.assert(t, got)
		})
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	cases := []struct {
		name      string
		arguments []string
		want      string
	}{
		{"no address of Prometheus", nil, "PROMETHEUS_BASE_URL is not set"},
		{"no duration", []string{"--prometheus-base-url=https://p", "--global-opt-interval=soon"}, `flag --global-opt-interval is "soon"`},
		{"no such file", []string{"--config-file=/does/not/exist"}, "reading the file of --config-file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := loaded(t, c.arguments, nil, "")
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestHelpShowsExamplesAndEverySetting(t *testing.T) {
	command := newCommand()
	var help strings.Builder
	command.SetOut(&help)
	command.SetErr(io.Discard)
	command.SetArgs([]string{"--help"})
	require.NoError(t, command.Execute())
	assert.Contains(t, help.String(), "manager --config-file=/etc/wva/config.yaml --leader-elect")
	for _, key := range config.Keys() {
		assert.Contains(t, help.String(), "--"+key.Flag()+" ")
	}
}

func TestAPlainBuildTellsNoVersionThatItIsNot(t *testing.T) {
	t.Parallel()
	version := newCommand().Version
	assert.NotEmpty(t, version)
	assert.NotContains(t, version, "$Format", "a placeholder of another project")
}

// A query in the address of Prometheus may hold a key, and more people read a log than the settings.
func TestTheLogHoldsNoKeyOfPrometheus(t *testing.T) {
	c, err := loaded(t, []string{"--prometheus-base-url=https://prometheus:9090/of/us?key=secret"}, nil, "")
	require.NoError(t, err)
	told := fmt.Sprint(about(c)...)
	assert.Contains(t, told, "https://prometheus:9090/of/us")
	assert.NotContains(t, told, "secret")
}
