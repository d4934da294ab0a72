package replay

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/sweep"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/tuning"
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
	// Front is set for the points of a front.
	Front  bool   `json:"front,omitempty"`
	Family string `json:"family,omitempty"`
	// The others are those of a verdict.
	*verdict
}

// verdict is what one of ours is against the front of all rivals.
type verdict struct {
	FrontCost       *float64    `json:"frontCostAtSameAttainment"`
	Ratio           *float64    `json:"ratio"`
	Noise           *float64    `json:"ratioNoise"`
	Place           front.Place `json:"ratioIs"`
	FrontAttainment *float64    `json:"frontAttainmentAtSameCost"`
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
		Cases: cases, Ours: j.policies, Workers: runtime.GOMAXPROCS(0),
		Progress: shown.count,
		Stop:     func() bool { return ctx.Err() != nil },
	}
	for _, name := range j.tuned {
		family, err := tuning.Named(name)
		if err != nil {
			return err
		}
		o.Rivals = append(o.Rivals, family)
	}
	reports, err := sweep.New(o).Run()
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if err != nil {
		return err
	}
	if j.output == "json" {
		return j.writeJSON(listed(reports, j.tuned))
	}
	for i := range reports {
		if err := j.writeFront(cases[i].Startup, &reports[i]); err != nil {
			return err
		}
	}
	return nil
}

// cases are one for each start-up time, with a trial for each seed.
func (j *job) cases(ctx context.Context) ([]sweep.Case, error) {
	cases := make([]sweep.Case, len(j.startups))
	for i, startup := range j.startups {
		cases[i] = sweep.Case{Name: fmt.Sprintf("start-up %s", report.Duration(startup)), Startup: startup, Models: len(j.scenario.Models)}
	}
	trials, err := sweep.Trials(runtime.GOMAXPROCS(0), j.seeds, func(k int) (*replay.Trial, error) {
		with := *j.options
		with.seed = j.seed + uint64(k)
		var asItIs workload.Dispersion
		source, err := with.source(ctx, &asItIs)
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
func listed(reports []sweep.Report, families []string) []ofFront {
	list := []ofFront{}
	for i := range reports {
		r := &reports[i]
		for k := range r.Ours {
			one := meanOf(&r.Ours[k])
			v := &r.Verdicts[k]
			one.verdict = &verdict{orNull(v.FrontCost), orNull(v.Ratio), orNull(v.Noise), v.Place, orNull(v.FrontAttainment)}
			list = append(list, one)
		}
		for _, family := range families {
			for _, e := range r.Front(family) {
				one := meanOf(&e)
				one.Front, one.Family = true, family
				list = append(list, one)
			}
		}
	}
	return list
}

// meanOf is the result of the first seed with the mean of what was kept and cost.
func meanOf(e *sweep.Entry) ofFront {
	entry := e.Judged()
	mean, noise := entry.Mean(), entry.Noise()
	one := ofFront{Result: e.Results[0], Seeds: len(e.Results), AttainmentNoise: orNull(noise.Attainment), CostNoise: orNull(noise.Cost)}
	one.Attainment, one.Cost, one.CostOverBound = mean.Attainment, mean.Cost, 0
	for i := range e.Results {
		one.CostOverBound += e.Results[i].CostOverBound / float64(len(e.Results))
	}
	return one
}

func orNull(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return new(math.Round(value*1e6) / 1e6)
}

// writeFront prints ours and the front of all rivals as a table.
func (j *job) writeFront(startup time.Duration, r *sweep.Report) error {
	if _, err := fmt.Fprintf(j.out, "%s, start-up %s, %d seeds; %d settings on the way to the front, %d given up\n",
		j.title(), report.Duration(startup), j.seeds, len(r.Rivals), r.GivenUp); err != nil {
		return err
	}
	w := tabwriter.NewWriter(j.out, 0, 0, 2, ' ', 0)
	line := func(name string, e *sweep.Entry, last string) {
		one := meanOf(e)
		_, _ = fmt.Fprintf(w, "%s\t%.2f%%%s\t$%.2f%s\t%.3f\t%s\n", name, 100*one.Attainment, plusMinus(one.AttainmentNoise, 100, 2), one.Cost, plusMinus(one.CostNoise, 1, 2), one.CostOverBound, last)
	}
	_, _ = fmt.Fprintln(w, "POLICY\tMET SLO\tCOST\tx BOUND\tCOST / FRONT'S AT SAME ATTAINMENT")
	for i := range r.Ours {
		line(r.Ours[i].Policy, &r.Ours[i], ratioText(&r.Verdicts[i]))
	}
	for _, e := range r.Front("") {
		line(e.Policy, &e, strings.Repeat("front", min(1, len(e.Results)/j.seeds)))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	_, err := io.WriteString(j.out, "\n")
	return err
}

// ratioText is a ratio with its noise, and what is known of it.
func ratioText(v *front.Verdict) string {
	noise := plusMinus(orNull(v.Noise), 1, 3)
	switch v.Place {
	case front.Above:
		return fmt.Sprintf("at most %.3f%s, no rival attains as much", v.Ratio, noise)
	case front.Below:
		return fmt.Sprintf("at least %.3f%s, all rivals attain more", v.Ratio, noise)
	case front.Nowhere:
		return "no rivals"
	case front.Within:
	}
	return fmt.Sprintf("%.3f%s", v.Ratio, noise)
}

func plusMinus(noise *float64, times float64, places int) string {
	if noise == nil {
		return ""
	}
	return fmt.Sprintf(" ±%.*f", places, times**noise)
}
