package inventory

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// holder adds up what a pod holds of its node. It is used again for every pod.
type holder struct {
	cpu, memory resource.Quantity
	// devices are by the index of the node's Devices.
	devices []resource.Quantity
	// other are of the first ones of extended, as many as the node has.
	other    []resource.Quantity
	extended []corev1.ResourceName
}

// read adds up the requests of one pod as the scheduler does, on a node with those
// devices and so many extended resources.
func (h *holder) read(pod *corev1.Pod, devices []Devices, others int) {
	h.cpu, h.memory = resource.Quantity{}, resource.Quantity{}
	h.devices, h.other = h.devices[:0], h.other[:0]
	for range devices {
		h.devices = append(h.devices, resource.Quantity{})
	}
	for range others {
		h.other = append(h.other, resource.Quantity{})
	}
	if !plain(pod) {
		h.add(requestsOf(pod), devices)
		return
	}
	for i := range pod.Spec.Containers {
		h.add(pod.Spec.Containers[i].Resources.Requests, devices)
	}
}

func (h *holder) add(requests corev1.ResourceList, devices []Devices) {
	if len(requests) == 0 {
		return
	}
	if q, ok := requests[corev1.ResourceCPU]; ok {
		h.cpu.Add(q)
	}
	if q, ok := requests[corev1.ResourceMemory]; ok {
		h.memory.Add(q)
	}
	for i := range devices {
		if q, ok := requests[devices[i].Resource]; ok {
			h.devices[i].Add(q)
		}
	}
	for i := range h.other {
		if q, ok := requests[h.extended[i]]; ok {
			h.other[i].Add(q)
		}
	}
}

// plain says whether the requests of a pod are the sum of those of its containers,
// which spares the helper's maps for most pods: no init containers, nothing for the
// pod as a whole, and no container that holds more than it asks for.
func plain(pod *corev1.Pod) bool {
	if len(pod.Spec.InitContainers) > 0 || pod.Spec.Resources != nil || pod.Spec.Overhead != nil {
		return false
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Resources == nil {
			continue
		}
		container := containerOf(pod, status.Name, i)
		if container == nil {
			continue
		}
		requests := container.Resources.Requests
		if !within(status.Resources.Requests, requests) || !within(status.AllocatedResources, requests) ||
			resourcehelper.IsPodResizeInfeasible(pod) {
			return false
		}
	}
	return true
}

// containerOf is the container of that name, which is most often the one with the
// same index.
func containerOf(pod *corev1.Pod, name string, likely int) *corev1.Container {
	containers := pod.Spec.Containers
	if likely < len(containers) && containers[likely].Name == name {
		return &containers[likely]
	}
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}

// within says whether a container holds at most what it asks for.
func within(holds, asks corev1.ResourceList) bool {
	for name, has := range holds {
		asked, ok := asks[name]
		if !ok && has.Sign() != 0 || ok && has.Cmp(asked) > 0 {
			return false
		}
	}
	return true
}
