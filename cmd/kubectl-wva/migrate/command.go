package migrate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/migration"
)

const long = `Turn manifests of earlier forms into the present ones, as text on the standard
output. Nothing in a cluster is changed.

  LlamaStackDistribution  llamastack.io/v1alpha1 becomes v1alpha2, field by field. What
                          v1alpha2 has no field for goes into an annotation, and each
                          object begins with comments that say which field went where.
  VariantAutoscaling      one that lists accelerators in spec.modelProfile becomes one
                          object for each of them. That of the label
                          inference.optimization/acceleratorName, else the first, keeps
                          the name and the Deployment; comments name the Deployments
                          that are to be made for the others.

Files have one or several documents, or Lists. What is of the present form stays as it
is. A document that cannot be turned is an error, and nothing is written.`

const examples = `  # What is there now, in the new form
  kubectl get llsd.v1alpha1.llamastack.io -A -o yaml | kubectl wva migrate -f - > servers.yaml

  # A file
  kubectl wva migrate -f my-llsd.yaml`

// kinds turn objects of their group and kind. The result may begin with comments.
var kinds = map[string]func(text []byte) ([]byte, error){
	v1alpha2.GroupName + " " + v1alpha2.Kind: llamaStack,
	v1alpha1.GroupName + " " + v1alpha1.Kind: variants,
}

// NewCommand is the command.
func NewCommand() *cobra.Command {
	var files []string
	command := &cobra.Command{
		Use:          "migrate -f FILE",
		Short:        "Turn manifests of earlier forms into the present ones",
		Long:         long,
		Example:      examples,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return errors.New("no file is given: name one with -f, or - for the standard input")
			}
			return run(files, command.InOrStdin(), command.OutOrStdout())
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil, "File with manifests, or - for the standard input. May be given several times.")
	return command
}

func run(files []string, in io.Reader, out io.Writer) error {
	var all [][]byte
	for _, file := range files {
		var text []byte
		var err error
		if file == "-" {
			text, err = io.ReadAll(in)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		turned, err := turn(file, text)
		if err != nil {
			return err
		}
		all = append(all, turned...)
	}
	_, err := out.Write(bytes.Join(all, []byte("---\n")))
	return err
}

// turn are the documents of a file in their present form.
func turn(file string, text []byte) ([][]byte, error) {
	var all [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, number, err)
		}
		turned, err := turnDocument(document)
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, number, err)
		}
		all = append(all, turned...)
	}
}

func turnDocument(text []byte) ([][]byte, error) {
	var object struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Metadata   struct{ Name string } `json:"metadata"`
		Items      []map[string]any      `json:"items"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	switch {
	case object.Kind == "" && object.APIVersion == "":
		return nil, nil // nothing but comments
	case strings.HasSuffix(object.Kind, "List"):
		var all [][]byte
		for i, item := range object.Items {
			one, err := yaml.Marshal(item)
			if err != nil {
				return nil, err
			}
			turned, err := turnDocument(one)
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i, err)
			}
			all = append(all, turned...)
		}
		return all, nil
	}
	group, _, _ := strings.Cut(object.APIVersion, "/")
	convert, ok := kinds[group+" "+object.Kind]
	if !ok {
		return nil, fmt.Errorf("%s %q of %s has no earlier form that is known: leave it out", object.Kind, object.Metadata.Name, object.APIVersion)
	}
	turned, err := convert(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", object.Kind, object.Metadata.Name, err)
	}
	return [][]byte{turned}, nil
}

// llamaStack has the moves of fields in comments before the object.
func llamaStack(text []byte) ([]byte, error) {
	migrated, err := migration.Migrate(text)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, move := range migrated.Moves {
		fmt.Fprintf(&all, "# %s\n", move)
	}
	all.Write(migrated.Text)
	return all.Bytes(), nil
}
