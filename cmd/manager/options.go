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

// verbosityFlag is the flag of the logs themselves that is another name of LOG_LEVEL.
const (
	verbosityFlag    = "v"
	defaultVerbosity = 2
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
			if alias != verbosityFlag {
				addSetting(settings, key, alias, "Another name of --"+key.Flag()+".")
			}
		}
	}
	for _, idle := range config.WithoutEffect() {
		addFlag(settings, idle.Flag(), "", "No effect: "+idle.Why+".", idle.Switch)
	}
	o.logs.Verbosity = logsapi.VerbosityLevel(defaultVerbosity)
	logsapi.AddFlags(o.logs, sets.FlagSet("logs"))
	return sets
}

func addSetting(set *pflag.FlagSet, key config.Key, name, help string) {
	addFlag(set, name, key.Default, help, key.Kind == config.KindBool)
}

// addFlag adds a flag whose value is checked with all others, and not while the command
// line is read, which would end with the first that is wrong. A switch needs no value.
func addFlag(set *pflag.FlagSet, name, value, help string, isSwitch bool) {
	if !isSwitch {
		set.String(name, value, help)
		return
	}
	set.Var(&switched{value}, name, help)
	set.Lookup(name).NoOptDefVal = "true"
}

// switched is the text after a switch.
type switched struct{ text string }

// String implements pflag.Value.
func (s *switched) String() string { return s.text }

// Set implements pflag.Value.
func (s *switched) Set(text string) error {
	s.text = text
	return nil
}

// Type implements pflag.Value.
func (*switched) Type() string { return "bool" }

// sources are where settings come from before the cluster is known: the flags that were
// given, the environment and the file.
func (o *options) sources(flags *pflag.FlagSet, lookup func(string) (string, bool)) (config.Sources, error) {
	sources := config.Sources{Flags: map[string]string{}, Lookup: lookup, FileName: o.configFile}
	flags.Visit(func(f *pflag.Flag) { sources.Flags[f.Name] = f.Value.String() })
	if o.configFile == "" {
		return sources, nil
	}
	content, err := os.ReadFile(o.configFile)
	if err != nil {
		return sources, fmt.Errorf("reading the file of --config-file: %w", err)
	}
	sources.File = content
	return sources, nil
}
