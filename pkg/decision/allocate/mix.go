package allocate

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

// Unpriced reports whether there is a variant of which nobody gave the price. What replicas of
// these cost together is then no sum of money: some of it is memory of devices.
func Unpriced(variants []*limit.Variant) bool {
	return slices.ContainsFunc(variants, func(v *limit.Variant) bool { return v.In.Unpriced })
}

// PricedMix names so many replicas of each variant.
func PricedMix(variants []*limit.Variant, replicas []int) contract.Finding {
	return mixOf(variants, replicas, func(v *limit.Variant, n int) contract.Finding { return contract.SaysReplicasOf.With(n, v.In.Name) })
}

// UnpricedMix names so many replicas of each variant, and the devices that they take.
func UnpricedMix(variants []*limit.Variant, replicas []int) contract.Finding {
	return mixOf(variants, replicas, func(v *limit.Variant, n int) contract.Finding {
		if v.In.Request == nil || v.In.Request.Shape.Devices == 0 {
			return contract.SaysReplicasOf.With(n, v.In.Name)
		}
		shape := v.In.Request.Shape
		return contract.SaysReplicasTaking.With(n, v.In.Name, n*shape.Devices*max(1, shape.Pods), shape.Device())
	})
}

func mixOf(variants []*limit.Variant, replicas []int, says func(*limit.Variant, int) contract.Finding) contract.Finding {
	var parts []any
	for i, n := range replicas {
		if n > 0 {
			parts = append(parts, says(variants[i], n))
		}
	}
	return contract.SaysMix.With(parts...)
}

// targetsOf are how many replicas are asked for of each.
func targetsOf(variants []*limit.Variant) []int {
	replicas := make([]int, len(variants))
	for i, v := range variants {
		replicas[i] = v.Target
	}
	return replicas
}
