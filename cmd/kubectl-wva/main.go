package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/version"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/capacity"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/lint"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/migrate"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay"
)

// exitInterrupted is what shells expect after Ctrl-C.
const exitInterrupted = 130

func main() {
	err := cli.RunNoErrOutput(newCommand())
	switch {
	case errors.Is(err, replay.ErrInterrupted):
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "kubectl-wva",
		Short: "Look at the variants of large language models and their room, and try policies on them",
		Long: `kubectl-wva shows what the Workload Variant Autoscaler and its scheduler see, by
the same model of capacity. It reads with your own permissions and changes nothing.

Put it on the PATH, and kubectl takes it as its own: "kubectl wva".`,
		Version:     version.Get().GitVersion,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl wva"},
	}
	flags := &cluster.Flags{}
	flags.Add(command.PersistentFlags())
	command.AddCommand(capacity.NewCommand(flags), lint.NewCommand(), migrate.NewCommand(), replay.NewCommand(flags))
	return command
}
