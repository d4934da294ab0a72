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

// other is what the pods of a request take of the further resources of nodes. Requests
// that take the same share it.
func (inv *Inventory) other(takes Takes) []placement.Amount {
	other := takes.Other()
	for i := range other {
		if at, found := slices.BinarySearch(inv.extended, takes.Extended[i].Resource); found {
			other[i].Index = at
		}
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, known := range inv.amounts {
		if slices.Equal(known, other) {
			return known
		}
	}
	inv.amounts = append(inv.amounts, other)
	return other
}

func compareExtended(a, b extended) int { return cmp.Compare(a.Resource, b.Resource) }
