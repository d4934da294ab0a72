package signal

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Round is what holds for all models of one round. Its methods say what samples are worth in it.
type Round struct {
	Snapshot *contract.Snapshot
	Policy   *contract.Policy
	Kind     contract.Round

	// Sized is how many variants had a rate within a promise before this round, and
	// FirstSizes how many got their first one in it.
	Sized, FirstSizes int
	// Down are the names of the nodes that are not ready.
	Down map[string]bool
	// Queued are the namespaces in which a gateway shows the queue of a model.
	Queued map[string]bool
}

// Model is the working state of one model: what each stage found, and what the next round is to
// remember.
type Model struct {
	// Round is the round that it is looked at in.
	Round *Round
	// In is what is seen of it, less what is not believed.
	In  *contract.Model
	Key contract.ModelKey
	// Old is what was remembered, and Next what will be.
	Old, Next  *contract.ModelMemory
	Promise    contract.Promise
	Saturation contract.Saturation
	// Evidence says what the data of its serving replicas allow.
	Evidence Evidence
	// Advisory is set where every variant is in mode Off: it is only looked at.
	Advisory bool
	Variants []*Variant
}

// Variant is the working state of one variant.
type Variant struct {
	// Round is the round that it is looked at in.
	Round *Round
	// In is what is seen of it, less what is not believed.
	In     *contract.Variant
	Key    contract.Key
	Policy contract.VariantPolicy
	// Plan is its plan as far as the stages have come.
	Plan contract.VariantPlan
	// Priority is its model's.
	Priority int
	// Old is what was remembered, and Next what will be.
	Old, Next *contract.VariantMemory
	// Managed is set when the decision may change this variant.
	Managed bool
	// Target is what it is to have, as far as the stages have come, and Wanted the same
	// before behavior; Needed is the part of that which the present load needs.
	Target, Wanted, Needed int
	// Anew is set when what was wanted before counts no more: somebody else changed the replicas,
	// or the last round is so long ago that nobody knows what was wanted since.
	Anew bool
	// Unfollowed is set where nobody made what mode Metric shows, for longer than that takes.
	Unfollowed bool
}

// SetVariants gives the model its variants.
func (m *Model) SetVariants(variants []*Variant) { m.Variants = variants }

// Views are variants as a stage sees them that knows less of them.
func Views[V, W any](variants []*V, of func(*V) *W) []*W {
	all := make([]*W, len(variants))
	for i, v := range variants {
		all[i] = of(v)
	}
	return all
}

// EachReplica calls f for every serving replica of the targets that are there.
func (m *Model) EachReplica(f func(*contract.Replica)) {
	for _, v := range m.Variants {
		for i := range v.In.Replicas {
			f(&v.In.Replicas[i])
		}
	}
}

// Sum adds up a number of the serving replicas.
func (m *Model) Sum(of func(*contract.Replica) float64) float64 {
	sum := 0.0
	m.EachReplica(func(p *contract.Replica) { sum += of(p) })
	return sum
}

// InFlight is how many requests the replicas have, as far as is known.
func (m *Model) InFlight() float64 {
	return m.Sum(func(p *contract.Replica) float64 { return m.Round.Value(p.Running) + m.Round.Value(p.Waiting) })
}

// ShapeOf is the shape of the requests that the replica completed, which is what
// its time in service belongs to; the model's where it is not known.
func (r *Round) ShapeOf(p *contract.Replica, model capacity.TokenShape) capacity.TokenShape {
	own := capacity.TokenShape{Input: capacity.Tokens(p.Input.Value), Output: capacity.Tokens(p.Output.Value)}
	if r.Fresh(p.Input, p.Output) && own.Known() {
		return own
	}
	return model
}
