package inventory

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// spans says why the devices of a node cannot be had without those of other nodes, or
// empty: its label says that it is part of a slice with more devices than it has, and
// such a slice is given out whole.
func (o *offer) spans(labels map[string]string) string {
	label := o.family.topology
	topology := labels[label]
	if label == "" || topology == "" || o.all == 0 {
		return ""
	}
	devices := devicesOf(topology)
	switch {
	case devices == 0:
		return fmt.Sprintf("label %s says %s, which is no topology such as 2x4", label, topology)
	case devices > o.all:
		return fmt.Sprintf("label %s says %s: the node's %d %s are part of a slice of %d over several hosts, and replicas that span nodes are not modelled",
			label, topology, o.all, o.resource, devices)
	}
	return ""
}

// devicesOf is the number of devices of a topology such as 2x4 or 4x4x4, at most
// mostDevices, or 0 of a text that is none.
func devicesOf(topology string) int {
	devices := 1
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.Atoi(side)
		if err != nil || n < 1 {
			return 0
		}
		devices = min(devices*min(n, mostDevices), mostDevices)
	}
	return devices
}

// Spanning reports whether the devices are parts of a slice over several hosts.
func (d *Devices) Spanning() bool { return d.slice.Known() }

// Spans reports whether the pod can only be meant as a part of what spans several
// hosts where no host has as much: its node selector asks for a topology of more
// devices than it takes.
func (t Takes) Spans(spec *corev1.PodSpec) bool {
	c, ok := conventionOf(t.Resource)
	return ok && c.family.topology != "" && devicesOf(spec.NodeSelector[c.family.topology]) > t.Devices
}

// spanning is the error for pods that can only be meant as parts of a slice over
// several hosts: no node has such devices to itself, and the template selects a
// topology of more devices than a pod asks for, or nodes have such slices. Of these
// none is no number.
func (inv *Inventory) spanning(spec *corev1.PodSpec, wanted Name, takes Takes, shape capacity.Shape) error {
	resource := takes.Resource
	c, ok := conventionOf(resource)
	if !ok || c.family.topology == "" {
		return nil
	}
	label := c.family.topology
	asked := spec.NodeSelector[label]
	alike := func(i int) bool { return asked == "" || inv.Nodes[i].Labels[label] == asked }
	for _, i := range inv.ofType[shape.Accelerator] {
		if d, ok := inv.Carried[i].Under(resource); ok && d.Count > 0 && shape.Device().Covers(d.Name.Device()) && alike(i) {
			return nil
		}
	}
	if takes.Spans(spec) {
		return fmt.Errorf("the pods ask for %d %s of a slice of topology %s, and replicas that span nodes are not modelled", shape.Devices, resource, asked)
	}
	for _, i := range inv.ofType[""] {
		d, ok := inv.Carried[i].Under(resource)
		if ok && d.Spanning() && wanted.Covers(d.slice) && inv.Carried[i].Out == "" && alike(i) {
			return fmt.Errorf("the %s of %s are parts of slices over several hosts, such as on node %s, and replicas that span nodes are not modelled",
				resource, wanted, inv.Nodes[i].Name)
		}
	}
	return nil
}
