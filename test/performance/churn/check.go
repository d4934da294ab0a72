package churn

import (
	"fmt"
	"math"
	"strings"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// check compares a mean with the study's figure.
type check struct {
	cell
	// what is compared: all that is pending, or the part for which devices are free.
	thoughFree bool
	figure     float64
	// same asks for the figure to within a fifth; otherwise it must not be exceeded.
	same bool
}

// checks are the figures that the study states for loads of its own: those of its
// plain packer, which show that the generators are the same, and those of its sketch
// with victim choice.
func checks() []check {
	one := cell{generator: "one-type", loadPct: 94, policy: nameMostAllocated}
	mixed := cell{generator: "mixed", loadPct: 85, policy: nameMostAllocated}
	ours := func(c cell) cell {
		c.policy, c.victims = nameOurs, true
		return c
	}
	return []check{
		{cell: one, figure: 1.45, same: true},
		{cell: one, thoughFree: true, figure: 1.07, same: true},
		{cell: mixed, figure: 1.96, same: true},
		{cell: ours(one), figure: 0.81},
		{cell: ours(one), thoughFree: true, figure: 0.17},
		{cell: ours(mixed), figure: 0.65},
	}
}

// holds reports whether the mean is as the check wants it.
func (c *check) holds(s summary) bool {
	got := s.pending
	if c.thoughFree {
		got = s.though
	}
	if c.same {
		const near = 0.2
		return math.Abs(got-c.figure) <= near*c.figure
	}
	return got <= c.figure
}

// verify says of each check whether it holds.
func verify(all map[cell]summary) *harness.Verdict {
	v := &harness.Verdict{}
	v.Printf("\nAgainst the study:")
	for _, c := range checks() {
		s := all[c.cell]
		what, got := "pending", s.pending
		if c.thoughFree {
			what, got = "though free", s.though
		}
		want := fmt.Sprintf("at most %.2f", c.figure)
		if c.same {
			want = fmt.Sprintf("within 20 %% of %.2f", c.figure)
		}
		v.Ask(c.holds(s), "%-8s %2d %%  %-13s %-7s  %-11s  %5.2f  %-18s", c.generator, c.loadPct, c.policy, chosen(c.victims), what, got, want)
	}
	return v
}

// chosen says who chose the victims.
func chosen(victims bool) string {
	if victims {
		return "chosen"
	}
	return "random"
}

// tabulate shows the means and spreads of every cell.
func tabulate(all map[cell]summary, order []cell) string {
	var b strings.Builder
	last := cell{}
	for _, c := range order {
		if c.generator != last.generator || c.loadPct != last.loadPct {
			fmt.Fprintf(&b, "\n%s at %d %% load, %d seeds\n", c.generator, c.loadPct, all[c].seeds)
			fmt.Fprintf(&b, "  %-13s %-7s  %16s  %16s  %s\n", "policy", "victims", "pending %", "though free %", "few beside each other %")
		}
		s := all[c]
		fmt.Fprintf(&b, "  %-13s %-7s  %7.3f +- %5.3f  %7.3f +- %5.3f", c.policy, chosen(c.victims), s.pending, s.pendingSpread, s.though, s.thoughSpread)
		if c.policy == nameOurs || c.policy == nameTogether {
			fmt.Fprintf(&b, "  %7.3f", s.beside)
		}
		b.WriteByte('\n')
		last = c
	}
	return b.String()
}
