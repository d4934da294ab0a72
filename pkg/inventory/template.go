package inventory

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// ErrClaims says that the devices of the pod are chosen by resource claims.
var ErrClaims = errors.New("devices served through resource claims are not modelled")

// Takes is what one pod of a template takes from a node.
type Takes struct {
	// Resource is the resource that counts the pod's devices; empty without devices.
	Resource corev1.ResourceName
	Devices  int
	MilliCPU int64
	// MemoryBytes is the memory request.
	MemoryBytes int64
	// Extended is what it takes of further extended resources, sorted by them.
	Extended []extended
	// Beyond are the resources that it requests too and the model does not know, sorted.
	Beyond []corev1.ResourceName
}

// PodTakes adds up the requests of a pod as the scheduler does: containers, init
// containers and sidecars, pod-level requests, overhead, and a resize under way.
// It is an error when the pod asks for devices of several kinds.
func PodTakes(pod *corev1.Pod) (Takes, error) {
	return takesOf(requestsOf(pod))
}

// requestsOf adds up the requests with Kubernetes' own helper. The helper adds the
// overhead to the pod-level requests in place where these are big decimals, such as
// 2.5Gi, so it gets a copy of them.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	if pod.Spec.Resources != nil && pod.Spec.Overhead != nil {
		own := *pod
		own.Spec.Resources = pod.Spec.Resources.DeepCopy()
		pod = &own
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// DeviceOf is the first device resource that a container of the pod asks for, or
// empty. It is cheap: most pods ask for none.
func DeviceOf(pod *corev1.Pod) corev1.ResourceName {
	for _, containers := range [...][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for resource, quantity := range containers[i].Resources.Requests {
				if IsDevice(resource) && quantity.Sign() > 0 {
					return resource
				}
			}
		}
	}
	return ""
}

// UsesDevices reports whether the pod asks for any devices.
func UsesDevices(pod *corev1.Pod) bool { return DeviceOf(pod) != "" }

// TemplateTakes is PodTakes for a pod that the template will make. A limit without
// a request is a request, as the API server will have it.
func TemplateTakes(template *corev1.PodTemplateSpec) (Takes, error) {
	return PodTakes(PodOf(template))
}

// PodOf is the pod that the API server makes of a template to which admission adds
// nothing.
func PodOf(template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Spec.Containers = withLimitsAsRequests(template.Spec.Containers)
	pod.Spec.InitContainers = withLimitsAsRequests(template.Spec.InitContainers)
	if r := template.Spec.Resources; r != nil && len(r.Limits) > 0 {
		whole := *r
		whole.Requests = wholePodRequests(pod, r)
		pod.Spec.Resources = &whole
	}
	return pod
}

// wholePodRequests are the requests of the pod as a whole, which has limits: what it
// says, else what its containers ask for together, else its limit.
func wholePodRequests(pod *corev1.Pod, whole *corev1.ResourceRequirements) corev1.ResourceList {
	requests := corev1.ResourceList{}
	for resource, limit := range whole.Limits {
		if resourcehelper.IsSupportedPodLevelResource(resource) {
			requests[resource] = limit
		}
	}
	for resource, sum := range resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}) {
		// Huge pages are never more than what is asked for.
		if resource == corev1.ResourceCPU || resource == corev1.ResourceMemory {
			requests[resource] = sum
		}
	}
	maps.Copy(requests, whole.Requests)
	return requests
}

func withLimitsAsRequests(containers []corev1.Container) []corev1.Container {
	defaulted := slices.Clone(containers)
	for i := range defaulted {
		r := &defaulted[i].Resources
		if len(r.Limits) == 0 {
			continue
		}
		requests := maps.Clone(r.Limits)
		maps.Copy(requests, r.Requests)
		r.Requests = requests
	}
	return defaulted
}

func takesOf(requests corev1.ResourceList) (Takes, error) {
	var t Takes
	for resource, quantity := range requests {
		switch {
		case resource == corev1.ResourceCPU:
			t.MilliCPU = milli(quantity, most)
		case resource == corev1.ResourceMemory:
			t.MemoryBytes = amount(quantity, most)
		case quantity.Sign() <= 0 || resource == corev1.ResourcePods:
		case IsDevice(resource):
			if t.Resource != "" {
				first, second := min(t.Resource, resource), max(t.Resource, resource)
				return Takes{}, fmt.Errorf("it asks for both %s and %s, and replicas with devices of two kinds are not modelled", first, second)
			}
			t.Resource, t.Devices = resource, int(amount(quantity, most))
		case isExtended(resource):
			t.Extended = append(t.Extended, extended{resource, amount(quantity, most)})
		default:
			t.Beyond = append(t.Beyond, resource)
		}
	}
	slices.SortFunc(t.Extended, compareExtended)
	slices.Sort(t.Beyond)
	return t, nil
}
