package main

import (
	"fmt"
	"io"
	"slices"
)

// proof is one thing that is to be proved, and what the rows say of it.
type proof struct {
	claim string
	// unit is what was judged, judged how many of these, and needed how many a whole
	// run has.
	unit           string
	judged, needed int
	// against are the rows that show the opposite.
	against []string
}

// proofs judges the rows. What is needed follows from the trials, so that a row that
// is missing is never taken for one that is good.
func proofs(rows []row) []proof {
	lost, compared := defeats(rows)
	missed, kept := misses(rows)
	beyond, placed := unplaceable(rows)
	better := proof{claim: "no baseline is better than ours", unit: "comparisons", judged: compared}
	for _, d := range lost {
		better.against = append(better.against, d.String())
	}
	promise := proof{
		claim: fmt.Sprintf("hybrid attains at least %g%% at no more than %g times the bound", 100*leastAttainment, mostOverBound),
		unit:  "traces", judged: kept, needed: len(promised),
	}
	for _, r := range missed {
		promise.against = append(promise.against, fmt.Sprintf("%s: %.2f%% at %.2f times the bound", r.place(), 100*r.Attainment, r.CostOverBound))
	}
	fits := proof{claim: "in the full cluster ours ask for nothing that fits nowhere", unit: "runs", judged: placed}
	for _, r := range beyond {
		fits.against = append(fits.against, fmt.Sprintf("%s: %s asked for %d replicas that fit nowhere", r.place(), r.Policy, r.UnplaceableReplicas))
	}
	for _, t := range trials() {
		if t.learns {
			continue
		}
		better.needed += len(t.startups) * len(ours) * len(baselines)
		if t.cluster == full {
			fits.needed += len(t.startups) * len(ours)
		}
	}
	return []proof{better, promise, fits}
}

// whole reports whether all was judged that a whole run has.
func (p *proof) whole() bool { return p.judged == p.needed }

// String is one line: a proof of which a part is missing holds no more than that part.
func (p *proof) String() string {
	count := fmt.Sprintf("%d of %d %s", p.judged, p.needed, p.unit)
	switch {
	case len(p.against) > 0:
		return fmt.Sprintf("%s: does not hold, judged on %s", p.claim, count)
	case p.judged == 0:
		return fmt.Sprintf("%s: not judged, %s", p.claim, count)
	case !p.whole():
		return fmt.Sprintf("%s: holds so far, judged on %s alone", p.claim, count)
	default:
		return fmt.Sprintf("%s: holds, judged on %s", p.claim, count)
	}
}

// verdict prints what the rows prove. It reports whether nothing speaks against it, and
// whether all was judged.
func verdict(out io.Writer, rows []row) (holds, whole bool) {
	all := proofs(rows)
	for i := range all {
		tell(out, "%d. %s\n", i+1, &all[i])
		for _, line := range all[i].against {
			tell(out, "   %s\n", line)
		}
	}
	holds = !slices.ContainsFunc(all, func(p proof) bool { return len(p.against) > 0 })
	whole = !slices.ContainsFunc(all, func(p proof) bool { return !p.whole() })
	if holds && whole {
		tell(out, "All three hold.\n")
	}
	return holds, whole
}
