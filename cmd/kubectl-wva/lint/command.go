package lint

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/manifest"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
)

const long = `Check VariantAutoscaling manifests before you apply them: would the API server refuse an
object, does it contradict another one in the files, or name something that does not exist?
The command reads no cluster: it has the CRD of its own version, and refuses what that refuses,
in the same words. A file has one or several documents, or Lists. These kinds are read:

  VariantAutoscaling                     is checked
  HorizontalPodAutoscaler, ScaledObject  may be on the target of one
  ConfigMap of service classes           is checked, and has the classes that spec.sloClassRef
                                         may name
  ConfigMap of saturation thresholds, of scale to zero or of unit costs
                                         is checked

A ConfigMap is known by its published name. Without a ConfigMap of service classes spec.sloClassRef is not checked, and a warning says so.
Other kinds are ignored. With an error the command exits with 1, with a warning it does not.`

const examples = `  # A folder's manifests together
  kubectl wva lint my-app/*.yaml

  # What a chart renders
  helm template my-chart | kubectl wva lint -

  # For a script
  kubectl wva lint -o json my-app/*.yaml`

// NewCommand is the command.
func NewCommand() *cobra.Command {
	var form output.Form
	command := &cobra.Command{
		Use:          "lint FILE...",
		Short:        "Check VariantAutoscaling manifests for mistakes",
		Long:         long,
		Example:      examples,
		Args:         cobra.MinimumNArgs(1),
		SilenceUsage: true,
		RunE: func(command *cobra.Command, files []string) error {
			return run(files, command.InOrStdin(), command.OutOrStdout(), &form)
		},
	}
	form.Add(command, "text", output.JSON, output.YAML)
	return command
}

func run(files []string, in io.Reader, out io.Writer, form *output.Form) error {
	if slices.Contains(files, "") {
		return errors.New(`FILE is "": expected a file of manifests, or - for the standard input`)
	}
	found := &manifests{}
	for _, file := range files {
		if err := found.readFile(file, in); err != nil {
			return err
		}
	}
	findings := found.findings()
	if err := show(findings, out, form); err != nil {
		return err
	}
	wrong := 0
	for _, f := range findings {
		if f.wrong() {
			wrong++
		}
	}
	switch {
	case wrong == 1:
		return errors.New("1 error")
	case wrong > 1:
		return fmt.Errorf("%d errors", wrong)
	case len(found.variants) == 0 && found.settings == 0:
		return errors.New("the files have no VariantAutoscaling object: name one that has")
	case form.ForPrograms():
		return nil
	case len(found.variants) == 0:
		_, err := fmt.Fprintf(out, "ConfigMaps without an error: %d\n", found.settings)
		return err
	}
	_, err := fmt.Fprintf(out, "VariantAutoscaling objects without an error: %d\n", len(found.variants))
	return err
}

func show(findings []finding, out io.Writer, form *output.Form) error {
	if form.ForPrograms() {
		return form.Write(out, findings)
	}
	for _, f := range findings {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return nil
}

func (m *manifests) readFile(file string, in io.Reader) error {
	documents, err := manifest.Read(file, in)
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := m.read(file, d.Text); err != nil {
			return fmt.Errorf("%s: %w", d.Place, err)
		}
	}
	return nil
}
