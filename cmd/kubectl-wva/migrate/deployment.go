package migrate

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// labelVariant tells the pods of the Deployments of one model apart, beside the labels by
// which their Service finds them all.
const labelVariant = "llm-d.ai/variant"

// skeleton is a Deployment for an object that has none, made from the one that all
// accelerators shared before. It has no replicas, so that nothing starts before somebody
// looked at it; what to look at stands in the notes.
func skeleton(old map[string]any, v *migration.Variant) (migration.Document, error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(old, &d); err != nil {
		return migration.Document{}, fmt.Errorf("the Deployment to make %s from: %w", v.Name, err)
	}
	made := appsv1.Deployment{TypeMeta: d.TypeMeta, Spec: *d.Spec.DeepCopy()}
	made.Namespace, made.Name = d.Namespace, v.Target()
	made.Labels = maps.Clone(d.Labels)
	made.Spec.Replicas = ptr.To[int32](0)
	template := &made.Spec.Template
	if made.Spec.Selector != nil {
		made.Spec.Selector.MatchLabels = with(made.Spec.Selector.MatchLabels, labelVariant, made.Name)
	}
	template.Labels = with(template.Labels, labelVariant, made.Name)

	notes := []string{fmt.Sprintf("its arguments are those of before: set what depends on %d x %s, such as --tensor-parallel-size", v.Count, v.Accelerator)}
	if device := inventory.DeviceOf(inventory.PodOf(template)); device == "" {
		notes = append(notes, "its pods ask for no device: add it to resources.limits")
	} else {
		setDevices(template, device, v.Count)
	}
	if dropped := withoutProduct(&template.Spec); len(dropped) > 0 {
		notes = append(notes, fmt.Sprintf("its node selector is without %v: select the nodes of %s", dropped, v.Accelerator))
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&made)
	if err != nil {
		return migration.Document{}, err
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return migration.Document{Kind: "Deployment", Namespace: made.Namespace, Name: made.Name, Object: object, Notes: notes}, nil
}

func with(labels map[string]string, name, value string) map[string]string {
	made := map[string]string{name: value}
	for k, v := range labels {
		if k != name {
			made[k] = v
		}
	}
	return made
}

// setDevices asks for so many devices in the container that asks for some.
func setDevices(template *corev1.PodTemplateSpec, device corev1.ResourceName, count int) {
	quantity := *resource.NewQuantity(int64(count), resource.DecimalSI)
	for i := range template.Spec.Containers {
		r := &template.Spec.Containers[i].Resources
		for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
			if _, ok := list[device]; ok {
				list[device] = quantity
			}
		}
	}
}

// withoutProduct drops the node selectors that name an accelerator.
func withoutProduct(spec *corev1.PodSpec) (dropped []string) {
	for _, label := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		alone := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{label: spec.NodeSelector[label]}}}
		if name, _, err := inventory.Resolve("", "", alone, nil); err == nil && name.Known() {
			delete(spec.NodeSelector, label)
			dropped = append(dropped, label)
		}
	}
	return dropped
}
