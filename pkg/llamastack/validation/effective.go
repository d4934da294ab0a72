package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Effective is the object as it is run. It has what v1alpha1 said and the schema of v1alpha2
// refuses, as far as Kubernetes takes it: such objects ran before. The rest, nil where there is none,
// cannot be run.
func Effective(object *v1alpha2.LlamaStackDistribution) (*v1alpha2.LlamaStackDistribution, *v1alpha2.Rejected) {
	carried, _ := v1alpha2.ReadV1alpha1Extras(object)
	if carried.Rejected == nil {
		return object, nil
	}
	object = object.DeepCopy()
	rest := carried.Rejected.DeepCopy()
	w := object.Spec.Workload
	if w == nil {
		w = &v1alpha2.Workload{}
	}
	if a := rest.Autoscaling; a != nil && scales(a) {
		rest.Autoscaling = nil
		if ptr.Deref(a.MinReplicas, 0) == 0 {
			a.MinReplicas = nil
		}
		if a.MaxReplicas > 0 {
			w.Autoscaling, object.Spec.Workload = a, w
		}
	}
	if b := rest.PodDisruptionBudget; b != nil && b.MinAvailable == nil && b.MaxUnavailable == nil {
		rest.PodDisruptionBudget = nil
		w.PodDisruptionBudget, object.Spec.Workload = &v1alpha2.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}, w
	}
	if *rest == (v1alpha2.Rejected{}) {
		return object, nil
	}
	return object, rest
}

// scales says whether a HorizontalPodAutoscaler can be made, or none is wanted. A least number of
// none counts as one, and a target may be more than what is requested.
func scales(a *v1alpha2.Autoscaling) bool {
	target := func(percentage *int32) bool { return percentage == nil || *percentage >= 1 }
	return a.MaxReplicas == 0 ||
		a.MaxReplicas > 0 && ptr.Deref(a.MinReplicas, 0) >= 0 && ptr.Deref(a.MinReplicas, 0) <= a.MaxReplicas &&
			target(a.TargetCPUUtilizationPercentage) && target(a.TargetMemoryUtilizationPercentage)
}

// effective warns of what is run in another way than it is written.
func effective(object *v1alpha2.LlamaStackDistribution) []string {
	carried, _ := v1alpha2.ReadV1alpha1Extras(object)
	is, rest := Effective(object)
	if carried.Rejected == nil {
		return nil
	}
	var warnings []string
	if a := carried.Rejected.Autoscaling; a != nil && (rest == nil || rest.Autoscaling == nil) {
		how := "the server is not scaled, because maxReplicas is 0"
		if w := is.Spec.Workload; w != nil && w.Autoscaling != nil {
			how = fmt.Sprintf("the server is scaled up to %d replicas", a.MaxReplicas)
		}
		warnings = append(warnings, "spec.server.autoscaling: "+how+"; v1alpha2 takes maxReplicas and minReplicas of at least 1 and targets of at most 100")
	}
	if b := carried.Rejected.PodDisruptionBudget; b != nil && (rest == nil || rest.PodDisruptionBudget == nil) {
		warnings = append(warnings, "spec.server.podDisruptionBudget: it is empty and counts as maxUnavailable: 1, which v1alpha2 wants to be written")
	}
	return warnings
}
