package replay

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/sweep"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// ofFront is one object of the output with --tune: a result in the mean over the seeds, as
// one of ours with its verdict, or as a point of a front.
type ofFront struct {
	replay.Result
	Seeds           int      `json:"seeds"`
	AttainmentNoise *float64 `json:"attainmentNoise"`
	CostNoise       *float64 `json:"costNoise"`
	// Front is set for the points of the front of a family, and OnFront for those that are
	// on the front of all of them.
	Front   bool   `json:"front,omitempty"`
	OnFront bool   `json:"onFront,omitempty"`
	Family  string `json:"family,omitempty"`
	// The others are those of a verdict.
	*verdict
}

// verdict is what one of ours is against the front of all rivals.
type verdict struct {
	FrontCost            *float64    `json:"frontCostAtSameAttainment"`
	FrontCostNoise       *float64    `json:"frontCostNoise"`
	Ratio                *float64    `json:"ratio"`
	Noise                *float64    `json:"ratioNoise"`
	Place                front.Place `json:"ratioIs"`
	FrontAttainment      *float64    `json:"frontAttainmentAtSameCost"`
	FrontAttainmentNoise *float64    `json:"frontAttainmentNoise"`
}

// tune sweeps the families that the command line names, once for each start-up time.
func (j *job) tune(ctx context.Context) error {
	shown := newProgress(j.err)
	defer shown.end()
	cases, err := j.cases(ctx)
	if err != nil {
		return err
	}
	o := sweep.Options{
		Cases: cases, Workers: runtime.GOMAXPROCS(0),
		Progress: shown.count,
		Stop:     func() bool { return ctx.Err() != nil },
	}
	reports, err := sweep.New(o).Run()
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if err != nil {
		return err
	}
	if j.page != nil {
		if err := j.drawFronts(cases, reports); err != nil {
			return err
		}
	}
	if j.output == "json" {
		return j.writeJSON(listed(cases, reports))
	}
	style, _ := output.StyleOf(j.out)
	for i := range reports {
		fronts := reports[i].Fronts(&cases[i])
		lines := []string{style.Title(fmt.Sprintf("%s, start-up %s, seeds: %d", j.title(), report.Duration(cases[i].Startup), j.seeds))}
		if len(reports[i].Ours) > 0 {
			lines = append(lines, report.ReplayDispersion(reports[i].Ours[0].Results)...)
		}
		if _, err := fmt.Fprintln(j.out, strings.Join(append(lines, report.FrontTable(&fronts, style)...), "\n")); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	return nil
}

// drawFronts writes the page.
func (j *job) drawFronts(cases []sweep.Case, reports []sweep.Report) error {
	var fronts []report.Fronts
	var runs []report.ReplayRun
	for i := range reports {
		pictures, err := reports[i].Pictures(&cases[i])
		if err != nil {
			return err
		}
		fronts, runs = append(fronts, reports[i].Fronts(&cases[i])), append(runs, pictures...)
	}
	return j.page.write(func(w io.Writer) error {
		return report.HTMLOfTuned(w, report.About{Title: j.title(), Share: j.scenario.Policy.Share, Made: j.made}, fronts, runs)
	})
}

// cases are one for each start-up time, with a trial for each seed.
func (j *job) cases(ctx context.Context) ([]sweep.Case, error) {
	cases := make([]sweep.Case, len(j.startups))
	for i, startup := range j.startups {
		cases[i] = sweep.Case{Name: j.title(), Startup: startup, Ours: j.policies, Rivals: j.rivals, Aside: j.aside}
	}
	trials, err := sweep.Trials(runtime.GOMAXPROCS(0), j.seeds, func(k int) (*replay.Trial, error) {
		with := *j.options
		with.seed = j.seed + uint64(k)
		var asItIs workload.Dispersion
		source, err := with.asked(ctx, j.scenario, &asItIs)
		if err != nil {
			return nil, err
		}
		return replay.NewTrial(replay.TrialOptions{
			Scenario: j.scenario, Source: source, Trace: &asItIs, Startups: j.startups, Seed: with.seed,
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range cases {
		cases[i].Trials = trials
	}
	return cases, nil
}

// listed are ours with their verdicts, and the points of the fronts of all families.
func listed(cases []sweep.Case, reports []sweep.Report) []any {
	list := []any{}
	for i := range reports {
		r := &reports[i]
		fronts := r.Fronts(&cases[i])
		for k := range r.Ours {
			v := &fronts.Ours[k]
			one := ofFront{
				Result: r.Ours[k].Results[0], Seeds: v.Seeds, AttainmentNoise: orNull(v.Noise.Attainment), CostNoise: orNull(v.Noise.Cost),
				verdict: &verdict{
					orNull(v.FrontCost), orNull(v.FrontNoise.Cost), orNull(v.Ratio), orNull(v.Verdict.Noise), v.Place,
					orNull(v.FrontAttainment), orNull(v.FrontNoise.Attainment),
				},
			}
			one.in(v.Own, fronts.BoundCost)
			list = append(list, one)
		}
		entries := map[string]*sweep.Entry{}
		for _, all := range [][]sweep.Entry{r.Rivals, r.Aside} {
			for k := range all {
				entries[all[k].Policy] = &all[k]
			}
		}
		for k := range fronts.Points {
			p := &fronts.Points[k]
			one := ofFront{
				Result: entries[p.Policy].Results[0], Seeds: p.Seeds, AttainmentNoise: orNull(p.Noise.Attainment), CostNoise: orNull(p.Noise.Cost),
				Front: true, Family: p.Family, OnFront: p.OnFront,
			}
			one.in(p.Point, fronts.BoundCost)
			list = append(list, one)
		}
	}
	return list
}

// in puts the mean over the seeds in the place of what the first one kept and cost.
func (o *ofFront) in(mean front.Point, bound float64) {
	o.Attainment, o.Cost, o.CostOverBound = mean.Attainment, mean.Cost, mean.Cost/bound
}

func orNull(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return new(math.Round(value*1e6) / 1e6)
}
