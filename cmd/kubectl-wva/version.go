package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/release"
)

// newVersion is the command that tells the version.
func newVersion() *cobra.Command {
	var form output.Form
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  kubectl wva version

  kubectl wva version -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			r := release.This()
			if form.ForPrograms() {
				return form.Write(command.OutOrStdout(), r)
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "kubectl wva %s (%s, %s)\n", r.Version, r.Go, r.Platform)
			return err
		},
	}
	form.Add(command, "text", output.JSON, output.YAML)
	return command
}
