package limit

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Model is a model whose variants know the room that is kept for them. All later stages work on it.
type Model struct {
	need.Model

	Variants []*Variant
}

// Variant is a variant with the room that is kept for its replicas.
type Variant struct {
	rate.Variant

	// kept is for how many of its replicas without a node room is kept.
	kept int
	// Nominated is the room that others make for more of them.
	Nominated []Nominated
	// Yields is how many of them go for a more important model at once.
	Yields int
}

// Stack gives its variants to the stages before.
func (m *Model) Stack() {
	m.SetVariants(signal.Views(m.Variants, func(v *Variant) *rate.Variant { return &v.Variant }))
}

// Round is a round with the room of the cluster.
type Round struct {
	signal.Round

	Models []*Model
	// Trial is where placements are tried out; nil means that the nodes are unknown.
	Trial *placement.Trial
	// keeping is the variant for which most room is kept, by accelerator.
	keeping map[capacity.Accelerator]*Variant
	// Placed are the replicas that were tried out for growth.
	Placed []Placed

	// nodesByName are the indexes of the nodes; nil until somebody asks.
	nodesByName map[string]int
}

// All are the variants of all models.
func (r *Round) All() []*Variant {
	var all []*Variant
	r.Each(func(v *Variant) { all = append(all, v) })
	return all
}

// Each calls f for every variant.
func (r *Round) Each(f func(*Variant)) {
	for _, m := range r.Models {
		for _, v := range m.Variants {
			f(v)
		}
	}
}
