package sweep

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// Case is one load in one setting with one start-up time.
type Case struct {
	Name    string
	Startup time.Duration
	// Trials are the same case with one seed each.
	Trials []*replay.Trial
	// Ours are the policies that are judged, as they are.
	Ours []string
	// Rivals are tuned, and judged against. Aside are tuned, too, and nobody is judged
	// against them.
	Rivals, Aside []tuning.Family
	// Near is set where fronts are only looked for around what ours attain, which takes
	// half as long.
	Near bool
}

// Entry is one policy with one setting on one case: a result for each seed that it ran
// with.
type Entry struct {
	// Family is the policy without its settings, and Policy with them.
	Family, Policy string
	Results        []replay.Result
}

// Judged is the entry for package front.
func (e *Entry) Judged() front.Entry {
	j := front.Entry{Family: e.Family, Setting: e.Policy}
	for i := range e.Results {
		j.Runs = append(j.Runs, front.Point{Attainment: e.Results[i].Attainment, Cost: e.Results[i].Cost})
	}
	return j
}

// Mean is what it kept and cost in the mean over its seeds.
func (e *Entry) Mean() front.Point {
	j := e.Judged()
	return j.Mean()
}

func judged(entries []Entry) []front.Entry {
	var all []front.Entry
	for i := range entries {
		all = append(all, entries[i].Judged())
	}
	return all
}

// Report is what came of one case.
type Report struct {
	// Ours are the policies that were judged, in their order, and Verdicts what they are
	// against the front of all rivals.
	Ours     []Entry
	Verdicts []front.Verdict
	// Rivals are all settings that were not given up, by family and policy. Those that came
	// near the front ran with all seeds, the others with the first one.
	Rivals []Entry
	// Aside are the settings that nobody is judged against, with the first seed.
	Aside []Entry
	// GivenUp is how many settings were.
	GivenUp int
}

// Judged are all rivals for package front.
func (r *Report) Judged() []front.Entry { return judged(r.Rivals) }

// Of are the entries of a family.
func Of(entries []Entry, family string) []Entry {
	var own []Entry
	for i := range entries {
		if entries[i].Family == family {
			own = append(own, entries[i])
		}
	}
	return own
}

// Front are the entries that are on the front of all of them, in its order.
func Front(entries []Entry) []Entry {
	var on []Entry
	for _, i := range front.Indices(means(entries)) {
		on = append(on, entries[i])
	}
	return on
}

// Verdict is what one of ours is against the front of a family alone, or of all rivals
// with an empty name.
func (r *Report) Verdict(ours int, family string) front.Verdict {
	rivals := r.Rivals
	if family != "" {
		rivals = Of(rivals, family)
	}
	return front.Judge(r.Ours[ours].Judged(), judged(rivals))
}
