package sweep

import (
	"cmp"
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// Fronts is the report as people and other programs see it.
func (r *Report) Fronts(c *Case) Fronts {
	f := Fronts{Scene: c.Name, Startup: c.Startup.Seconds(), Tried: len(r.Rivals) + len(r.Aside), GivenUp: r.GivenUp}
	for _, trial := range c.Trials {
		f.BoundCost += trial.Bound().Cost / float64(len(c.Trials))
	}
	for i := range r.Ours {
		e := r.Ours[i].Judged()
		f.Ours = append(f.Ours, Judged{Policy: e.Setting, Noise: e.Noise(), Verdict: r.Verdicts[i]})
	}
	onFront := map[string]bool{}
	for _, e := range Front(whole(r.Rivals, len(c.Trials))) {
		onFront[e.Policy] = true
	}
	for i, entries := range [][]Entry{r.Rivals, r.Aside} {
		for _, family := range families(entries) {
			for _, one := range shownOf(Of(entries, family), len(c.Trials)) {
				e := one.Judged()
				f.Points = append(f.Points, FrontPoint{
					Family: e.Family, Policy: e.Setting, Point: e.Mean(), Noise: e.Noise(), Seeds: len(e.Runs),
					Rival: i == 0, OnFront: i == 0 && onFront[e.Setting],
				})
			}
		}
	}
	return f
}

// shownOf is the front of a family: that of its entries with all seeds, and beside it those
// with one seed that no entry dominates. One of them that dominates a part of it is left out:
// one seed may be luck.
func shownOf(entries []Entry, seeds int) []Entry {
	sure := Front(whole(entries, seeds))
	shown := Front(entries)
	shown = slices.DeleteFunc(shown, func(e Entry) bool {
		p := e.Mean()
		return len(e.Results) != seeds && slices.ContainsFunc(sure, func(s Entry) bool {
			q := s.Mean()
			return p.Cost <= q.Cost && p.Attainment >= q.Attainment
		})
	})
	for _, s := range sure {
		if !slices.ContainsFunc(shown, func(e Entry) bool { return e.Policy == s.Policy }) {
			shown = append(shown, s)
		}
	}
	slices.SortStableFunc(shown, func(a, b Entry) int { return cmp.Compare(a.Mean().Cost, b.Mean().Cost) })
	return shown
}

// whole are the entries that ran with all seeds.
func whole(entries []Entry, seeds int) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return len(e.Results) != seeds })
}

// families are those of the entries, in their order.
func families(entries []Entry) []string {
	var names []string
	for i := range entries {
		if !slices.Contains(names, entries[i].Family) {
			names = append(names, entries[i].Family)
		}
	}
	return names
}

// Nearest is the rival with all seeds that is on the front next to what one of ours keeps:
// the cheapest one that keeps as much, else the one that keeps most. False without any.
func (r *Report) Nearest(ours int) (Entry, bool) {
	on := Front(whole(r.Rivals, len(r.Ours[ours].Results)))
	if len(on) == 0 {
		return Entry{}, false
	}
	enough := min(front.Enough, r.Verdicts[ours].Own.Attainment)
	if i := slices.IndexFunc(on, func(e Entry) bool { return e.Mean().Attainment >= enough }); i >= 0 {
		return on[i], true
	}
	return on[len(on)-1], true
}

// Pictures plays ours again with the first seed, and beside them the rival that is next on
// the front to the one of ours that keeps most, and keeps what happened.
func (r *Report) Pictures(c *Case) ([]report.ReplayRun, error) {
	policies := slices.Clone(c.Ours)
	most := -1
	for i := range r.Verdicts {
		if most < 0 || r.Verdicts[i].Own.Attainment > r.Verdicts[most].Own.Attainment {
			most = i
		}
	}
	if most >= 0 {
		if rival, some := r.Nearest(most); some {
			policies = append(policies, rival.Policy)
		}
	}
	runs := make([]report.ReplayRun, len(policies))
	for i, policy := range policies {
		result, recording, err := c.Trials[0].Play(replay.Play{Policy: policy, Startup: c.Startup, Record: true})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		runs[i] = report.ReplayRun{Scene: c.Name, Result: result, Recording: &recording}
	}
	return runs, nil
}
