package allocate

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// shareRoom divides the room among models that want more than there is: by priority, and
// among equals so that none starves. The answer is by the index of the model. What
// constraints the rows below do not know is left to the placement.
func shareRoom(r *limit.Round, models []*limit.Model) []map[*limit.Variant]int {
	rows := NewRows(r, models)
	problems := make([]allocation.Model, len(models))
	candidates := make([][]*limit.Variant, len(models))
	for i, m := range models {
		first, _, _ := growable(r, m)
		candidates[i] = first
		problems[i] = allocation.Model{
			Priority: m.Promise.Priority,
			Weight:   m.Promise.Weight,
			Need:     toBuy(m),
			Options:  (&Purchase{Model: m}).options(first, r.Fitting),
		}
		for j, v := range first {
			problems[i].Options[j].Uses = rows.uses(v)
		}
	}
	shares := make([]map[*limit.Variant]int, len(models))
	for i, vector := range allocation.Share(problems, rows.Limits) {
		shares[i] = make(map[*limit.Variant]int, len(candidates[i]))
		for j, v := range candidates[i] {
			shares[i][v] = vector.Replicas[j]
		}
	}
	return shares
}

// Rows are the limits that variants share: what each quota leaves, for each kind of
// request how many the nodes take, and for each accelerator and each number of devices
// that somebody asks for how many holes of that size there are. For sizes that divide
// each other and where devices alone bind, these are exactly the conditions of fitting
// together; a replica of size s takes floor(s/t) holes of size t.
type Rows struct {
	round  *limit.Round
	Limits []float64
	nodes  map[placement.Identity]int
	Holes  []holeRow
	// Quotas are by the index of the cluster's Quotas.
	Quotas map[int]quotaRow
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

// NewRows are the limits that the variants of these models share.
func NewRows(r *limit.Round, models []*limit.Model) *Rows {
	all := &Rows{round: r, nodes: map[placement.Identity]int{}, Quotas: map[int]quotaRow{}}
	for _, m := range models {
		signal.Each(m.Variants, func(v *limit.Variant) {
			if v.Unknown() == nil {
				all.add(v)
			}
		})
	}
	return all
}

func (w *Rows) add(v *limit.Variant) {
	for _, a := range v.In.Request.Charges {
		q := w.round.Trial.Cluster().Quotas[a.Index]
		// One that counts more than there ever is fits nowhere as it is.
		if _, known := w.Quotas[a.Index]; !known && a.Count > 0 && a.Count <= q.Hard {
			unit := float64(a.Count)
			w.Quotas[a.Index] = quotaRow{w.row(float64(max(q.Left, 0)) / unit), unit}
		}
	}
	key := v.In.Request.Identity()
	if _, known := w.nodes[key]; known {
		return
	}
	free := *v.In.Request
	free.Charges = nil
	w.nodes[key] = w.row(float64(w.round.Slots(&free)))
	h, devices := placement.HoleOf(v.In.Request.Shape)
	if !devices || slices.ContainsFunc(w.Holes, func(known holeRow) bool { return known.Hole == h }) {
		return
	}
	if slots, err := w.round.Trial.Slots(h.Request()); err == nil {
		w.Holes = append(w.Holes, holeRow{h, w.row(float64(slots))})
	}
}

func (w *Rows) row(limit float64) int {
	w.Limits = append(w.Limits, limit)
	return len(w.Limits) - 1
}

// uses is what one replica of the variant takes of the rows, in their order.
func (w *Rows) uses(v *limit.Variant) []allocation.Use {
	if v.Unknown() != nil {
		return nil
	}
	uses := []allocation.Use{{Row: w.nodes[v.In.Request.Identity()], Amount: 1}}
	for _, a := range v.In.Request.Charges {
		if q, limits := w.Quotas[a.Index]; limits && a.Count <= w.round.Trial.Cluster().Quotas[a.Index].Hard {
			uses = append(uses, allocation.Use{Row: q.row, Amount: float64(a.Count) / q.unit})
		}
	}
	for _, h := range w.Holes {
		if takes := h.In(v.In.Request.Shape); takes > 0 {
			uses = append(uses, allocation.Use{Row: h.row, Amount: float64(takes)})
		}
	}
	slices.SortFunc(uses, func(a, b allocation.Use) int { return cmp.Compare(a.Row, b.Row) })
	return uses
}
