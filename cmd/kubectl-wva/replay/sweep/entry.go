package sweep

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/tuning"
)

// Case is one load in one setting with one start-up time.
type Case struct {
	Name    string
	Startup time.Duration
	// Trials are the same case with one seed each.
	Trials []*replay.Trial
	// Models is how many models the scenario has.
	Models int
}

// loadTests are what a load test of one replica of each model finds.
func (c *Case) loadTests() []tuning.LoadTest {
	tests := make([]tuning.LoadTest, c.Models)
	for m := range tests {
		tests[m] = c.Trials[0].LoadTest(m)
	}
	return tests
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
	// GivenUp is how many settings were.
	GivenUp int
}

// Of are the rivals of a family; of all with an empty name.
func (r *Report) Of(family string) []Entry {
	var own []Entry
	for i := range r.Rivals {
		if family == "" || r.Rivals[i].Family == family {
			own = append(own, r.Rivals[i])
		}
	}
	return own
}

// Front are the rivals of a family, or of all with an empty name, that are on its front,
// in the order of the front.
func (r *Report) Front(family string) []Entry {
	own := r.Of(family)
	points := make([]front.Point, len(own))
	for i := range own {
		points[i] = own[i].Mean()
	}
	var on []Entry
	for _, i := range front.Indices(points) {
		on = append(on, own[i])
	}
	return on
}

// Verdict is what one of ours is against the front of a family alone.
func (r *Report) Verdict(ours int, family string) front.Verdict {
	return front.Judge(r.Ours[ours].Judged(), judged(r.Of(family)))
}
