package decision

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// showBeside plans for the variants in mode Off of those models of which others are acted on: what each
// would ask for if it were, beside them. That is a decision of its own, about these models as if
// they were only looked at. The plan of all others stays as it is.
func showBeside(plan *contract.Plan, next *contract.Memory, snapshot *contract.Snapshot, policy *contract.Policy, memory *contract.Memory, kind contract.Round) {
	looked, at := *snapshot, []int(nil)
	looked.Models = nil
	shown, before := *policy, contract.Memory{Time: memory.Time, Variants: memory.Variants, Models: map[contract.ModelKey]*contract.ModelMemory{}}
	shown.Variants = map[contract.Key]contract.VariantPolicy{}
	for i := range snapshot.Models {
		m := &snapshot.Models[i]
		if !isMixed(m, policy) {
			continue
		}
		looked.Models, at = append(looked.Models, *m), append(at, i)
		key := contract.ModelKey{Namespace: m.Namespace, ID: m.ID}
		before.Models[key] = ofShown(memory.OfModel(key))
		for j := range m.Variants {
			key := contract.Key{Namespace: m.Namespace, Name: m.Variants[j].Name}
			own := policy.Variant(key)
			own.Actuation = contract.ActuationOff
			shown.Variants[key] = own
		}
	}
	if len(at) == 0 {
		return
	}
	r := newRound(&looked, &shown, &before, kind)
	answer(r)
	found, learned := finish(r)
	for i, m := range found.Models {
		key := contract.ModelKey{Namespace: m.Namespace, ID: m.ID}
		next.Models[key].ShownCheaper = learned.Models[key].Cheaper
		for j, v := range m.Variants {
			if policy.Variant(v.Key).Actuation == contract.ActuationOff {
				plan.Models[at[i]].Variants[j], next.Variants[v.Key] = v, learned.Variants[v.Key]
			}
		}
	}
}

// isMixed reports whether some of the model's variants are in mode Off and others are not.
func isMixed(m *contract.Model, policy *contract.Policy) bool {
	off := 0
	for i := range m.Variants {
		if policy.Variant(contract.Key{Namespace: m.Namespace, Name: m.Variants[i].Name}).Actuation == contract.ActuationOff {
			off++
		}
	}
	return off > 0 && off < len(m.Variants)
}

// ofShown is the memory for what is only shown of a model: what was learned of it, and nothing of what
// was done, which is of the variants that are acted on.
func ofShown(m *contract.ModelMemory) *contract.ModelMemory {
	shown := *m
	shown.Cheaper, shown.ShownCheaper = m.ShownCheaper, time.Time{}
	shown.Lowered, shown.TooFew, shown.Switched = contract.Lowered{}, contract.TooFew{}, contract.Switched{}
	return &shown
}
