package acceleratorplacement

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// maxShapes bounds the outlook; the weightiest shapes stay.
const maxShapes = 200

// replicas are how many pods of a variant there are.
type replicas struct {
	// placed are on a node, unplaced on none yet.
	placed, unplaced int
}

// count finds the variants of the pods with devices, and counts them by variant.
func (p *Plugin) count(pods []*corev1.Pod) map[types.NamespacedName]replicas {
	// Pods of one owner are of one variant: the chain is followed once.
	byOwner := map[owner]*types.NamespacedName{}
	counts := map[types.NamespacedName]replicas{}
	for _, pod := range pods {
		by := ownerOf(pod)
		if by == (owner{}) {
			continue
		}
		name, known := byOwner[by]
		if !known {
			targets, _ := p.owners.of(pod)
			if v := p.variants.of(targets); v != nil {
				name = &types.NamespacedName{Namespace: v.Namespace, Name: v.Name}
			}
			byOwner[by] = name
		}
		if name == nil {
			continue
		}
		c := counts[*name]
		if pod.Spec.NodeName != "" {
			c.placed++
		} else {
			c.unplaced++
		}
		counts[*name] = c
	}
	return counts
}

// outlookOf is what the variants still expect, and the shapes that they come in. It
// follows from what they want and may want, never from what was. The outlook is nil,
// which is neutral, when no variant says its shape. The order of the variants is of
// no account.
func outlookOf(names *inventory.Names, variants []*v1alpha1.VariantAutoscaling, count map[types.NamespacedName]replicas) (placement.Outlook, []capacity.Shape) {
	weights, waiting := map[capacity.Shape]int64{}, map[capacity.Shape]int64{}
	for _, v := range variants {
		shape, ok := shapeSaid(names, v)
		if !ok {
			continue
		}
		pods := max(shape.Pods, 1)
		shape.Pods = 1
		e := expected(v, shape, count[types.NamespacedName{Namespace: v.Namespace, Name: v.Name}], pods)
		weights[shape] += e.Weight
		waiting[shape] += e.Waiting
	}
	if len(weights) == 0 {
		return nil, nil
	}
	shapes := slices.SortedFunc(maps.Keys(weights), func(a, b capacity.Shape) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), compareShapes(a, b))
	})
	shapes = shapes[:min(len(shapes), maxShapes)]
	outlook := make(placement.Outlook, 0, len(shapes))
	for _, shape := range shapes {
		if weights[shape] > 0 {
			outlook = append(outlook, placement.Expected{Shape: shape, Weight: weights[shape], Waiting: waiting[shape]})
		}
	}
	return outlook, shapes
}

// expected are the pods that one variant still expects, where one replica is so many
// pods.
func expected(v *v1alpha1.VariantAutoscaling, shape capacity.Shape, c replicas, pods int) placement.Expected {
	wanted, most := max(replicasWanted(v)*pods-c.placed, c.unplaced), -1
	if v.Spec.MaxReplicas != nil {
		most = int(*v.Spec.MaxReplicas) * pods
	}
	return placement.Expecting(shape, wanted, c.placed, most)
}

// replicasWanted is how many replicas the variant wants now, as far as its status
// says. A decision that is only shown makes no replicas.
func replicasWanted(v *v1alpha1.VariantAutoscaling) int {
	if d := v.Status.DesiredOptimizedAlloc; d != nil && d.NumReplicas != nil && v.Spec.Actuation != v1alpha1.ActuationOff {
		return int(*d.NumReplicas)
	}
	if c := v.Status.CurrentAlloc; c != nil && c.NumReplicas != nil {
		return int(*c.NumReplicas)
	}
	return 0
}

func compareShapes(a, b capacity.Shape) int {
	return cmp.Or(
		cmp.Compare(b.Devices, a.Devices),
		cmp.Compare(a.Accelerator, b.Accelerator),
		cmp.Compare(a.MemoryGiB, b.MemoryGiB),
		cmp.Compare(a.Form, b.Form),
		cmp.Compare(a.MilliCPU, b.MilliCPU),
		cmp.Compare(a.MemoryBytes, b.MemoryBytes),
	)
}
