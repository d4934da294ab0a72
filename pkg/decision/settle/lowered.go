package settle

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
)

// NoteLowered keeps in mind to what the model was lowered, unless a replica hangs, or goes for another
// model's sake or to a lower maximum: that tells nothing of those that stay.
func NoteLowered(m *limit.Model, giving map[*limit.Variant][]string) {
	if !slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return v.Target < min(v.In.Current, v.In.Ready) }) {
		return
	}
	now := contract.Lowered{}
	taken := slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return len(giving[v]) > 0 || v.Bounded(v.In.Current) < v.In.Current })
	if m.Load.Hanging == 0 && !taken {
		now = contract.Lowered{Load: m.Work(), InFlight: m.InFlight(), Short: m.Need.Want == need.WantMore}
	}
	m.Next.Lowered = now
	for _, v := range m.Variants {
		v.Next.Lowered = v.Target
	}
}
