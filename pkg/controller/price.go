package controller

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// warnOfPrices tells the variants of which nobody gave the price of a replica, where another variant
// of the model takes something else or has a price: which of them is cheaper is a guess then.
func warnOfPrices(variants []*variant) {
	byModel := map[decision.ModelKey][]*variant{}
	for _, v := range variants {
		byModel[v.model()] = append(byModel[v.model()], v)
	}
	for _, all := range byModel {
		for _, v := range all {
			if v.priced {
				continue
			}
			differs, compared := false, ""
			for _, other := range all {
				device, count := v.takes()
				also, number := other.takes()
				differs = differs || other.priced || also != device || number != count
				if other.priced {
					compared = ", which cannot be compared with the prices of the model's other variants"
				}
			}
			if differs {
				v.warn(v1alpha1.ReasonPriceUnknown, "no price for %s: set spec.variantCost, or the price of its accelerator; until then a replica counts by the memory of its devices%s", v.devicesText(), compared)
			}
		}
	}
}

// takes are the devices of one replica, and how many.
func (v *variant) takes() (device capacity.Device, count int) {
	if v.Shape != nil {
		return v.Shape.Device(), v.Shape.Devices * v.Shape.Pods
	}
	return capacity.Device{Accelerator: v.Accelerator}, v.devices
}

// devicesText says what a replica takes, such as 2xL40S.
func (v *variant) devicesText() string {
	device, count := v.takes()
	if count <= 0 || device.Accelerator == "" {
		return "a replica"
	}
	return fmt.Sprintf("%dx%s", count, device)
}
