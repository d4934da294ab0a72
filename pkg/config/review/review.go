package review

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Target is a scale target. Versions of its kind do not matter.
type Target struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String names the target as messages do.
func (t Target) String() string { return t.Kind.Kind + " " + t.Name }

// Autoscaler is another object that decides the replicas of a target.
type Autoscaler struct {
	// Kind and Name are those of the object: HorizontalPodAutoscaler.
	Kind, Name string
	// Owner is the kind and name of the object that makes it, and would make it again; empty for none.
	Owner  string
	Target Target
}

// String names the autoscaler as messages do.
func (a Autoscaler) String() string {
	if a.Owner == "" {
		return a.Kind + " " + a.Name
	}
	return a.Kind + " " + a.Name + " (which " + a.Owner + " makes: change it there)"
}

// Surroundings are what there is beside an object.
type Surroundings struct {
	// Variants may have the object itself.
	Variants    []*v1alpha1.VariantAutoscaling
	Autoscalers []Autoscaler
	// Scalable says whether a kind has a scale subresource; known is false where nobody
	// can tell. Nil: nobody can.
	Scalable func(schema.GroupVersionKind) (scalable, known bool)
	// Classes are the service classes; nil where they are not known.
	Classes *config.ServiceClasses
}

// BuiltIn is a Scalable that knows Kubernetes' own workloads, for who asks no cluster.
func BuiltIn(gvk schema.GroupVersionKind) (scalable, known bool) {
	switch gvk.Group {
	case "apps":
		return gvk.Kind == "Deployment" || gvk.Kind == "StatefulSet" || gvk.Kind == "ReplicaSet", true
	case "":
		return gvk.Kind == "ReplicationController", true
	case "batch":
		return false, true
	}
	return false, false
}

// TargetOf is the target of an object. The error names the field.
func TargetOf(v *v1alpha1.VariantAutoscaling) (Target, error) {
	gvk, err := v.Spec.ScaleTargetRef.GroupVersionKind()
	if err == nil && v.Spec.ScaleTargetRef.Name == "" {
		err = ErrOlderForm
	}
	return Target{Kind: gvk.GroupKind(), Namespace: v.Namespace, Name: v.Spec.ScaleTargetRef.Name}, err
}

// ErrOlderForm is said of an object that names no target.
var ErrOlderForm = fmt.Errorf("spec.scaleTargetRef is missing, so the object is of an older form: run %q and apply what it writes", "kubectl wva migrate")

// SharedTarget says that other objects scale a target, which none of them then does.
func SharedTarget(others []string, target fmt.Stringer) string {
	return fmt.Sprintf("VariantAutoscaling %s also scales %s: delete all but one", strings.Join(others, ", "), target)
}

// AutoscalerOnTarget says that other autoscalers, each by kind and name, scale a target that
// an object in mode Scale is for.
func AutoscalerOnTarget(others []string, target fmt.Stringer) string {
	return fmt.Sprintf("%s also scales %s: delete it, or set spec.actuation to Metric and let it act on the metric wva_desired_replicas", strings.Join(others, ", "), target)
}

// Object is what is to be refused of an object, and what is only worth a warning.
func Object(v *v1alpha1.VariantAutoscaling, around Surroundings) (errs []error, warnings []string) {
	errs = fields(v)
	target, err := TargetOf(v)
	if err != nil {
		return append(errs, err), nil
	}
	if others := around.sharing(v, target); len(others) > 0 {
		errs = append(errs, fmt.Errorf("spec.scaleTargetRef: %s", SharedTarget(others, target)))
	}
	if around.Scalable != nil {
		gvk, _ := v.Spec.ScaleTargetRef.GroupVersionKind()
		if scalable, known := around.Scalable(gvk); known && !scalable {
			errs = append(errs, fmt.Errorf("spec.scaleTargetRef: %s has no scale subresource, so its replicas cannot be set: name an object that has one, such as a Deployment", gvk.Kind))
		}
	}
	if others := around.scaling(target); len(others) > 0 && (v.Spec.Actuation == "" || v.Spec.Actuation == v1alpha1.ActuationScale) {
		warnings = append(warnings, AutoscalerOnTarget(others, target))
	}
	if ref := v.Spec.SLOClassRef; ref != nil && around.Classes != nil {
		known := config.Dynamic{ServiceClasses: *around.Classes}
		if p := known.Promise(decision.ModelKey{Namespace: v.Namespace, ID: v.Spec.ModelID}, []config.ClassReference{{Variant: v.Name, Class: ref.Name, Key: ref.Key}}); p.Problem != "" {
			warnings = append(warnings, "spec.sloClassRef: "+p.Problem)
		}
	}
	return errs, warnings
}

// Change is Object for an object that takes the place of old. What was wrong before is
// only worth a warning: labels and finalizers can be changed all the same, and several
// faults be mended one after the other.
func Change(old, v *v1alpha1.VariantAutoscaling, around Surroundings) (errs []error, warnings []string) {
	before, _ := Object(old, around)
	found, warnings := Object(v, around)
	for _, err := range found {
		if slices.ContainsFunc(before, func(b error) bool { return b.Error() == err.Error() }) {
			warnings = append(warnings, err.Error())
		} else {
			errs = append(errs, err)
		}
	}
	return errs, warnings
}

// fields is what is wrong with single fields.
func fields(v *v1alpha1.VariantAutoscaling) (errs []error) {
	_, policy := config.VariantPolicy(&v.Spec)
	_, _, cost := v.Spec.Cost()
	_, _, profile := v.Spec.Profile()
	for _, err := range []error{policy, cost, profile} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if v.Spec.ModelID == "" {
		errs = append(errs, fmt.Errorf("spec.modelID is missing: name the model as its clients do"))
	}
	return errs
}

// sharing are the other objects on a target.
func (s Surroundings) sharing(v *v1alpha1.VariantAutoscaling, target Target) (names []string) {
	for _, other := range s.Variants {
		if other.Namespace == v.Namespace && other.Name == v.Name {
			continue
		}
		if t, err := TargetOf(other); err == nil && t == target {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return names
}

// scaling are the autoscalers on a target, by kind and name.
func (s Surroundings) scaling(target Target) (names []string) {
	for _, a := range s.Autoscalers {
		if a.Target == target {
			names = append(names, a.String())
		}
	}
	slices.Sort(names)
	return names
}
