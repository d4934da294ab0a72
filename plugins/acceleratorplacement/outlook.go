package acceleratorplacement

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// outlooks are the sizes on offer by accelerator, immutable once built.
type outlooks struct {
	byAccelerator map[capacity.Accelerator]placement.Outlook
	tables        map[capacity.Accelerator]*placement.Table
	// generation counts the changes of variants that the table knows of.
	generation uint64
}

// of is the outlook of one accelerator; nil, which is neutral, when the variants do
// not say which sizes they come in.
func (o *outlooks) of(a capacity.Accelerator) placement.Outlook {
	if o == nil {
		return nil
	}
	return o.byAccelerator[a]
}

// table is what the states of nodes with this accelerator are worth; nil is neutral.
func (o *outlooks) table(a capacity.Accelerator) *placement.Table {
	if o == nil {
		return nil
	}
	return o.tables[a]
}

// sizeWeight is the weight of each size on offer.
const sizeWeight = 1000

// outlooks are the present table; it is built when it is first asked for after a
// change.
func (v *variants) outlooks() *outlooks {
	generation := v.generation.Load()
	if table := v.table.Load(); table != nil && table.generation == generation {
		return table
	}
	// A change that comes while the table is built makes it old at once.
	table := buildOutlooks(v.informer.GetIndexer().List())
	table.generation = generation
	v.table.Store(table)
	return table
}

// buildOutlooks lists the sizes that the variants of each accelerator come in, every
// size once. An accelerator of which some variant does not say its size has none.
func buildOutlooks(objects []any) *outlooks {
	sizes := map[capacity.Accelerator][]int{}
	unsaid := map[capacity.Accelerator]bool{}
	for _, object := range objects {
		v, ok := variantIn(object)
		if !ok {
			continue
		}
		a := acceleratorSaid(v)
		if v.Spec.AcceleratorCount == nil || *v.Spec.AcceleratorCount < 1 {
			unsaid[a] = true
			continue
		}
		sizes[a] = append(sizes[a], int(*v.Spec.AcceleratorCount))
	}
	table := &outlooks{byAccelerator: map[capacity.Accelerator]placement.Outlook{}}
	for a, of := range sizes {
		if a == "" || unsaid[a] {
			continue
		}
		slices.Sort(of)
		for _, size := range slices.Compact(of) {
			table.byAccelerator[a] = append(table.byAccelerator[a], placement.Expected{
				Shape: capacity.Shape{Accelerator: a, Devices: size, Pods: 1}, Weight: sizeWeight,
			})
		}
	}
	table.tables = map[capacity.Accelerator]*placement.Table{}
	for a, outlook := range table.byAccelerator {
		whole := placement.Resources{Devices: 16}
		table.tables[a] = placement.NewTable(outlook, &placement.Cluster{
			Nodes: []placement.Node{{Accelerator: a, Allocatable: whole, Free: whole}},
		})
	}
	return table
}

// acceleratorSaid is the accelerator that the object itself names.
func acceleratorSaid(v *v1alpha1.VariantAutoscaling) capacity.Accelerator {
	said := cmp.Or(v.Spec.Accelerator, v.Labels[v1alpha1.LabelAcceleratorName])
	if said == "" && v.Status.CurrentAlloc != nil {
		said = v.Status.CurrentAlloc.Accelerator
	}
	return inventory.Normalize(said).Accelerator()
}
