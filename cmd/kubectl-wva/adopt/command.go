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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const long = `Write VariantAutoscaling objects for Deployments that already serve models. The Deployments
do not change. With actuation "Off", the default, the autoscaler does not scale them yet: it
only shows what it would do.

  model                  from the arguments of vLLM or SGLang: the served model name, else
                         "serve MODEL", --model or --model-path
  accelerator, devices   from the pod template: resource limits, and the node selector or
                         required node affinity by a product label
  bounds                 from the HorizontalPodAutoscaler or ScaledObject on it

With --slo-ttft, --slo-itl or both the models get an SLO, and the autoscaler sizes for it: a
service class for each, in the ConfigMap of the manager, for this namespace alone. Without an
SLO, saturation alone sizes a model.

The objects go to the standard output. Notes on what is missing, and the next steps, go to
the standard error: also where Prometheus cannot be asked, or does not scrape the manager, as
"kubectl wva shadow" needs. --apply also creates the objects.`

const examples = `  # Look at it, then create it
  kubectl wva adopt llama-8b
  kubectl wva adopt llama-8b --apply

  # With an SLO: 1 s to the first token, 50 ms to each further one
  kubectl wva adopt llama-8b --slo-ttft 1000ms --slo-itl 50ms

  # Several, as files for a repository
  kubectl wva adopt llama-8b llama-70b -n chat > variants.yaml

  # One whose arguments do not name the model
  kubectl wva adopt my-server --model meta-llama/Llama-3.1-8B --accelerator H100`

type options struct {
	cluster *cluster.Flags
	form    output.Form
	wishes  wishes
	slo     slo
	// written is spec.actuation as it was given.
	written    string
	prometheus prometheus.Flags
	apply      bool
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
	f.DurationVar(&o.slo.ttft, "slo-ttft", 0, "SLO of the models: time to the first token, such as 1000ms.")
	f.DurationVar(&o.slo.itl, "slo-itl", 0, "SLO of the models: mean time per further token, such as 50ms.")
	o.prometheus.Add(command)
	f.BoolVar(&o.apply, "apply", false, "Create the objects in the cluster.")
	return command
}

func (o *options) check(names []string) error {
	o.wishes.actuation = v1alpha1.Actuation(o.written)
	if err := o.slo.check(); err != nil {
		return err
	}
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
	adoptions, promised, said, err := o.adopt(ctx, api, namespace, names)
	for _, note := range said {
		output.Note(notes, note)
	}
	if err != nil {
		return err
	}
	if note := o.scraped(ctx, api); note != "" {
		output.Note(notes, note)
	}
	if err := o.write(out, adoptions, promised.of); err != nil {
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
	if o.apply && len(promised.of.Data) > 0 {
		if err := apply(ctx, api, promised.of); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(notes, "written: service classes in ConfigMap %s/%s\n", promised.of.Namespace, promised.of.Name)
	}
	_, err = io.WriteString(notes, goOn(adoptions, o.slo, o.apply))
	return err
}

// apply adds entries to a ConfigMap and leaves all others as they are.
func apply(ctx context.Context, api client.Client, entries *corev1.ConfigMap) error {
	patch, err := yaml.Marshal(entries)
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", entries.Namespace, entries.Name, err)
	}
	err = api.Patch(ctx, entries.DeepCopy(), client.RawPatch(types.ApplyYAMLPatchType, patch), client.FieldOwner(owner))
	if err != nil {
		return fmt.Errorf("writing service classes to ConfigMap %s/%s, which who installed the manager can do with this document and `kubectl apply --server-side -f -`: %w",
			entries.Namespace, entries.Name, cluster.Advise(err, "patch", "configmaps", entries.Namespace))
	}
	return nil
}

// adopt reads the cluster and makes the objects, and the service classes of their models. A Deployment
// that has an object is passed over, but for the SLO of its model.
func (o *options) adopt(ctx context.Context, api client.Client, namespace string, names []string) (all []*Adoption, promised *classes, notes []string, err error) {
	manager, err := o.prometheus.Manager(ctx, api)
	if err != nil {
		return nil, nil, nil, err
	}
	notes = append(notes, manager.Notes...)
	o.wishes.instance = manager.Config.ControllerInstance
	accelerators, said := manager.Names(ctx, api)
	notes = append(notes, said...)
	o.wishes.prices, said = manager.Prices(ctx, api)
	notes = append(notes, said...)
	if o.wishes.accelerator != "" {
		o.wishes.onNodes = onNodes(ctx, api, accelerators)
	}
	known, at, said := manager.ServiceClasses(ctx, api)
	notes, promised = append(notes, said...), newClasses(known, at, o.slo)
	if !manager.Config.Hybrid && o.slo != (slo{}) {
		notes = append(notes, "the manager is in capacity-only mode, in which no SLO counts: EXPERIMENTAL_PROACTIVE_MODEL=true ends that")
	}
	there, err := cluster.Variants(ctx, api, namespace)
	if err != nil {
		return nil, nil, notes, err
	}
	_, unreadable := cluster.Readable(there)
	notes = append(notes, unreadable...)
	autoscalers, said, err := autoscalersOf(ctx, api, namespace)
	notes = append(notes, said...)
	if err != nil {
		return nil, nil, notes, err
	}
	for _, name := range names {
		var d appsv1.Deployment
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d)
		if apierrors.IsNotFound(err) {
			return nil, nil, notes, fmt.Errorf("there is no Deployment %s in namespace %s: %q shows which there are", name, namespace, "kubectl get deployments -A")
		} else if err != nil {
			return nil, nil, notes, cluster.Advise(err, "get", "deployments", namespace)
		}
		object, err := adopted(there, name)
		if err != nil {
			return nil, nil, notes, err
		}
		if object != nil {
			notes = append(notes, fmt.Sprintf("Deployment %s has VariantAutoscaling %s already, and is passed over", name, object.Name))
		} else {
			a, err := adopt(&d, autoscalers[name], accelerators, o.wishes)
			if err != nil {
				return nil, nil, notes, err
			}
			for _, note := range a.Notes {
				notes = append(notes, "Deployment "+name+": "+note)
			}
			all, object = append(all, a), a.Object
		}
		var named []config.ClassReference
		if ref := object.Spec.SLOClassRef; ref != nil {
			named = append(named, config.ClassReference{Variant: object.Name, Class: ref.Name, Key: ref.Key})
		}
		note, err := promised.add(decision.ModelKey{Namespace: namespace, ID: object.Spec.ModelID}, name, named...)
		if err != nil {
			return nil, nil, notes, err
		}
		if note != "" {
			notes = append(notes, "Deployment "+name+": "+note)
		}
	}
	return all, promised, notes, nil
}

// adopted is the object that scales a Deployment; nil without one. It is an error when
// the name of the object to be is taken.
func adopted(there *v1alpha1.VariantAutoscalingList, name string) (*v1alpha1.VariantAutoscaling, error) {
	var taken *v1alpha1.VariantAutoscaling
	for i := range there.Items {
		v := &there.Items[i]
		target := v.Spec.ScaleTargetRef
		if target.Name == name && cmp.Or(target.Kind, v1alpha1.DefaultTargetKind) == v1alpha1.DefaultTargetKind {
			return v, nil
		}
		if v.Name == name {
			taken = v
		}
	}
	if taken != nil {
		if err := cluster.Unreadable(taken); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("VariantAutoscaling %s is there already and scales %s: rename it, or write the object of Deployment %s by hand",
			name, cmp.Or(taken.Spec.ScaleTargetRef.Name, "nothing"), name)
	}
	return nil, nil
}

// write writes the objects, and the ConfigMap if it has any entry: as YAML documents, or as JSON in one
// List.
func (o *options) write(out io.Writer, adoptions []*Adoption, promised *corev1.ConfigMap) error {
	var documents []any
	var objects []client.Object
	for _, a := range adoptions {
		objects = append(objects, a.Object)
	}
	if len(promised.Data) > 0 {
		objects = append(objects, promised)
	}
	for _, one := range objects {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", one.GetObjectKind().GroupVersionKind().Kind, one.GetName(), err)
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
func goOn(adoptions []*Adoption, wish slo, applied bool) string {
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
		line("Create the object. With actuation Off, the default, the autoscaler only watches.", "kubectl wva adopt "+first.Name+" -n "+first.Namespace+wish.flags()+" --apply")
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
