package autoscaling

import (
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// The limits of the aims: what hybrid mode, at its defaults, is to cost over what others cost
// at the same attainment.
const (
	mostAnywhere = 1.00
	mostInMean   = 0.95
	mostOfSingle = 0.85
	mostSeveral  = 0.80
)

// claim is one thing to be shown, and what the runs say of it.
type claim struct {
	Claim string `json:"claim"`
	// Aim is set for what is aimed at, which docs/benchmarks.md says how far away it is: an aim
	// that is missed is no failure of a run. Others must hold.
	Aim bool `json:"aim"`
	// Answer is that of the whole: it does not hold where it fails anywhere, and is not
	// shown where it is not shown somewhere.
	Answer front.Answer `json:"answer"`
	Parts  []finding    `json:"parts"`
}

// finding is the claim on one case, or of one family.
type finding struct {
	Of     string       `json:"of"`
	Answer front.Answer `json:"answer"`
	Ratio  *float64     `json:"ratio"`
	Noise  *float64     `json:"ratioNoise"`
	// Is says what is known of the ratio.
	Is front.Place `json:"ratioIs"`
}

// broken reports whether something does not hold that must.
func (c claim) broken() bool { return !c.Aim && c.Answer == front.Fails }

// claims are all that there are, answered as far as there are runs.
func claims(b *bench) []claim {
	anywhere := claim{Aim: true, Claim: fmt.Sprintf("(a) %s costs at most %.2f of the front of all others, tuned by hindsight for each trace, at the same attainment", ours[0], mostAnywhere)}
	mixed := claim{Aim: true, Claim: fmt.Sprintf("(c) with several models or variants that matter at most %.2f", mostSeveral)}
	var owns []front.Entry
	var others [][]front.Entry
	for i := range b.cases {
		v := &b.reports[i].Verdicts[0]
		switch b.cases[i].trial.part {
		case single:
			anywhere.Parts = append(anywhere.Parts, found(b.place(i), v, mostAnywhere))
			owns = append(owns, b.reports[i].Ours[0].Judged())
			others = append(others, b.reports[i].Judged())
		case several:
			mixed.Parts = append(mixed.Parts, found(b.place(i), v, mostSeveral))
		case beside:
		}
	}
	mean := claim{Aim: true, Claim: fmt.Sprintf("(a) in the geometric mean over these traces at most %.2f", mostInMean)}
	if len(owns) > 1 {
		ratio, noise, place := front.Mean(owns, others)
		v := front.Verdict{Ratio: ratio, Noise: noise, Place: place, Seeds: b.seeds}
		mean.Parts = append(mean.Parts, found(fmt.Sprintf("%d traces", len(owns)), &v, mostInMean))
	}
	once := claim{Aim: true, Claim: fmt.Sprintf("(b) against the best single setting of each family over these traces at most %.2f", mostOfSingle)}
	for i := range b.singles {
		once.Parts = append(once.Parts, found(b.singles[i].Family, &b.singles[i].Verdict, mostOfSingle))
	}
	fits := claim{Claim: "(d) on the full cluster ours ask for nothing that fits nowhere"}
	for i := range b.cases {
		if b.cases[i].trial.cluster != full {
			continue
		}
		for _, e := range b.reports[i].Ours {
			f := finding{Of: b.place(i) + ", " + e.Policy, Answer: front.Holds, Is: front.Within}
			for k := range e.Results {
				if e.Results[k].UnplaceableReplicas > 0 {
					f.Answer = front.Fails
				}
			}
			fits.Parts = append(fits.Parts, f)
		}
	}
	all := []claim{anywhere, mean, once, mixed, fits}
	for i := range all {
		all[i].answer()
	}
	return all
}

// place names a case.
func (b *bench) place(i int) string {
	return fmt.Sprintf("%s, start-up %g s", b.cases[i].Name, b.cases[i].Startup.Seconds())
}

func found(of string, v *front.Verdict, limit float64) finding {
	return finding{Of: of, Answer: v.AtMost(limit), Ratio: orNull(v.Ratio), Noise: orNull(v.Noise), Is: v.Place}
}

// answer makes one answer of those of the parts.
func (c *claim) answer() {
	is := func(a front.Answer) bool {
		return slices.ContainsFunc(c.Parts, func(f finding) bool { return f.Answer == a })
	}
	switch {
	case is(front.Fails):
		c.Answer = front.Fails
	case len(c.Parts) == 0 || is(front.NotShown):
		c.Answer = front.NotShown
	default:
		c.Answer = front.Holds
	}
}
