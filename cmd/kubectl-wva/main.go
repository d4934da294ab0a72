package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/adopt"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/capacity"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/explain"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/lint"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/migrate"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/shadow"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/status"
	"llmd.ai/workload-variant-autoscaler/pkg/release"
)

// exitInterrupted is what shells expect after Ctrl-C.
const exitInterrupted = 130

func main() {
	root := newCommand()
	root.SetOut(output.ForPeople(os.Stdout))
	root.SetErr(output.ForPeople(os.Stderr))
	root.SetArgs(asCompleter(os.Args[0], os.Args[1:]))
	err := hinted(root, cli.RunNoErrOutput(root))
	switch {
	case errors.Is(err, replay.ErrInterrupted):
		os.Exit(exitInterrupted)
	case err != nil:
		_, _ = fmt.Fprintln(output.ForPeople(os.Stderr), "error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "kubectl-wva",
		Short: "Show what the autoscaler decides and what fits, and try scaling policies",
		Long: `Show what the Workload Variant Autoscaler decides and why, and how many more replicas fit on
the cluster. Write and check its objects, and try scaling policies on your traffic.

The program kubectl-wva is a kubectl plugin: put it on the PATH and run "kubectl wva". It has
the permissions of your kubeconfig. Only --apply and --rollback change a cluster.`,
		Example: `  # All variants at a glance
  kubectl wva status -A`,
		Version:      release.This().Version,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl wva"},
		SilenceUsage: true,
	}
	command.CompletionOptions.DisableDefaultCmd = true
	command.SetUsageTemplate(usage)
	command.SetFlagErrorFunc(flagError)
	flags := cluster.NewFlags()
	flags.Add(command.PersistentFlags())
	command.AddCommand(
		status.NewCommand(flags), explain.NewCommand(flags), adopt.NewCommand(flags), shadow.NewCommand(flags),
		capacity.NewCommand(flags), lint.NewCommand(), migrate.NewCommand(flags), replay.NewCommand(flags),
		newCompletion(), newOptions(), newVersion(),
	)
	command.InitDefaultHelpCmd()
	for _, c := range command.Commands() {
		sayUsage(c)
		if c.Name() == "help" {
			c.Example = "  kubectl wva help capacity"
		}
	}
	return command
}
