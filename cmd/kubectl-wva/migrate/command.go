package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

const long = `Convert objects of earlier forms to the present form, as text. Only --apply changes the
cluster. It writes a backup first, which --rollback restores.

  VariantAutoscaling      one that lists accelerators, in spec.modelProfile or spec.variants,
                          becomes one object for each, NAME-ACCELERATOR, with a Deployment of
                          that name. One with a single accelerator keeps its name and target.
  HorizontalPodAutoscaler, ScaledObject
                          that follows such an object becomes one for each new object, with its
                          selector and target. The objects then get actuation Metric.
  ConfigMap accelerator-unit-costs
                          gives the objects their variantCost.
  Deployment              is the source of the skeletons of --deployments.
  LlamaStackDistribution  llamastack.io/v1alpha1 becomes v1alpha2, field by field. What
                          v1alpha2 has no field for goes into an annotation.

Files have one or several documents, or Lists. Objects of the present form stay as they are.
If something cannot be converted, an error names file, object and field, and nothing is
written.

Take the backup before you replace the CRD: the present one drops the earlier fields.`

const examples = `  # Before the upgrade: save the objects
  kubectl get va -A -o yaml > backup.yaml

  # Show the converted objects, or write them to files
  kubectl wva migrate -f backup.yaml
  kubectl wva migrate -f backup.yaml -f hpa.yaml -f deployment.yaml --deployments -o new

  # After the upgrade of the CRD: check with the API server, apply, undo
  kubectl wva migrate -f backup.yaml --apply --dry-run
  kubectl wva migrate -f backup.yaml --apply --backup before-upgrade
  kubectl wva migrate --rollback before-upgrade

  # Llama Stack servers, from a cluster
  kubectl get llamastackdistributions.v1alpha1.llamastack.io -A -o yaml | kubectl wva migrate -f - > servers.yaml`

type options struct {
	cluster *cluster.Flags
	files   []string
	live    bool
	// output is a form, or the name of a folder.
	output    string
	skeletons bool
	apply     bool
	dry       bool
	backup    string
	rollback  string
}

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := &options{cluster: flags}
	command := &cobra.Command{
		Use:          "migrate -f FILE",
		Short:        "Convert objects of earlier forms",
		Long:         long,
		Example:      examples,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			for name, expected := range map[string]string{"rollback": "the folder of the backup that --apply named", "backup": "a folder to write the backup to"} {
				if flag := command.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
					return fmt.Errorf("--%s is %q: expected %s", name, "", expected)
				}
			}
			return o.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	f := command.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "File with objects, or - for the standard input. May be given several times.")
	f.BoolVar(&o.live, "live", false, "Read the objects from the cluster, in place of files.")
	f.StringVarP(&o.output, "output", "o", output.YAML, "Form of the output, yaml or json, or else a folder to write one file for each object to.")
	f.BoolVar(&o.skeletons, "deployments", false, "Also write a skeleton of each new Deployment, from the one that the accelerators shared.")
	f.BoolVar(&o.apply, "apply", false, "Change the cluster, after a backup.")
	f.BoolVar(&o.dry, "dry-run", false, "With --apply or --rollback: let the API server check everything, and change nothing.")
	f.StringVar(&o.backup, "backup", "", "With --apply: folder to write the backup to; without it wva-backup- and the time.")
	f.StringVar(&o.rollback, "rollback", "", "Restore the backup in this folder, and delete the objects that --apply created.")
	flags.AddAll(command)
	return command
}

func (o *options) check() error {
	switch {
	case slices.Contains(o.files, ""):
		return errors.New(`-f is "": expected a file with objects, or - for the standard input`)
	case o.output == "":
		return errors.New(`-o is "": expected yaml, json or a folder`)
	case o.rollback != "" && (o.apply || o.live || len(o.files) > 0):
		return errors.New("--rollback goes with neither files nor --live nor --apply: expected it alone")
	case o.rollback != "":
	case o.live && len(o.files) > 0:
		return errors.New("-f and --live are both given: expected one of them")
	case !o.live && len(o.files) == 0:
		return errors.New("no file is given: name one with -f, or - for the standard input; --live reads the cluster")
	case o.dry && !o.apply:
		return errors.New("--dry-run goes with --apply or --rollback only: expected both or none")
	case o.backup != "" && !o.apply:
		return errors.New("--backup goes with --apply only: expected both or none")
	}
	return nil
}

func (o *options) run(ctx context.Context, in io.Reader, out, notes io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.rollback != "" {
		c, err := o.change(out, o.rollback)
		if err != nil {
			return err
		}
		return c.rollback(ctx)
	}
	given, err := o.read(ctx, in)
	if err != nil {
		return err
	}
	converted, err := convert(given, o.skeletons)
	if err != nil {
		return err
	}
	for _, note := range converted.Notes {
		output.Note(notes, note)
	}
	for _, missing := range converted.Missing {
		output.Note(notes, missing.String())
	}
	if !o.apply {
		switch {
		case o.live && len(converted.Made()) == 0:
			_, _ = fmt.Fprintln(notes, "note: nothing that was read is of an earlier form; -A reads all namespaces")
		case len(given) == 0:
			_, _ = fmt.Fprintln(notes, "note: the files have no object")
		}
		return o.write(out, notes, converted)
	}
	backup := o.backup
	if backup == "" {
		backup = "wva-backup-" + time.Now().Format("20060102-150405")
	}
	c, err := o.change(out, backup)
	if err != nil {
		return err
	}
	return c.apply(ctx, converted)
}

func (o *options) change(out io.Writer, backup string) (*change, error) {
	api, err := o.cluster.Client()
	if err != nil {
		return nil, err
	}
	// As kubectl does: the API server would drop in silence what its kinds do not know.
	strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
	return &change{api: strict, out: out, backup: backup, dry: o.dry}, nil
}

func (o *options) read(ctx context.Context, in io.Reader) ([]migration.Document, error) {
	namespace, err := o.cluster.Namespace()
	if err != nil {
		return nil, err
	}
	if !o.live {
		all, err := readFiles(o.files, in)
		if err == nil && o.apply {
			err = errors.Join(place(all, namespace), o.only(all, namespace))
		}
		return all, err
	}
	api, err := o.cluster.Client()
	if err != nil {
		return nil, err
	}
	return readLive(ctx, api, namespace)
}

// only refuses what --apply would not do as it is asked: objects of another namespace than
// --namespace names, as kubectl does, and servers of Llama Stack, which the cluster converts itself.
func (o *options) only(all []migration.Document, namespace string) error {
	for i := range all {
		switch d := &all[i]; {
		case d.Kind == v1alpha2.Kind:
			return d.Wrong(errors.New("--apply does not change it: write it without --apply, and give that to `kubectl apply -f`"))
		case d.Kind == "ConfigMap", d.Kind == kindDeployment: // which are only read
		case o.cluster.Named() && d.Namespace != namespace:
			return d.Wrong(fmt.Errorf("it is of namespace %s, and --namespace is %s: leave --namespace out, or give the objects of that namespace alone", d.Namespace, namespace))
		}
	}
	return nil
}

// place puts the objects that name no namespace into the one that is meant.
func place(all []migration.Document, namespace string) (err error) {
	for i := range all {
		d := &all[i]
		metadata, _ := d.Object["metadata"].(map[string]any)
		if d.Namespace != "" || metadata == nil {
			continue
		}
		if namespace == "" {
			return d.Wrong(errors.New("it names no namespace: expected --namespace in the place of -A"))
		}
		d.Namespace, metadata["namespace"] = namespace, namespace
		if d.Text, err = migration.Marshal(d.Object); err != nil {
			return err
		}
	}
	return nil
}

// write writes the objects: as one text, or as files of a folder.
func (o *options) write(out, notes io.Writer, c *migration.Conversion) error {
	documents := c.Documents
	if o.live {
		documents = c.Made()
	}
	switch o.output {
	case output.YAML:
		text, err := join(documents)
		if err != nil {
			return err
		}
		_, err = output.Plain(out).Write(text)
		return err
	case output.JSON:
		return writeJSON(out, documents)
	}
	if err := os.MkdirAll(o.output, 0o750); err != nil {
		return fmt.Errorf("making the folder of --output: %w", err)
	}
	for i := range documents {
		d := &documents[i]
		text, err := d.YAML()
		if err != nil {
			return err
		}
		name := strings.ToLower(d.Kind) + "-" + d.Name + ".yaml"
		if d.Namespace != "" {
			name = d.Namespace + "-" + name
		}
		path := filepath.Join(o.output, filepath.Base(name))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		_, _ = fmt.Fprintln(notes, "written:", path)
	}
	return nil
}

// writeJSON writes one List. What stands in comments as YAML is not in it.
func writeJSON(out io.Writer, documents []migration.Document) error {
	items := make([]any, 0, len(documents))
	for i := range documents {
		text, err := documents[i].YAML()
		if err != nil {
			return err
		}
		object, err := decode(text)
		if err != nil {
			return err
		}
		items = append(items, object)
	}
	return (&output.Form{}).Write(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
