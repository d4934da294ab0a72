package allocate

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// nextPause is how long nobody goes back on the next switch.
func nextPause(s *contract.Switched) time.Duration {
	if s.Owes <= 0 {
		return need.LeastBelieved
	}
	return need.PauseAfter(s.Pause)
}

// judgeSaving takes off what the last switch owes what it saved since, at the prices of now.
func judgeSaving(r *limit.Round, m *limit.Model) {
	s, now := m.Old.Switched, r.Snapshot.Time
	if now.Sub(s.At) >= max(rate.Repeats, signal.Again*s.Pause) {
		s = contract.Switched{}
	}
	for _, v := range m.Variants {
		if v.Next.Moved = v.Old.Moved; s == (contract.Switched{}) {
			v.Next.Moved = 0
		}
		if now.After(s.Until) {
			// Those that went again save nothing.
			moved := min(v.Next.Moved, v.In.Current)
			s.Owes += v.In.Cost * capacity.Cost(float64(moved)*now.Sub(s.Seen).Hours())
		}
	}
	if now.After(s.Until) {
		s.Seen = now
	}
	m.Next.Switched = s
}

// goesBack reports whether a mix takes back some of a switch that has not paid yet.
func goesBack(r *limit.Round, m *limit.Model, mix map[*limit.Variant]int) bool {
	s := &m.Next.Switched
	return s.Owes > 0 && r.Snapshot.Time.Sub(s.At) < s.Pause && slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool {
		return (With(mix)(v)-v.In.Current)*v.Next.Moved < 0
	})
}

// owe notes what a switch to the mix costs. One that goes on costs no more.
func owe(r *limit.Round, m *limit.Model, candidates []*limit.Variant, mix map[*limit.Variant]int) {
	s, now := m.Next.Switched, r.Snapshot.Time
	if s.Owes > 0 && now.Sub(s.At) < s.Pause {
		return
	}
	next := contract.Switched{At: now, Pause: nextPause(&s)}
	for _, v := range candidates {
		v.Next.Moved = mix[v] - v.In.Current
		beside := BesideFor(m, candidates, v)
		next.Until = Later(next.Until, now.Add(beside))
		next.Owes += v.In.Cost * capacity.Cost(math.Abs(float64(v.Next.Moved))*beside.Hours())
	}
	next.Seen = next.Until
	m.Next.Switched = next
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
