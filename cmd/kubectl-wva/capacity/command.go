package capacity

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

const long = `Show which pod holds each device of the cluster, how many more replicas of each variant
fit, which free devices no replica can use, and which replicas to move to make room.

The autoscaler and the scheduler count what fits in the same way: devices, CPU, memory and
pod slots of nodes that are ready, not cordoned and whose taints are tolerated. Room is
subtracted for replicas that wait for a node or have no pod yet, and for rolling updates.
Without -A only the variants and the waiting replicas of one namespace count.
A number with "<=" is an upper bound; the column BOUND names what the pods ask for that is
not modelled.

The ConfigMap of accelerator names (--accelerator-names) gives accelerators their names.

Nodes that look the same share a line, unless --all or -o wide is given. Colours are only
for terminals; NO_COLOR=1 turns them off.`

const examples = `  # The whole cluster
  kubectl wva capacity -A

  # Every node by itself, with its free CPU, memory and pod slots
  kubectl wva capacity -A -o wide

  # The variants of one namespace; the devices of all others count as held by others
  kubectl wva capacity --namespace team-a

  # How many more replicas of each variant fit, for a script
  kubectl wva capacity -A -o json | jq '.variants[] | {name, slots}'`

// wide is the form of the table with what else nodes have.
const wide = "wide"

// options are what the command line says.
type options struct {
	cluster *cluster.Flags
	form    output.Form
	all     bool
	names   string
}

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := &options{cluster: flags}
	command := &cobra.Command{
		Use:          "capacity",
		Aliases:      []string{"cap"},
		Short:        "Show devices, what holds them, and how many more replicas fit",
		Long:         long,
		Example:      examples,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.form.Add(command, output.Table, wide, output.JSON, output.YAML)
	flags.AddAll(command)
	command.Flags().BoolVar(&o.all, "all", false, "Show every node by itself, also those without devices.")
	command.Flags().StringVar(&o.names, "accelerator-names", "", "ConfigMap (NAMESPACE/NAME) with names of accelerators, the same as for the autoscaler and the scheduler; without it the manager's, if there is one.")
	return command
}

func (o *options) run(ctx context.Context, out, complaints io.Writer) error {
	names, err := parseNames(o.names)
	if err != nil {
		return err
	}
	namespace, err := o.cluster.Namespace()
	if err != nil {
		return err
	}
	api, err := o.cluster.Client()
	if err != nil {
		return err
	}
	seen, err := read(ctx, api, source{namespace: namespace, names: names})
	if err != nil {
		return err
	}
	for _, warning := range seen.warnings {
		output.Note(complaints, warning)
	}
	capacity := assemble(seen)
	switch o.form.String() {
	case output.JSON:
		return capacity.WriteJSON(output.Plain(out))
	case output.YAML:
		return capacity.WriteYAML(output.Plain(out))
	}
	style, _ := output.StyleOf(out)
	lines := capacity.Table(style, report.Detail{All: o.all, Wide: o.form.String() == wide})
	if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("writing the capacity: %w", err)
	}
	return nil
}
