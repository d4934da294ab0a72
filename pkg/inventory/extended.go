package inventory

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// isExtended reports whether the resource is an extended one that counts no accelerators
// of a known convention: devices of a maker that nobody knows, network cards, licences.
// Nodes offer them and pods ask for them in whole numbers, so that they are counted
// whatever they are.
func isExtended(resource corev1.ResourceName) bool {
	name := string(resource)
	native := !strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/") || strings.HasPrefix(name, "requests.")
	return !native && !IsDevice(resource)
}

// extended is so much of an extended resource.
type extended struct {
	Resource corev1.ResourceName
	Count    int64
}

// offered gives every extended resource of the nodes an index, and lets the nodes hold
// what they offer of them.
func (inv *Inventory) offered() {
	for _, c := range inv.Carried {
		for _, e := range c.extended {
			if at, found := slices.BinarySearch(inv.extended, e.Resource); !found {
				inv.extended = slices.Insert(inv.extended, at, e.Resource)
			}
		}
	}
	for i, c := range inv.Carried {
		if len(c.extended) == 0 {
			continue
		}
		// They are sorted, so that the last one is at the end.
		last, _ := slices.BinarySearch(inv.extended, c.extended[len(c.extended)-1].Resource)
		other := make([]placement.Stock, last+1)
		for _, e := range c.extended {
			at, _ := slices.BinarySearch(inv.extended, e.Resource)
			other[at] = placement.Stock{Allocatable: e.Count, Free: e.Count}
		}
		inv.Cluster.Nodes[i].Other = other
	}
}

// Other is what a pod takes of extended resources, by no index.
func (t Takes) Other() []placement.Amount {
	var other []placement.Amount
	for _, e := range t.Extended {
		other = append(other, placement.Amount{Index: -1, Count: e.Count, Name: string(e.Resource)})
	}
	return other
}

// other is what the pods of a request take of the further resources of nodes, and what of
// them makes the count an upper bound. Requests that take the same share it.
func (inv *Inventory) other(takes Takes) (shared []placement.Amount, bounds []string) {
	var other []placement.Amount
	for _, amount := range takes.Other() {
		resource := corev1.ResourceName(amount.Name)
		at, found := slices.BinarySearch(inv.extended, resource)
		switch {
		case found:
			amount.Index = at
			if isFraction(resource) {
				bounds = append(bounds, amount.Name+" (parts of devices)")
			}
			if inv.claimed[resource] {
				bounds = append(bounds, amount.Name+claimedToo)
			}
		case inv.beyondNodes(resource):
			bounds = append(bounds, amount.Name+" (no node offers it)")
			continue
		}
		other = append(other, amount)
	}
	if other == nil {
		return nil, bounds
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, known := range inv.amounts {
		if slices.Equal(known, other) {
			return known, bounds
		}
	}
	inv.amounts = append(inv.amounts, other)
	return other, bounds
}

// beyondNodes reports whether something else than the node that offers it decides who gets
// the resource, so that none is offered and pods get it: pods hold it, or it counts parts of
// devices. A scheduler with an extender, such as HAMi's, ignores such resources; devices
// that come by resource claims are no node's either.
func (inv *Inventory) beyondNodes(resource corev1.ResourceName) bool {
	return !inv.declared[resource] && (inv.unoffered[resource] > 0 || isFraction(resource))
}

// declare notes of which resources any node has a word. One of which a node has none says
// that its device plugin was there: its pods were placed by what it offered.
func (inv *Inventory) declare() {
	for _, c := range inv.Carried {
		for i := range c.Devices {
			if d := &c.Devices[i]; d.Count > 0 {
				inv.declared[d.Resource] = true
			}
		}
		for _, e := range c.extended {
			inv.declared[e.Resource] = true
		}
		for _, resource := range c.exhausted {
			inv.declared[resource] = true
		}
	}
}

// missing notes what a pod holds of which no node has a word.
func (inv *Inventory) missing(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return // which is not placed yet
	}
	for _, containers := range [...][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for resource, quantity := range containers[i].Resources.Requests {
				if resource == corev1.ResourceCPU || resource == corev1.ResourceMemory || inv.declared[resource] || quantity.Sign() <= 0 {
					continue
				}
				if isExtended(resource) || IsDevice(resource) {
					inv.unoffered[resource]++
				}
			}
		}
	}
}

func compareExtended(a, b extended) int { return cmp.Compare(a.Resource, b.Resource) }
