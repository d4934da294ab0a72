package decision

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// share divides the room among models that want more than there is: by priority, and
// among equals so that none starves. The answer is by the index of the model. What
// constraints the rows below do not know is left to the placement.
func (r *round) share(models []*model) []map[*variant]int {
	rows := r.newRows(models)
	problems := make([]allocation.Model, len(models))
	candidates := make([][]*variant, len(models))
	for i, m := range models {
		first, _, _ := r.growable(m)
		candidates[i] = first
		problems[i] = allocation.Model{
			Priority: m.promise.Priority,
			Weight:   m.promise.Weight,
			Need:     m.toBuy(),
			Options:  (&purchase{model: m}).options(first, r.fitting),
		}
		for j, v := range first {
			problems[i].Options[j].Uses = rows.uses(v)
		}
	}
	shares := make([]map[*variant]int, len(models))
	for i, vector := range allocation.Share(problems, rows.limits) {
		shares[i] = make(map[*variant]int, len(candidates[i]))
		for j, v := range candidates[i] {
			shares[i][v] = vector.Replicas[j]
		}
	}
	return shares
}

// rows are the limits that variants share: what each quota leaves, for each kind of
// request how many the nodes take, and for each accelerator and each number of devices
// that somebody asks for how many holes of that size there are. For sizes that divide
// each other and where devices alone bind, these are exactly the conditions of fitting
// together; a replica of size s takes floor(s/t) holes of size t.
type rows struct {
	round  *round
	limits []float64
	nodes  map[placement.Identity]int
	holes  []holeRow
	// quotas are by the index of the cluster's Quotas.
	quotas map[int]quotaRow
}

// quotaRow is the row of a quota in units of what one replica of some variant counts, so
// that bytes of memory stand beside devices.
type quotaRow struct {
	row  int
	unit float64
}

// holeRow is the row of the holes of one size.
type holeRow struct {
	placement.Hole
	row int
}

func (r *round) newRows(models []*model) *rows {
	all := &rows{round: r, nodes: map[placement.Identity]int{}, quotas: map[int]quotaRow{}}
	for _, m := range models {
		m.each(func(v *variant) {
			if r.unknown(v) == nil {
				all.add(v)
			}
		})
	}
	return all
}

func (w *rows) add(v *variant) {
	for _, a := range v.in.Request.Charges {
		q := w.round.trial.Cluster().Quotas[a.Index]
		// One that counts more than there ever is fits nowhere as it is.
		if _, known := w.quotas[a.Index]; !known && a.Count > 0 && a.Count <= q.Hard {
			unit := float64(a.Count)
			w.quotas[a.Index] = quotaRow{w.row(float64(max(q.Left, 0)) / unit), unit}
		}
	}
	key := v.in.Request.Identity()
	if _, known := w.nodes[key]; known {
		return
	}
	free := *v.in.Request
	free.Charges = nil
	w.nodes[key] = w.row(float64(w.round.slots(&free)))
	h, devices := placement.HoleOf(v.in.Request.Shape)
	if !devices || slices.ContainsFunc(w.holes, func(known holeRow) bool { return known.Hole == h }) {
		return
	}
	if slots, err := w.round.trial.Slots(h.Request()); err == nil {
		w.holes = append(w.holes, holeRow{h, w.row(float64(slots))})
	}
}

func (w *rows) row(limit float64) int {
	w.limits = append(w.limits, limit)
	return len(w.limits) - 1
}

// uses is what one replica of the variant takes of the rows, in their order.
func (w *rows) uses(v *variant) []allocation.Use {
	if w.round.unknown(v) != nil {
		return nil
	}
	uses := []allocation.Use{{Row: w.nodes[v.in.Request.Identity()], Amount: 1}}
	for _, a := range v.in.Request.Charges {
		if q, limits := w.quotas[a.Index]; limits && a.Count <= w.round.trial.Cluster().Quotas[a.Index].Hard {
			uses = append(uses, allocation.Use{Row: q.row, Amount: float64(a.Count) / q.unit})
		}
	}
	for _, h := range w.holes {
		if takes := h.In(v.in.Request.Shape); takes > 0 {
			uses = append(uses, allocation.Use{Row: h.row, Amount: float64(takes)})
		}
	}
	slices.SortFunc(uses, func(a, b allocation.Use) int { return cmp.Compare(a.Row, b.Row) })
	return uses
}
