package autoscaling

import (
	"fmt"
	"io"
	"math"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
)

// print shows the fronts, the best single settings and the claims.
func (b *bench) print(out io.Writer) {
	for i := range b.fronts {
		lines := []string{b.place(i)}
		lines = append(lines, report.ReplayDispersion(b.reports[i].Ours[0].Results)...)
		lines = append(lines, sweep.FrontTable(&b.fronts[i])...)
		tell(out, "\n%s\n", strings.Join(lines, "\n"))
	}
	if len(b.singles) > 0 {
		tell(out, "\none setting of each family on all traces with one model, against %s:\n", ours[0])
		for _, s := range b.singles {
			tell(out, "  %-14s %-44s %6.2f%% in the mean, %6.2f%% at worst, at %.2f times the cost; ratio %s\n",
				s.Family, orNone(s.Policy), 100*s.Point.Attainment, 100*s.Worst, s.Point.Cost, ratioText(s.Verdict.Ratio, s.Verdict.Noise, s.Verdict.Place))
		}
	}
	tell(out, "\naims (a) to (c), which may be missed, and (d), which must hold:\n")
	for _, c := range b.claims {
		tell(out, "%s: %s\n", c.Claim, c.Answer)
		for _, f := range c.Parts {
			ratio := ""
			if f.Ratio != nil {
				noise := math.NaN()
				if f.Noise != nil {
					noise = *f.Noise
				}
				ratio = ratioText(*f.Ratio, noise, f.Is)
			}
			tell(out, "   %-13s  %s  %s\n", f.Answer, f.Of, ratio)
		}
	}
	b.printCompared(out)
}

// printCompared says which cases are worse than docs/benchmarks.md says.
func (b *bench) printCompared(out io.Writer) {
	if len(b.compared) == 0 {
		tell(out, "\ndocs/benchmarks.md has none of these cases\n")
		return
	}
	worse := 0
	var lines strings.Builder
	for i := range b.compared {
		if c := &b.compared[i]; c.Worse != "" {
			worse++
			fmt.Fprintf(&lines, "   %s: %s\n", c.Of, c.Worse)
		}
	}
	tell(out, "\n%s against docs/benchmarks.md: worse in %d of %d cases\n%s", ours[0], worse, len(b.compared), lines.String())
}

func orNone(setting string) string {
	if setting == "" {
		return "none comes near"
	}
	return setting
}

// ratioText is a ratio with its noise, and what is known of it.
func ratioText(ratio, noise float64, is front.Place) string {
	text := fmt.Sprintf("%.3f", ratio)
	if !math.IsNaN(noise) {
		text += fmt.Sprintf(" ± %.3f", noise)
	}
	switch is {
	case front.Above:
		return "at most " + text
	case front.Below:
		return "at least " + text
	case front.Nowhere:
		return "-"
	case front.Within:
	}
	return text
}

// markdown is a table of the verdicts for a README: a line for each of ours on each case.
func markdown(b *bench) string {
	var lines strings.Builder
	lines.WriteString("| trace, start-up | ours | kept, cost over the bound | others at the same attainment | ratio | others at the same cost |\n|---|---|---|---|---|---|\n")
	for i := range b.fronts {
		f := &b.fronts[i]
		for k := range f.Ours {
			v, nearest := &f.Ours[k], "none"
			if e, some := b.reports[i].Nearest(k); some {
				nearest = fmt.Sprintf("%.2f, next %s", v.FrontCost/f.BoundCost, e.Policy)
			}
			fmt.Fprintf(&lines, "| %s | %s | %s | %s | %s | %s |\n", b.place(i), v.Policy,
				cellOf(v, f.BoundCost), nearest, ratioText(v.Ratio, v.Verdict.Noise, v.Place), v.FrontMeets())
		}
	}
	return lines.String()
}

// cellOf is what was kept and cost, "98.4 % at 1.35". An attainment is rounded down, so that
// nobody has kept 99 % who has not.
func cellOf(j *sweep.Judged, bound float64) string {
	return fmt.Sprintf("%.1f %% at %.2f", math.Floor(1000*j.Own.Attainment+1e-9)/10, j.Own.Cost/bound)
}
