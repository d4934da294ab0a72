package acceleratorplacement

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// maxAccepted is how many types one pod may accept: the score tells twice as many places
// of an order apart, of which each type takes two.
const maxAccepted = 8

// accepted are the devices that a pod accepts whose variant names none, or that has no
// variant, in the order of its annotation, which may have the names that the cluster
// gives to products; none when it says nothing. The error tells its user what to write.
func accepted(names *inventory.Names, pod *corev1.Pod, resource corev1.ResourceName) ([]capacity.Device, error) {
	text, said := pod.Annotations[v1alpha1.AnnotationAccelerators]
	if !said {
		return nil, nil
	}
	wrong := func(why string) error {
		return fmt.Errorf("annotation %s is %q: %s; list accelerators in the order of preference, such as H100,A100-80GB",
			v1alpha1.AnnotationAccelerators, shorten(text), why)
	}
	parts := strings.Split(text, ",")
	if len(parts) > maxAccepted {
		return nil, wrong(fmt.Sprintf("it lists %d accelerators, and %d are the most", len(parts), maxAccepted))
	}
	devices := make([]capacity.Device, 0, len(parts))
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, wrong("an entry is empty")
		}
		if i := strings.IndexFunc(part, notInNames); i >= 0 {
			return nil, wrong(fmt.Sprintf("%q is no name of an accelerator", shorten(part)))
		}
		name, err := names.Of(part).As(resource)
		if err != nil {
			return nil, wrong(err.Error())
		}
		device := name.Device()
		for _, before := range devices {
			if before.Covers(device) {
				return nil, wrong(fmt.Sprintf("%s can never count after %s", device, before))
			}
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// notInNames is true for what no product or label value is written with.
func notInNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_. +", r)
}

// shorten keeps what others wrote from filling an event.
func shorten(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
