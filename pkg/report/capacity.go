package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"
)

// Capacity is what the devices of a cluster are used for and how many more replicas
// fit on it. Its JSON names are a published format. A number that is null is
// unknown, which is not zero.
type Capacity struct {
	Accelerators []AcceleratorCapacity `json:"accelerators"`
	Variants     []VariantCapacity     `json:"variants"`
	// Nodes are all nodes, those without devices too, sorted by name.
	Nodes []NodeCapacity `json:"nodes"`
	// Relocations are moves of replicas that would make room for a variant that has
	// none.
	Relocations []Relocation `json:"relocations"`
	// Notes say what could not be read, what that leaves out, and what to do.
	Notes []string `json:"notes"`
}

// AcceleratorCapacity is the devices of one type.
type AcceleratorCapacity struct {
	// Accelerator is empty for devices whose type nothing says.
	Accelerator string `json:"accelerator"`
	Nodes       int    `json:"nodes"`
	// NodesOut is how many of the nodes take no pods.
	NodesOut int `json:"nodesOut"`
	Devices  int `json:"devices"`
	// Free is the number of free devices on nodes that take pods.
	Free *int `json:"free"`
	// Unusable is how many of the free devices no replica of a known variant can
	// use; null also when no variant asks for this type.
	Unusable *int `json:"unusable"`
	// LargestHole is the largest number of free devices on one node that takes pods.
	LargestHole *int `json:"largestHole"`
}

// VariantCapacity is the room that there is for one variant.
type VariantCapacity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Model     string `json:"model"`
	// Target is the kind and the name of the scale target.
	Target string `json:"target"`
	// Shape is what one replica takes; null when it is not known.
	Shape *Shape `json:"shape"`
	// Placed is how many pods of the variant hold a node, Waiting how many hold none;
	// those that are being deleted are neither.
	Placed  *int `json:"placed"`
	Waiting *int `json:"waiting"`
	// Slots is how many more replicas fit now, beside those of all variants that wait
	// for a node or have no pod yet and those that rolling updates may add, if nothing
	// else is placed.
	Slots *int `json:"slots"`
	// SlotsBound names what is not modelled and makes Slots an upper bound; without
	// it Slots is exact.
	SlotsBound string `json:"slotsBound,omitempty"`
	// LargestHole is the largest number of free devices on one node that takes the
	// variant's pods.
	LargestHole *int `json:"largestHole"`
	// Explanation says why no more replicas fit, or why that is not known.
	Explanation string `json:"explanation,omitempty"`
}

// Shape is what one replica takes.
type Shape struct {
	// Text is the shape as people write it: 4xH100.
	Text        string `json:"text"`
	Accelerator string `json:"accelerator,omitempty"`
	Devices     int    `json:"devices"`
	Pods        int    `json:"pods"`
	// MilliCPU and MemoryBytes are the requests per pod.
	MilliCPU    int64 `json:"milliCPU"`
	MemoryBytes int64 `json:"memoryBytes"`
}

// NodeCapacity is one node.
type NodeCapacity struct {
	Name string `json:"name"`
	// Out says why the node takes no new pods; empty means that it does.
	Out string `json:"out,omitempty"`
	// Reason says that, and what else of the node is doubtful.
	Reason string         `json:"reason,omitempty"`
	Pools  []PoolCapacity `json:"pools"`
	// What no pod holds.
	FreeMilliCPU    *int64 `json:"freeMilliCPU"`
	FreeMemoryBytes *int64 `json:"freeMemoryBytes"`
	FreePods        *int   `json:"freePods"`
}

// PoolCapacity is the devices of one type on a node.
type PoolCapacity struct {
	// Accelerator has everything that is known of the device: H100-80GB-HBM3. It is
	// empty when nothing says the type.
	Accelerator string `json:"accelerator"`
	Devices     int    `json:"devices"`
	// Free is negative where pods hold more than the node offers.
	Free    *int     `json:"free"`
	Holders []Holder `json:"holders"`
}

// Holder is a pod that holds devices.
type Holder struct {
	Pod string `json:"pod"`
	// Variant is the namespace and the name of the variant; empty for other pods.
	Variant string `json:"variant,omitempty"`
	Devices int    `json:"devices"`
}

// Relocation is a set of moves that makes room for one more replica of a variant.
type Relocation struct {
	// Variant is the namespace and the name of the variant that would get room.
	Variant string `json:"variant"`
	// Shape is what its replica takes.
	Shape string `json:"shape"`
	// Node is where the room would be.
	Node  string `json:"node"`
	Moves []Move `json:"moves"`
}

// Move is one replica that would go elsewhere.
type Move struct {
	Pod     string `json:"pod"`
	Variant string `json:"variant"`
	Shape   string `json:"shape"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// Key is the namespace and the name of the variant.
func (v VariantCapacity) Key() string { return v.Namespace + "/" + v.Name }

// WriteJSON writes the capacity, indented, with a final newline.
func (c Capacity) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c.complete()); err != nil {
		return fmt.Errorf("writing the capacity: %w", err)
	}
	return nil
}

// WriteYAML writes the same as YAML.
func (c Capacity) WriteYAML(w io.Writer) error {
	text, err := yaml.Marshal(c.complete())
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		return fmt.Errorf("writing the capacity: %w", err)
	}
	return nil
}

// complete has empty lists where there were none, and everything in order.
func (c Capacity) complete() Capacity {
	c.Accelerators = listed(c.Accelerators)
	c.Variants = listed(c.Variants)
	c.Relocations = listed(c.Relocations)
	c.Notes = listed(c.Notes)
	c.Nodes = listed(c.Nodes)
	slices.SortStableFunc(c.Accelerators, func(a, b AcceleratorCapacity) int { return cmp.Compare(a.Accelerator, b.Accelerator) })
	slices.SortStableFunc(c.Variants, func(a, b VariantCapacity) int { return cmp.Compare(a.Key(), b.Key()) })
	slices.SortStableFunc(c.Nodes, func(a, b NodeCapacity) int { return cmp.Compare(a.Name, b.Name) })
	for i := range c.Nodes {
		pools := listed(c.Nodes[i].Pools)
		for j := range pools {
			pools[j].Holders = listed(pools[j].Holders)
			slices.SortStableFunc(pools[j].Holders, func(a, b Holder) int {
				// The pods of variants come first.
				return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Pod, b.Pod))
			})
		}
		c.Nodes[i].Pools = pools
	}
	return c
}

func rank(h Holder) int {
	if h.Variant == "" {
		return 1
	}
	return 0
}

// listed is a copy of a list that is never null.
func listed[T any](list []T) []T { return append(make([]T, 0, len(list)), list...) }
