package decision

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// beginModel makes the working state of a model. Where every variant is in mode Off they are
// planned for as if they were not, to be looked at.
func beginModel(r *limit.Round, in *contract.Model, memory *contract.Memory) *limit.Model {
	m := &limit.Model{Variants: make([]*limit.Variant, len(in.Variants))}
	m.Round, m.In, m.Key = &r.Round, in, contract.ModelKey{Namespace: in.Namespace, ID: in.ID}
	m.Old, m.Next = memory.OfModel(m.Key), &contract.ModelMemory{}
	m.Saturation = r.Policy.SaturationOf(m.Key)
	m.Promise = r.Policy.PromiseTo(m.Key)
	all := make([]limit.Variant, len(in.Variants))
	for i := range in.Variants {
		v := &in.Variants[i]
		key := contract.Key{Namespace: in.Namespace, Name: v.Name}
		w := &all[i]
		w.Round, w.In, w.Key, w.Policy, w.Priority = &r.Round, signal.AsFound(v), key, r.Policy.Variant(key), m.Promise.Priority
		w.Old, w.Next = memory.OfVariant(key), &contract.VariantMemory{}
		if v.Request != nil {
			w.Old = w.Old.On(v.Request.Shape)
		}
		w.Old = w.Old.Of(v.TargetUID)
		w.In = w.AsShown()
		w.Next.Hardware, w.Next.TargetUID = w.Old.Hardware, cmp.Or(v.TargetUID, w.Old.TargetUID)
		w.Target, w.Wanted = w.In.Current, w.In.Current
		if !w.Old.Sizing.Found.IsZero() {
			r.Sized++
		}
		w.Plan = contract.VariantPlan{Key: key, Current: v.Current, Ready: v.Ready, Starting: len(v.Starting), Cost: v.Cost}
		for _, s := range v.Starting {
			if s.Unschedulable {
				w.Plan.Unschedulable++
			}
		}
		if v.Request != nil {
			w.Plan.Accelerator = v.Request.Shape.Accelerator
		}
		m.Variants[i] = w
	}
	m.Stack()
	acts := func(v *limit.Variant) bool { return v.Policy.Actuation != contract.ActuationOff }
	m.Advisory = !slices.ContainsFunc(m.Variants, acts)
	for _, v := range m.Variants {
		v.Managed = m.Advisory || acts(v)
	}
	return m
}
