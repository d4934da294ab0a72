package controller

import (
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// overlay remembers what was written until the cache has seen it, so that a round
// that follows a write at once does not decide on, nor write over, what was before.
type overlay struct {
	scales   written[*autoscalingv1.Scale]
	variants written[*v1alpha1.VariantAutoscaling]
}

func newOverlay() *overlay {
	return &overlay{scales: written[*autoscalingv1.Scale]{}, variants: written[*v1alpha1.VariantAutoscaling]{}}
}

// written are objects as they were written last.
type written[T metav1.Object] map[types.UID]T

// over is what was written when that is newer than what was read. Versions that cannot be
// compared leave the cache in its right.
func (w written[T]) over(read T) T {
	ours, ok := w[read.GetUID()]
	if !ok {
		return read
	}
	order, err := resourceversion.CompareResourceVersion(ours.GetResourceVersion(), read.GetResourceVersion())
	if err == nil && order > 0 {
		return ours
	}
	delete(w, read.GetUID())
	return read
}

// forget drops what was written to objects that are gone, and returns those that are there.
func (o *overlay) forget(seen *observation) (there map[types.UID]bool) {
	there = map[types.UID]bool{}
	for _, v := range seen.variants {
		there[v.object.UID] = true
		if v.target.scale != nil {
			there[v.target.scale.UID] = true
		}
	}
	maps.DeleteFunc(o.scales, func(uid types.UID, _ *autoscalingv1.Scale) bool { return !there[uid] })
	maps.DeleteFunc(o.variants, func(uid types.UID, _ *v1alpha1.VariantAutoscaling) bool { return !there[uid] })
	return there
}
