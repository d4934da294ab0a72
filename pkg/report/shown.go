package report

import (
	"fmt"
	"slices"
)

// Shown says in a few lines what a run has shown: the replicas and the promise of each
// model, and where the pods are.
func (d Demo) Shown(style Style, scheduler string) []string {
	lines := []string{style.Title("What this run showed")}
	for _, m := range d.Models {
		first, most, last := d.replicasOf(m.Model)
		met := "no request was sent"
		if m.Attainment != nil {
			met = fmt.Sprintf("%.1f%% of the requests met the SLO", *m.Attainment*100)
		}
		lines = append(lines, fmt.Sprintf("  %s: %d %s at the start, %d at the peak, %d at the end; %s", m.Model, first, plural(first, "replica"), most, last, met))
	}
	right := len(d.Placements) - len(d.Misplaced(scheduler))
	return append(lines, fmt.Sprintf("  %d of %d %s run on the GPUs of their variant, placed by %s", right, len(d.Placements), plural(len(d.Placements), "pod"), scheduler))
}

// replicasOf are the wanted replicas of a model over all its variants: at the start, at
// their highest, and at the end.
func (d Demo) replicasOf(model string) (first, most, last int) {
	type change struct {
		t  float64
		by int
	}
	var changes []change
	for _, v := range d.Variants {
		if v.Model != model {
			continue
		}
		before := 0
		for _, p := range v.Replicas {
			if p.T == 0 {
				first += p.Desired
			} else {
				changes = append(changes, change{p.T, p.Desired - before})
			}
			before = p.Desired
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		switch {
		case a.t < b.t:
			return -1
		case a.t > b.t:
			return 1
		}
		// What comes in the same instant replaces what goes.
		return a.by - b.by
	})
	most, last = first, first
	for _, c := range changes {
		last += c.by
		most = max(most, last)
	}
	return first, most, last
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
