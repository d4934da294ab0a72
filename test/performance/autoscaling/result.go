package autoscaling

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
)

// results are the numbers as other programs read them. Their JSON names are a published
// format. A number that is not known is null.
type results struct {
	Commit   string       `json:"commit"`
	Seeds    int          `json:"seeds"`
	Fronts   []frontRow   `json:"fronts"`
	Verdicts []verdictRow `json:"verdicts"`
	Singles  []singleRow  `json:"singles"`
	Claims   []claim      `json:"claims"`
	// Compared are the cases that docs/benchmarks.md has, against the page.
	Compared []comparison `json:"documented"`
	Runs     []runRow     `json:"runs"`
}

// where says what a row is of.
type where struct {
	Trace          string  `json:"trace"`
	StartupSeconds float64 `json:"startupSeconds"`
	Prices         string  `json:"prices"`
	Cluster        string  `json:"cluster"`
}

// kept is what was kept and cost in the mean over the seeds, with the standard errors.
type kept struct {
	Attainment      float64  `json:"attainment"`
	AttainmentNoise *float64 `json:"attainmentNoise"`
	Cost            float64  `json:"cost"`
	CostNoise       *float64 `json:"costNoise"`
	CostOverBound   *float64 `json:"costOverBound"`
	Seeds           int      `json:"seeds"`
}

// frontRow is one point of the front of a family; OnFront is set where it is on the front of
// all rivals.
type frontRow struct {
	where
	Family  string `json:"family"`
	Setting string `json:"setting"`
	kept
	OnFront bool `json:"onFront"`
}

// verdictRow is one of ours against the front of all rivals.
type verdictRow struct {
	where
	Policy string `json:"policy"`
	kept
	FrontCost            *float64    `json:"frontCostAtSameAttainment"`
	FrontCostNoise       *float64    `json:"frontCostNoise"`
	Ratio                *float64    `json:"ratio"`
	Noise                *float64    `json:"ratioNoise"`
	Is                   front.Place `json:"ratioIs"`
	FrontAttainment      *float64    `json:"frontAttainmentAtSameCost"`
	FrontAttainmentNoise *float64    `json:"frontAttainmentNoise"`
}

// singleRow is the best single setting of a family over the plain traces. Its cost is in
// units of ours.
type singleRow struct {
	Family          string      `json:"family"`
	Setting         string      `json:"setting"`
	Attainment      float64     `json:"attainment"`
	AttainmentNoise *float64    `json:"attainmentNoise"`
	Worst           float64     `json:"worstAttainment"`
	WorstNoise      *float64    `json:"worstAttainmentNoise"`
	Cost            float64     `json:"costOverOurs"`
	CostNoise       *float64    `json:"costOverOursNoise"`
	Ratio           *float64    `json:"ratio"`
	Noise           *float64    `json:"ratioNoise"`
	Is              front.Place `json:"ratioIs"`
}

// runRow is one run of those that are pictured.
type runRow struct {
	Trace   string `json:"trace"`
	Prices  string `json:"prices"`
	Cluster string `json:"cluster"`
	replay.Result
}

// results are the numbers of a bench.
func (b *bench) results() results {
	r := results{Commit: b.commit, Seeds: b.seeds, Claims: b.claims, Compared: b.compared}
	for i := range b.fronts {
		f, at := &b.fronts[i], b.where(i)
		for k := range f.Points {
			p := &f.Points[k]
			r.Fronts = append(r.Fronts, frontRow{at, p.Family, p.Policy, keptOf(p.Point, p.Noise, p.Seeds, f.BoundCost), p.OnFront})
		}
		for k := range f.Ours {
			v := &f.Ours[k]
			r.Verdicts = append(r.Verdicts, verdictRow{
				at, v.Policy, keptOf(v.Own, v.Noise, v.Seeds, f.BoundCost),
				orNull(v.FrontCost), orNull(v.FrontNoise.Cost), orNull(v.Ratio), orNull(v.Verdict.Noise), v.Place,
				orNull(v.FrontAttainment), orNull(v.FrontNoise.Attainment),
			})
		}
	}
	for _, s := range b.singles {
		r.Singles = append(r.Singles, singleRow{
			s.Family, s.Policy, s.Point.Attainment, orNull(s.Noise.Attainment), s.Worst, orNull(s.WorstNoise), s.Point.Cost, orNull(s.Noise.Cost),
			orNull(s.Verdict.Ratio), orNull(s.Verdict.Noise), s.Verdict.Place,
		})
	}
	for _, p := range b.pictured {
		at := b.where(p.place)
		r.Runs = append(r.Runs, runRow{at.Trace, at.Prices, at.Cluster, p.Result})
	}
	return r
}

func (b *bench) where(i int) where {
	c := &b.cases[i]
	return where{c.trial.trace.name, c.Startup.Seconds(), c.trial.prices, c.trial.cluster}
}

func keptOf(p, noise front.Point, seeds int, bound float64) kept {
	return kept{
		Attainment: rounded(p.Attainment), AttainmentNoise: orNull(noise.Attainment), Cost: rounded(p.Cost), CostNoise: orNull(noise.Cost),
		CostOverBound: orNull(p.Cost / bound), Seeds: seeds,
	}
}

func orNull(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return new(rounded(value))
}

// rounded keeps six digits after the point, far more than the noise.
func rounded(value float64) float64 { return math.Round(value*1e6) / 1e6 }

// keep writes the files.
func (b *bench) keep(o *options) error {
	if o.target != "" {
		encoded, err := json.MarshalIndent(b.results(), "", "  ")
		if err != nil {
			return fmt.Errorf("encode the results: %w", err)
		}
		if err := os.WriteFile(o.target, append(encoded, '\n'), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	if o.page == "" {
		return nil
	}
	runs := make([]report.ReplayRun, len(b.pictured))
	for i := range b.pictured {
		runs[i] = b.pictured[i].ReplayRun
	}
	file, err := os.Create(o.page)
	if err != nil {
		return fmt.Errorf("write the pictures: %w", err)
	}
	if err := sweep.HTML(file, "Scaling policies at their best on recorded traces", b.fronts, runs); err != nil {
		_ = file.Close()
		return fmt.Errorf("write the pictures: %w", err)
	}
	return file.Close()
}
