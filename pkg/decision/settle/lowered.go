package settle

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// NoteLowered keeps in mind to what the model was lowered, unless a replica hangs, or goes for another
// model's sake or to a lower maximum: that tells nothing of those that stay.
func NoteLowered(r *limit.Round, m *limit.Model, giving map[*limit.Variant][]string) {
	if !slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return v.Target < min(v.In.Current, v.In.Ready) }) {
		return
	}
	now := contract.Lowered{}
	taken := slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return len(giving[v]) > 0 || v.Bounded(v.In.Current) < v.In.Current })
	if m.Load.Hanging == 0 && !taken {
		judgeSwitch(r, m)
		now = contract.Lowered{Load: m.Work(), InFlight: m.InFlight(), Short: m.Need.Want == need.WantMore}
	}
	allocate.LeaveAt(m, now, func(v *limit.Variant) int { return v.Target })
}

// judgeSwitch notes that replicas go which a switch had started for about this load, although all
// of these serve: they showed to serve less than they were taken to.
func judgeSwitch(r *limit.Round, m *limit.Model) {
	came, gone, last := true, false, m.Next.Lowered
	for _, v := range m.Variants {
		came, gone = came && v.In.Ready >= v.Next.Lowered, gone || v.Target < v.Next.Lowered
	}
	if last.Until.IsZero() || !came || !gone || !signal.Near(float64(m.Work()), float64(last.Load), signal.SettledWithin) {
		return
	}
	m.Next.TooFew = contract.TooFew{At: r.Snapshot.Time, Pause: need.PauseAfter(m.Next.TooFew.Pause), Load: min(m.Work(), last.Load), SLO: m.Promise.SLO}
	for _, v := range m.Variants {
		v.Next.TooFew = v.Next.Lowered
	}
}
