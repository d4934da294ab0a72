package decision

import (
	"slices"
	"time"
)

// undoneFor is how long a scale-down that was undone is not made again for the same load.
const undoneFor = 24 * time.Hour

// judgeLowered keeps the last scale-down in mind, and notes that what it left does not
// suffice for the load that it was for, although all of them serve and no queue is left of
// before: whatever says later that as many suffice is wrong.
func (r *round) judgeLowered(m *model, n *need) {
	if r.snapshot.Time.Sub(m.old.Lowered.At) >= undoneFor {
		return
	}
	last, undone := m.old.Lowered, n.want == wantMore && m.evidence == evidenceFull && m.load.hanging == 0
	for _, v := range m.variants {
		v.next.Lowered = v.old.Lowered
		undone = undone && v.in.Ready == v.in.Current && len(v.in.Starting) == 0 && v.in.Ready <= v.old.Lowered
	}
	if undone && m.carried() <= last.Load*modelHeadroom && m.demand.backlog <= m.waitingShort() && r.unsettled(m, n) == "" {
		last.Load, last.Undone = m.carried(), true
	}
	m.next.Lowered = last
}

// lower keeps in mind to what the model was lowered.
func (r *round) lower(m *model) {
	if m.need.want != wantLess || !slices.ContainsFunc(m.variants, func(v *variant) bool { return v.target < min(v.in.Current, v.in.Ready) }) {
		return
	}
	m.next.Lowered = Lowered{At: r.snapshot.Time, Load: m.carried()}
	for _, v := range m.variants {
		v.next.Lowered = v.target
	}
}

// tooFew reports whether so many replicas of each variant are no more than what the last
// scale-down left in vain, for about the same load or more.
func (m *model) tooFew(replicas func(*variant) int) bool {
	last := &m.next.Lowered
	return last.Undone && m.carried()*modelHeadroom >= last.Load &&
		!slices.ContainsFunc(m.variants, func(v *variant) bool { return replicas(v) > v.next.Lowered })
}
