package allocate

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// ScarceModels is how many models are looked at that lack room on one accelerator, and for how
// many of the least important ones others make room: it bounds the time of a round.
const ScarceModels = 2

// Unplaced is a variant of which its model lately lacked one more replica for want of room.
type Unplaced struct {
	M *limit.Model
	v *limit.Variant
}

// FindScarce finds out, in a cluster that does not grow, whose replicas hold room that another
// model of at least the same importance lacks: they go first, are bought last, and
// others take their place that are no dearer than the room is worth. Of each accelerator only the most important models are looked at.
func FindScarce(r *limit.Round) {
	wants := WantingRoom(r)
	if len(wants) == 0 {
		return
	}
	room, nodes := r.WithoutNominated(), r.Nodes()
	for _, m := range r.Models {
		for _, v := range m.Variants {
			if v.Unknown() != nil {
				continue
			}
			for _, w := range wants[v.In.Request.Shape.Accelerator] {
				if w.M != m && w.M.Promise.Priority <= m.Promise.Priority && opens(room, nodes, v, w.v) {
					v.ScarceFor = &w.M.Key
					break
				}
			}
		}
	}
}

// WantingRoom are the variants that lack room, by accelerator, the more important first.
func WantingRoom(r *limit.Round) map[capacity.Accelerator][]Unplaced {
	if !r.Policy.Limited || r.Trial == nil {
		return nil
	}
	all := map[capacity.Accelerator][]Unplaced{}
	for _, m := range r.Models {
		for _, v := range m.Variants {
			// What was found at this very instant tells nothing new.
			if m.Advisory || v.Old.Lacked.IsZero() || !v.Old.Lacked.Before(r.Snapshot.Time) || v.Unknown() != nil {
				continue
			}
			key := v.In.Request.Shape.Accelerator
			all[key] = append(all[key], Unplaced{m, v})
		}
	}
	for key, list := range all {
		slices.SortStableFunc(list, func(a, b Unplaced) int { return cmp.Compare(a.M.Promise.Priority, b.M.Promise.Priority) })
		all[key] = list[:min(len(list), ScarceModels)]
	}
	return all
}

// opens reports whether a replica of w fits on some node without those of v, or v has none
// and would take what w lacks.
func opens(room *placement.Cluster, nodes map[string]int, v, w *limit.Variant) bool {
	held := map[int]int{}
	hold := func(name string) {
		if node, known := nodes[name]; known {
			held[node]++
		}
	}
	for i := range v.In.Replicas {
		hold(v.In.Replicas[i].Node)
	}
	for i := range v.In.Starting {
		hold(v.In.Starting[i].Node)
	}
	found := len(held) == 0
	for node, n := range held {
		for range n {
			room.Remove(v.In.Request, node)
		}
		found = found || Admits(room, w.In.Request, node)
		for range n {
			room.Put(v.In.Request, node)
		}
	}
	return found
}

// RememberLacks notes of which variants models lack one more replica for want of room. It is
// remembered for as long as a scale-down waits: whoever gives needs that long.
func RememberLacks(r *limit.Round, models []*limit.Model, found Answer) {
	if !r.Policy.Limited || r.Trial == nil {
		return
	}
	for _, m := range models {
		lacks := LackingRoom(r, m, found.Lacks[m])
		for _, v := range m.Variants {
			switch {
			case len(lacks) > 0 && v == lacks[0]:
				v.Next.Lacked = r.Snapshot.Time
				if v.Policy.Up.Window > 0 {
					// It is not to begin when there is room.
					found.Ideal[v] = max(found.Ideal[v], v.Target+1)
				}
			case r.Snapshot.Time.Sub(v.Old.Lacked) < v.Policy.Down.Window:
				v.Next.Lacked = v.Old.Lacked
			}
		}
	}
}

// stranded reports whether a replica of the variant waits in vain for a node, and none of its
// model's is alive that is to have one.
func stranded(r *limit.Round, m *limit.Model, v *limit.Variant) bool {
	return v.Fleet.Count[fleet.StateUnschedulable] > 0 && v.Plan.Unplaced > 0 && m.Alive() == 0 && awake(r, m)
}

// LackingRoom are the variants of which the model would have one more replica, or one that waits
// would come up, if there were room, those that serve for the least first.
func LackingRoom(r *limit.Round, m *limit.Model, l Lack) []*limit.Variant {
	var all []*limit.Variant
	wants := m.Need.Want == need.WantMore && l.Short > 0 && m.Rated || l.Any
	signal.Each(m.Variants, func(v *limit.Variant) {
		lacks := wants && !v.Rate.Unfit() && v.Fleet.Paused == 0 && r.MayAdd(v) > 0 || v.Target < v.Policy.Min
		if (lacks || stranded(r, m, v)) && r.Full(v) {
			all = append(all, v)
		}
	})
	slices.SortStableFunc(all, func(a, b *limit.Variant) int { return cmp.Compare(a.UnitPrice(), b.UnitPrice()) })
	return all
}

// Admits reports whether one more such replica fits on the node and quotas allow it.
func Admits(room *placement.Cluster, q *placement.Request, node int) bool {
	return Exhausted(room, q) < 0 && room.Fits(q, node)
}

// Exhausted is the index of a quota that allows no more replicas of the request, or -1.
func Exhausted(room *placement.Cluster, q *placement.Request) int {
	for _, a := range q.Charges {
		if a.Count > 0 && room.Quotas[a.Index].Left < a.Count {
			return a.Index
		}
	}
	return -1
}
