package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// options are what the command line says.
type options struct {
	logs       *logsapi.LoggingConfiguration
	features   featuregate.MutableFeatureGate
	configFile string
}

func newOptions() *options {
	return &options{logs: logsapi.NewLoggingConfiguration(), features: newFeatures()}
}

// flags are all flags in groups, for the help text: one per setting, and a few that
// say where the settings and the cluster are.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	general := sets.FlagSet("general")
	general.StringVar(&o.configFile, "config-file", "", "File with settings in YAML, by the names of the environment (LEADER_ELECT: true).")
	goFlags := flag.NewFlagSet("", flag.ContinueOnError)
	ctrlconfig.RegisterFlags(goFlags)
	general.AddGoFlagSet(goFlags)
	o.features.AddFlag(general)

	settings := sets.FlagSet("settings")
	for _, key := range config.Keys() {
		addSetting(settings, key, key.Flag(), key.Help)
		for _, alias := range key.Aliases {
			addSetting(settings, key, alias, "Another name of --"+key.Flag()+".")
		}
	}
	logsapi.AddFlags(o.logs, sets.FlagSet("logs"))
	return sets
}

func addSetting(set *pflag.FlagSet, key config.Key, name, help string) {
	if key.Kind == config.KindBool {
		set.Bool(name, key.Default == "true", help)
		return
	}
	set.String(name, key.Default, help)
}

// load reads the settings from flags that were given, the environment and the file.
func (o *options) load(flags *pflag.FlagSet, lookup func(string) (string, bool)) (config.Config, config.Sources, error) {
	sources := config.Sources{Flags: map[string]string{}, Lookup: lookup, FileName: o.configFile}
	flags.Visit(func(f *pflag.Flag) { sources.Flags[f.Name] = f.Value.String() })
	if o.configFile != "" {
		content, err := os.ReadFile(o.configFile)
		if err != nil {
			return config.Config{}, sources, fmt.Errorf("reading the file of --config-file: %w", err)
		}
		sources.File = content
	}
	loaded, err := config.Load(sources)
	return loaded, sources, err
}
