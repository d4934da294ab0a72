package adopt

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Adoption is what becomes of a Deployment.
type Adoption struct {
	Object *v1alpha1.VariantAutoscaling
	// Autoscalers are what scales the Deployment now; the bounds are those of the first.
	Autoscalers []Autoscaler
	// Notes say what is missing and what to look at.
	Notes []string
}

// Autoscaler is a HorizontalPodAutoscaler or a ScaledObject.
type Autoscaler struct {
	Kind, Name string
	Min, Max   int32
	// Notes say what else than its bounds counts.
	Notes []string
}

// wishes are what the user says of all Deployments.
type wishes struct {
	model, accelerator string
	actuation          v1alpha1.Actuation
	// instance is the controller instance that the objects are for.
	instance string
	// prices are those of the manager.
	prices config.UnitCosts
	// onNodes are the types of accelerators of the nodes, sorted; empty where the nodes may not be read.
	onNodes []capacity.Accelerator
}

// adopt makes the object of a Deployment. It fails when the model is not known.
func adopt(d *appsv1.Deployment, autoscalers []Autoscaler, names *inventory.Names, w wishes) (*Adoption, error) {
	model := w.model
	if model == "" {
		var err error
		if model, err = servedModel(&d.Spec.Template.Spec); err != nil {
			return nil, fmt.Errorf("in Deployment %s: %w", d.Name, err)
		}
	}
	a := &Adoption{Object: &v1alpha1.VariantAutoscaling{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: v1alpha1.DefaultTargetAPIVersion, Kind: v1alpha1.DefaultTargetKind, Name: d.Name},
			ModelID:        model,
			Actuation:      w.actuation,
		},
	}}
	if w.instance != "" {
		a.Object.Labels = map[string]string{v1alpha1.LabelControllerInstance: w.instance}
	}
	a.devices(d, names, w)
	a.bounds(autoscalers)
	if owner := metav1.GetControllerOf(d); owner != nil {
		a.note("it belongs to %s %s, which may set its replicas back: see that it does not before actuation is Scale", owner.Kind, owner.Name)
	}
	return a, nil
}

func (a *Adoption) note(format string, arguments ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, arguments...))
}

// devices sets the accelerator and how many devices a replica takes.
func (a *Adoption) devices(d *appsv1.Deployment, names *inventory.Names, w wishes) {
	takes, err := inventory.TemplateTakes(&d.Spec.Template)
	switch {
	case err != nil:
		a.note("what a replica takes cannot be read: %v", err)
	case takes.Devices == 0:
		a.note("its pods ask for no accelerator, so how many more fit is counted by CPU and memory alone: add the device to resources.limits")
	default:
		a.Object.Spec.AcceleratorCount = ptr.To(int32(min(takes.Devices, 1<<20)))
	}
	name, _, err := names.Resolve("", "", &d.Spec.Template, nil)
	switch asked := names.Of(w.accelerator); {
	case w.accelerator != "":
		a.Object.Spec.Accelerator = w.accelerator
		if err == nil && name.Known() && name.Short != asked.Short {
			a.note("--accelerator is %s and the pod template selects %s nodes, so that no replica would fit: correct one of them", w.accelerator, name)
		} else if len(w.onNodes) > 0 && !slices.Contains(w.onNodes, asked.Short) {
			a.note("--accelerator is %s, and no node has one: the nodes have %s", w.accelerator, joined(w.onNodes))
		}
		name = asked
	case err != nil:
		a.note("its accelerator is not clear: %v; --accelerator sets it", err)
	case name.Known():
		a.Object.Spec.Accelerator = w.priced(name)
	case takes.Devices > 0:
		a.note("its template names no type of accelerator, so that of the nodes that its pods run on counts, and a node autoscaler cannot tell it: " +
			"add a node selector by the product label, or name it with --accelerator")
	}
	if _, priced := w.prices.Of(name.Device()); !priced && name.Known() && takes.Devices > 0 {
		a.note("there is no price for %s, so a replica counts by the memory of its devices: set spec.variantCost, or the price of %s beside those of other accelerators", name.Short, name.Short)
	}
}

// joined are the names of accelerators in a sentence.
func joined(all []capacity.Accelerator) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = string(a)
	}
	return strings.Join(texts, ", ")
}

// priced is the name by which the manager's prices know an accelerator; without a price, its
// type and memory. The form that a product label has too, such as SXM4, tells no price.
func (w wishes) priced(name inventory.Name) string {
	for _, price := range w.prices.Prices {
		if price.Device.Covers(name.Device()) {
			return price.Device.String()
		}
	}
	name.Form = ""
	return name.String()
}

// bounds takes those of the autoscaler.
func (a *Adoption) bounds(autoscalers []Autoscaler) {
	if len(autoscalers) == 0 {
		a.note("no HorizontalPodAutoscaler or ScaledObject is on it, so there is no upper bound: set spec.maxReplicas for one")
		return
	}
	first := autoscalers[0]
	a.Autoscalers = autoscalers
	a.Object.Spec.MinReplicas, a.Object.Spec.MaxReplicas = ptr.To(first.Min), ptr.To(first.Max)
	if len(autoscalers) > 1 {
		a.note("%d autoscalers are on it, and the bounds of %s %s count", len(autoscalers), first.Kind, first.Name)
	}
	for _, autoscaler := range autoscalers {
		a.Notes = append(a.Notes, autoscaler.Notes...)
	}
}
