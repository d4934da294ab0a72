package adopt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const long = `Write VariantAutoscaling objects for Deployments that already serve models. The Deployments
do not change. With actuation "Off", the default, the autoscaler does not scale them yet: it
only shows what it would do.

  model                  from the arguments of vLLM or SGLang: the served model name, else
                         "serve MODEL", --model or --model-path
  accelerator, devices   from the pod template: resource limits, and the node selector or
                         required node affinity by a product label
  bounds                 from the HorizontalPodAutoscaler or ScaledObject on it

The objects go to the standard output. Notes on what is missing, and the next steps, go to
the standard error. --apply also creates the objects.`

const examples = `  # Look at it, then create it
  kubectl wva adopt llama-8b
  kubectl wva adopt llama-8b --apply

  # Several, as files for a repository
  kubectl wva adopt llama-8b llama-70b -n chat > variants.yaml

  # One whose arguments do not name the model
  kubectl wva adopt my-server --model meta-llama/Llama-3.1-8B --accelerator H100`

type options struct {
	cluster *cluster.Flags
	form    output.Form
	wishes  wishes
	// written is spec.actuation as it was given.
	written   string
	namespace string
	apply     bool
}

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := &options{cluster: flags}
	command := &cobra.Command{
		Use:               "adopt DEPLOYMENT...",
		Short:             "Write VariantAutoscaling objects for existing Deployments",
		Long:              long,
		Example:           examples,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: flags.CompleteNames(appsv1.SchemeGroupVersion.WithKind("DeploymentList")),
		RunE: func(command *cobra.Command, names []string) error {
			return o.run(command.Context(), names, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.form.Add(command, output.YAML, output.JSON)
	f := command.Flags()
	f.StringVar(&o.wishes.model, "model", "", "Name by which clients ask for the model; without it the one in the arguments of the container.")
	f.StringVar(&o.wishes.accelerator, "accelerator", "", "Type of accelerator, such as H100; without it the one that the pod template selects.")
	f.StringVar(&o.written, "actuation", string(v1alpha1.ActuationOff), "What is done with decisions: Off, Metric or Scale.")
	f.StringVar(&o.namespace, "manager-namespace", "", "Namespace of the manager; without it the manager is looked for in all.")
	f.BoolVar(&o.apply, "apply", false, "Create the objects in the cluster.")
	return command
}

func (o *options) check(names []string) error {
	o.wishes.actuation = v1alpha1.Actuation(o.written)
	known := []v1alpha1.Actuation{v1alpha1.ActuationOff, v1alpha1.ActuationMetric, v1alpha1.ActuationScale}
	if !slices.Contains(known, o.wishes.actuation) {
		return fmt.Errorf("--actuation is %q: expected Off, Metric or Scale", o.written)
	}
	if len(names) > 1 && o.wishes.model != "" {
		return errors.New("--model is for one Deployment: expected one name with it")
	}
	for i, name := range names {
		kind, rest, ok := strings.Cut(name, "/")
		if !ok {
			kind, rest = "deployment", name
		}
		if !slices.Contains([]string{"deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"}, strings.ToLower(kind)) {
			return fmt.Errorf("%q is no Deployment: expected its name, or deployment/NAME", name)
		}
		if slices.Contains(names[:i], rest) {
			return fmt.Errorf("%q is given twice: expected each Deployment once", rest)
		}
		names[i] = rest
	}
	return nil
}

func (o *options) run(ctx context.Context, names []string, out, notes io.Writer) error {
	if err := o.check(names); err != nil {
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
	adoptions, said, err := o.adopt(ctx, api, namespace, names)
	for _, note := range said {
		_, _ = fmt.Fprintln(notes, "note:", note)
	}
	if err != nil {
		return err
	}
	if err := o.write(out, adoptions); err != nil {
		return err
	}
	for _, a := range adoptions {
		if o.apply {
			if err := api.Create(ctx, a.Object.DeepCopy()); err != nil {
				return fmt.Errorf("creating VariantAutoscaling %s: %w", a.Object.Name, cluster.Advise(err, "create", v1alpha1.Resource, namespace))
			}
			_, _ = fmt.Fprintf(notes, "created: VariantAutoscaling %s/%s\n", namespace, a.Object.Name)
		}
	}
	_, err = io.WriteString(notes, goOn(adoptions, o.apply))
	return err
}

// adopt reads the cluster and makes the objects. A Deployment that has one is passed over.
func (o *options) adopt(ctx context.Context, api client.Client, namespace string, names []string) (all []*Adoption, notes []string, err error) {
	manager, err := installation.Find(ctx, api, o.namespace)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, manager.Notes...)
	o.wishes.instance = manager.Config.ControllerInstance
	accelerators, said := manager.Names(ctx, api)
	notes = append(notes, said...)
	o.wishes.prices, said = manager.Prices(ctx, api)
	notes = append(notes, said...)
	there, err := cluster.Variants(ctx, api, namespace)
	if err != nil {
		return nil, notes, err
	}
	_, unreadable := cluster.Readable(there)
	notes = append(notes, unreadable...)
	autoscalers, said, err := autoscalersOf(ctx, api, namespace)
	notes = append(notes, said...)
	if err != nil {
		return nil, notes, err
	}
	for _, name := range names {
		var d appsv1.Deployment
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d)
		if apierrors.IsNotFound(err) {
			return nil, notes, fmt.Errorf("there is no Deployment %s in namespace %s: %q shows which there are", name, namespace, "kubectl get deployments -A")
		} else if err != nil {
			return nil, notes, cluster.Advise(err, "get", "deployments", namespace)
		}
		has, err := adopted(there, name)
		if err != nil {
			return nil, notes, err
		}
		if has != "" {
			notes = append(notes, fmt.Sprintf("Deployment %s has VariantAutoscaling %s already, and is passed over", name, has))
			continue
		}
		a, err := adopt(&d, autoscalers[name], accelerators, o.wishes)
		if err != nil {
			return nil, notes, err
		}
		for _, note := range a.Notes {
			notes = append(notes, "Deployment "+name+": "+note)
		}
		all = append(all, a)
	}
	return all, notes, nil
}

// adopted is the object that scales a Deployment; empty without one. It is an error when
// the name of the object to be is taken.
func adopted(there *v1alpha1.VariantAutoscalingList, name string) (string, error) {
	var taken *v1alpha1.VariantAutoscaling
	for i := range there.Items {
		v := &there.Items[i]
		target := v.Spec.ScaleTargetRef
		if target.Name == name && cmp.Or(target.Kind, v1alpha1.DefaultTargetKind) == v1alpha1.DefaultTargetKind {
			return v.Name, nil
		}
		if v.Name == name {
			taken = v
		}
	}
	if taken != nil {
		if err := cluster.Unreadable(taken); err != nil {
			return "", err
		}
		return "", fmt.Errorf("VariantAutoscaling %s is there already and scales %s: rename it, or write the object of Deployment %s by hand",
			name, cmp.Or(taken.Spec.ScaleTargetRef.Name, "nothing"), name)
	}
	return "", nil
}

// write writes the objects: as YAML documents, or as JSON in one List.
func (o *options) write(out io.Writer, adoptions []*Adoption) error {
	var documents []any
	for _, a := range adoptions {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Object)
		if err != nil {
			return fmt.Errorf("writing VariantAutoscaling %s: %w", a.Object.Name, err)
		}
		// What users write: no status and no times.
		delete(object, "status")
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, "creationTimestamp")
		}
		documents = append(documents, object)
	}
	if o.form.String() == output.JSON {
		return o.form.Write(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": append([]any{}, documents...)})
	}
	var texts [][]byte
	for _, document := range documents {
		text, err := o.form.Marshal(document)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	_, err := output.Plain(out).Write(bytes.Join(texts, []byte("---\n")))
	return err
}

// goOn says what comes next, in the order in which it is safe.
func goOn(adoptions []*Adoption, applied bool) string {
	if len(adoptions) == 0 {
		return ""
	}
	var b strings.Builder
	first := adoptions[0].Object
	step := 0
	line := func(text, command string) {
		step++
		fmt.Fprintf(&b, "  %d. %s\n       %s\n", step, text, command)
	}
	b.WriteString("\nHow to go on (the same for each object):\n")
	if !applied {
		line("Create the object. With actuation Off, the default, the autoscaler only watches.", "kubectl wva adopt "+first.Name+" -n "+first.Namespace+" --apply")
	}
	line("See what it decides, and why.", "kubectl wva explain "+first.Name+" -n "+first.Namespace)
	if first.Spec.Actuation != v1alpha1.ActuationScale {
		line("After some days, see what it would have done.", "kubectl wva shadow "+first.Name+" -n "+first.Namespace)
		line("Let it scale.", fmt.Sprintf(`kubectl patch va %s -n %s --type merge -p '{"spec":{"actuation":"Scale"}}'`, first.Name, first.Namespace))
	}
	for _, a := range adoptions {
		for _, autoscaler := range a.Autoscalers {
			line(fmt.Sprintf("Remove the %s. While it is there, the object says Conflict and writes nothing.", autoscaler.Kind),
				fmt.Sprintf("kubectl delete %s %s -n %s", strings.ToLower(autoscaler.Kind), autoscaler.Name, a.Object.Namespace))
		}
	}
	return b.String()
}
