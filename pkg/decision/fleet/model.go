package fleet

import (
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Model is a model with the load of all its replicas.
type Model struct {
	signal.Model

	Load     Load
	Variants []*Variant
}

// Variant is a variant with the states of its replicas, those that are unlike the others, and the load
// of those that serve.
type Variant struct {
	signal.Variant

	Fleet Fleet
	Odd   Odd
	Load  Load
	// Crowded is set where no more of its replicas fitted when the round began.
	Crowded bool
}

// SetVariants gives the model its variants, also as the stages before see them.
func (m *Model) SetVariants(variants []*Variant) {
	m.Variants = variants
	m.Model.SetVariants(signal.Views(variants, func(v *Variant) *signal.Variant { return &v.Variant }))
}

// JudgeReplicas finds the states of the model's replicas, those that are unlike the others, and how
// loaded each is.
func (m *Model) JudgeReplicas() {
	for _, v := range m.Variants {
		v.Next.Stuck = v.StuckOf(m)
		v.Odd = v.JudgeOdd(m)
		v.Fleet, v.Load = v.FleetOf(v.In.Startup), v.LoadOf(m)
	}
}
