package controller

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// overlay remembers what was written until the cache has seen it, so that a round
// that follows a write at once does not decide on, nor write over, what was before.
type overlay struct {
	scales   map[types.UID]*autoscalingv1.Scale
	variants map[types.UID]*v1alpha1.VariantAutoscaling
}

func newOverlay() *overlay {
	return &overlay{scales: map[types.UID]*autoscalingv1.Scale{}, variants: map[types.UID]*v1alpha1.VariantAutoscaling{}}
}

// scale is what was written when that is newer than what was read.
func (o *overlay) scale(read *autoscalingv1.Scale) *autoscalingv1.Scale {
	written := o.scales[read.UID]
	if written == nil {
		return read
	}
	if newer(written.ResourceVersion, read.ResourceVersion) {
		return written
	}
	delete(o.scales, read.UID)
	return read
}

// variant is the same for objects of ours, whose status was written.
func (o *overlay) variant(read *v1alpha1.VariantAutoscaling) *v1alpha1.VariantAutoscaling {
	written := o.variants[read.UID]
	if written == nil {
		return read
	}
	if newer(written.ResourceVersion, read.ResourceVersion) {
		return written
	}
	delete(o.variants, read.UID)
	return read
}

// newer compares the versions of one object. Versions that cannot be compared leave
// the cache in its right.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// forget drops what was written to objects that are gone.
func (o *overlay) forget(seen *observation) {
	scales, variants := map[types.UID]bool{}, map[types.UID]bool{}
	for _, v := range seen.variants {
		variants[v.object.UID] = true
		if v.target.scale != nil {
			scales[v.target.scale.UID] = true
		}
	}
	for uid := range o.scales {
		if !scales[uid] {
			delete(o.scales, uid)
		}
	}
	for uid := range o.variants {
		if !variants[uid] {
			delete(o.variants, uid)
		}
	}
}
