package autoscaling

import (
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
)

// documented is what docs/benchmarks.md says of hybrid mode in one case. A test keeps the two
// the same.
type documented struct {
	trial   string
	startup time.Duration
	// row is how the row of the page begins.
	row string
	// attainment is in per cent, as the page has it.
	attainment, attainmentNoise float64
	ratio, ratioNoise           float64
}

var pageOfRatios = []documented{
	{"azure-conversation aws roomy", both[0], "conversation x20, 60 s", 95.0, 1.5, 1.05, 0.00},
	{"azure-conversation aws roomy", both[1], "conversation x20, 300 s", 92.1, 1.6, 1.10, 0.01},
	{"azure-code aws roomy", both[0], "code x20, 60 s", 86.0, 1.2, 1.18, 0.05},
	{"azure-code aws roomy", both[1], "code x20, 300 s", 90.2, 6.1, 1.17, 0.10},
	{"servegen-m-large aws roomy", both[0], "m-large, a day at a tenth of its rate, 60 s", 96.5, 0.2, 1.03, 0.01},
	{"servegen-m-large aws roomy", both[1], "m-large, a day at a tenth of its rate, 300 s", 96.2, 0.2, 1.07, 0.01},
	{"synthetic-diurnal aws roomy", both[0], "synthetic day, 60 s", 97.6, 0.1, 1.01, 0.00},
	{"synthetic-diurnal aws roomy", both[1], "synthetic day, 300 s", 97.9, 0.1, 1.02, 0.00},
	{"azure-conversation aws full", both[0], "conversation x20 on a full cluster", 95.9, 1.7, 1.00, 0.04},
	{"azure-conversation-told aws roomy", both[0], "the exact profile", 98.5, 0.7, 1.09, 0.03},
	{"azure-conversation-learning aws roomy", both[0], "nothing", 86.7, 0.9, 1.02, 0.01},
	{"two-models busy-60", both[0], "`two-models`, 60 % full", 98.5, 0.1, 1.02, 0.00},
	{"two-models busy-85", both[0], "`two-models`, 85 % full", 98.4, 0.1, 0.98, 0.01},
	{"five-models busy-60", both[0], "`five-models`, 60 % full", 98.9, 0.0, 1.00, 0.01},
	{"five-models busy-85", both[0], "`five-models`, 85 % full", 98.9, 0.0, 1.00, 0.01},
	{"failing-nodes", both[0], "`failing-nodes`", 96.7, 0.3, 0.85, 0.03},
	{"four-cheap", both[0], "`four-cheap`", 97.9, 0.1, 0.92, 0.00},
	{"spot", both[0], "`spot`", 96.9, 0.2, 0.92, 0.03},
}

// comparison is one case against the page.
type comparison struct {
	Of         string   `json:"of"`
	Attainment float64  `json:"attainment"`
	Ratio      *float64 `json:"ratio"`
	// Documented are the same of the page.
	DocumentedAttainment float64 `json:"documentedAttainment"`
	DocumentedRatio      float64 `json:"documentedRatio"`
	// Worse says what is worse than on the page beyond the noise of both; empty where nothing is.
	Worse string `json:"worse,omitempty"`
}

// compare compares hybrid mode with the page, in each case that it has. The page's numbers are
// rounded, and so are their errors: half a digit and an error of half a digit are added.
func (b *bench) compare() (all []comparison) {
	for i := range b.cases {
		c := &b.cases[i]
		for _, d := range pageOfRatios {
			if d.trial == c.trial.String() && d.startup == c.Startup {
				all = append(all, d.against(b.place(i), &b.reports[i].Verdicts[0], noiseOf(&b.reports[i].Ours[0])))
			}
		}
	}
	return all
}

// noiseOf is the standard error of what one of ours attains.
func noiseOf(e *sweep.Entry) float64 {
	judged := e.Judged()
	return judged.Noise().Attainment
}

// against is the comparison with a verdict, and the standard error of its attainment.
func (d *documented) against(of string, v *front.Verdict, noise float64) comparison {
	const halfRatio, halfPercent = 0.005, 0.0005
	kept := d.attainment / 100
	c := comparison{Of: of, Attainment: rounded(v.Own.Attainment), Ratio: orNull(v.Ratio), DocumentedAttainment: kept, DocumentedRatio: d.ratio}
	if front.AtMost(kept-v.Own.Attainment, math.Hypot(noise, d.attainmentNoise/100+halfPercent), v.Seeds, front.Within, halfPercent) == front.Fails {
		c.Worse = fmt.Sprintf("attains %.1f %%, the page says %.1f ± %.1f %%", 100*v.Own.Attainment, d.attainment, d.attainmentNoise)
	}
	if front.AtMost(v.Ratio, math.Hypot(v.Noise, d.ratioNoise+halfRatio), v.Seeds, v.Place, d.ratio+halfRatio) == front.Fails {
		if c.Worse != "" {
			c.Worse += "; "
		}
		c.Worse += fmt.Sprintf("costs %s of the front, the page says %.2f ± %.2f", ratioText(v.Ratio, v.Noise, v.Place), d.ratio, d.ratioNoise)
	}
	return c
}
