package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the JSON log format
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"llmd.ai/workload-variant-autoscaler/pkg/release"
)

func main() {
	os.Exit(cli.Run(newCommand()))
}

func newCommand() *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   "manager",
		Short: "Scale the variants of large language models",
		Long: `manager decides how many replicas each VariantAutoscaling object's target needs
and writes the number into the target's scale subresource.

Every setting can be a flag, an environment variable, or an entry of the ConfigMap
CONFIG_MAP_NAME. A flag overrides a variable, and a variable overrides the ConfigMap.
--leader-elect is LEADER_ELECT in both. The ConfigMap has each setting as its own entry, or in
its entry config.yaml. Without the entry config.yaml, the file of --config-file is used.

Examples:
  # In a cluster, with a configuration file and two replicas:
  manager --config-file=/etc/wva/config.yaml --leader-elect --metrics-bind-address=:8443

  # From a workstation, on a cluster that does not grow:
  manager --kubeconfig=$HOME/.kube/config --prometheus-base-url=https://prometheus.example:9090 --wva-limited-mode

  # Show the decisions; objects with spec.actuation "Off" are not scaled:
  kubectl get va -A`,
		Version: release.This().Version,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(o.logs, nil); err != nil {
				return fmt.Errorf("setting up logs: %w", err)
			}
			ctrl.SetLogger(klog.Background())
			return run(ctrl.SetupSignalHandler(), o, command.Flags())
		},
	}
	sets := o.flags()
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	width, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sets, width)
	return command
}
