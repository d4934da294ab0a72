package decision

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Switched is the last switch to another mix of variants. Prices that cross again and again make each
// switch cost more than it saves.
type Switched struct {
	// At is when it began, and Until how long its replicas run beside those that they replace.
	At, Until time.Time
	// Owes is what the way there and back costs, less what was saved until Seen, in units of cost
	// times hours.
	Owes capacity.Cost
	Seen time.Time
	// Pause is how long nobody goes back while it has not paid.
	Pause time.Duration
}

// next is how long nobody goes back on the next switch.
func (s *Switched) next() time.Duration {
	if s.Owes <= 0 {
		return leastBelieved
	}
	return pauseAfter(s.Pause)
}

// pauseAfter is how long it is believed the next time that something was in vain.
func pauseAfter(last time.Duration) time.Duration {
	return min(max(again*last, leastBelieved), repeats)
}

// judgeSaving takes off what the last switch owes what it saved since, at the prices of now.
func (r *round) judgeSaving(m *model) {
	s, now := m.old.Switched, r.snapshot.Time
	if now.Sub(s.At) >= max(repeats, again*s.Pause) {
		s = Switched{}
	}
	for _, v := range m.variants {
		if v.next.Moved = v.old.Moved; s == (Switched{}) {
			v.next.Moved = 0
		}
		if now.After(s.Until) {
			// Those that went again save nothing.
			moved := min(v.next.Moved, v.in.Current)
			s.Owes += v.in.Cost * capacity.Cost(float64(moved)*now.Sub(s.Seen).Hours())
		}
	}
	if now.After(s.Until) {
		s.Seen = now
	}
	m.next.Switched = s
}

// goesBack reports whether a mix takes back some of a switch that has not paid yet.
func (r *round) goesBack(m *model, mix map[*variant]int) bool {
	s := &m.next.Switched
	return s.Owes > 0 && r.snapshot.Time.Sub(s.At) < s.Pause && slices.ContainsFunc(m.variants, func(v *variant) bool {
		return (with(mix)(v)-v.in.Current)*v.next.Moved < 0
	})
}

// owe notes what a switch to the mix costs. One that goes on costs no more.
func (r *round) owe(m *model, candidates []*variant, mix map[*variant]int) {
	s, now := m.next.Switched, r.snapshot.Time
	if s.Owes > 0 && now.Sub(s.At) < s.Pause {
		return
	}
	next := Switched{At: now, Pause: s.next()}
	for _, v := range candidates {
		v.next.Moved = mix[v] - v.in.Current
		beside := m.beside(candidates, v)
		next.Until = later(next.Until, now.Add(beside))
		next.Owes += v.in.Cost * capacity.Cost(math.Abs(float64(v.next.Moved))*beside.Hours())
	}
	next.Seen = next.Until
	m.next.Switched = next
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
