package rate

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/demand"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Model is a model of whose variants it is known what one replica serves.
type Model struct {
	demand.Model

	// Sized is set when sizing for the promised latency takes part, and Rated when it is
	// known what a replica of any variant serves.
	Sized, Rated bool
	Variants     []*Variant
}

// Variant is a variant with what one of its replicas serves.
type Variant struct {
	fleet.Variant

	Rate Rate
	// Price is what one of its replicas is compared by.
	Price capacity.Cost
	// ScarceFor is the model that lacks the room of this one's replicas.
	ScarceFor *contract.ModelKey
}

// SetVariants gives the model its variants, also as the stages before see them.
func (m *Model) SetVariants(variants []*Variant) {
	m.Variants = variants
	m.Model.SetVariants(signal.Views(variants, func(v *Variant) *fleet.Variant { return &v.Variant }))
}
