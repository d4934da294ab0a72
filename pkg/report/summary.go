package report

import (
	"fmt"
	"path"
	"slices"
	"time"
)

var (
	modelHeader      = []string{"MODEL", "MET SLO", "WARM", "TTFT P50", "P95", "P99", "ITL P50", "P95", "P99"}
	modelWidths      = []int{-33, 7, 6, 8, 8, 8, 7, 7, 7}
	comparisonHeader = []string{"IN VIRTUAL TIME", "MET SLO", "COST", "HPA MET SLO", "COST", "ITS SETTING"}
	comparisonWidths = []int{-33, 7, 6, 11, 6, -28}
	summaryHeader    = []string{"VARIANT", "TAKES", "COST/H", "MOST", "LAST", "WRITES", "GPU-HOURS", "COST"}
	summaryWidths    = []int{-18, -8, 8, 5, 5, 7, 10, 9}
)

// Summary renders the report as lines for people. scheduler is the one that should
// have placed every pod.
func (d Demo) Summary(style Style, scheduler string) []string {
	lines := []string{
		style.Title("Summary"),
		fmt.Sprintf("%s of traffic (%s), Kubernetes %s", Clock(d.duration()), d.traffic(), d.KubernetesVersion),
		fmt.Sprintf("%d requests: %d completed, %d failed", d.Requests.Total, d.Requests.Completed, d.Requests.Failed),
		d.sizing(),
		"",
		style.row(modelWidths, header(modelHeader)),
	}
	for _, m := range d.Models {
		lines = append(lines, style.row(modelWidths, m.cells()))
	}
	lines = append(lines,
		style.paint(faint, "met SLO: share of all requests within the TTFT and ITL targets; warm: of those that arrived after"),
		style.paint(faint, "the first scale-up's replicas were Ready"),
		"")
	lines = append(lines, d.comparisonLines(style)...)
	lines = append(lines, style.row(summaryWidths, header(summaryHeader)))
	for _, v := range d.Variants {
		lines = append(lines, style.row(summaryWidths, v.cells()))
	}
	return append(lines, d.placementLines(style, scheduler)...)
}

// sizing says what the autoscaler was to reach, and what it was told.
func (d Demo) sizing() string {
	text := d.Mode + " mode: sized by saturation alone; nothing keeps latencies low"
	if d.Aim > 0 {
		text = fmt.Sprintf("%s mode: sized so that %g%% of the requests meet the SLO", d.Mode, 100*d.Aim)
	}
	if d.Profiles {
		text += "; latency profiles were given"
	}
	return text
}

func (d Demo) duration() time.Duration {
	return time.Duration(d.DurationSeconds * float64(time.Second))
}

func (d Demo) traffic() string {
	if d.Trace == Synthetic {
		return Synthetic
	}
	return fmt.Sprintf("%s, every request %g times", path.Base(d.Trace), d.Rate)
}

func (m Model) cells() []cell {
	attained := func(value *float64) cell {
		if value == nil {
			return cell{text: unknown}
		}
		return cell{text: fmt.Sprintf("%.1f%%", *value*100), tone: judged(*value)}
	}
	return []cell{
		{text: m.Model}, attained(m.Attainment), attained(m.AttainmentWarm),
		{text: latency(m.TTFT.P50)}, {text: latency(m.TTFT.P95)}, {text: latency(m.TTFT.P99)},
		{text: latency(m.ITL.P50)}, {text: latency(m.ITL.P95)}, {text: latency(m.ITL.P99)},
	}
}

func (v Variant) cells() []cell {
	most, last := unknown, unknown
	if n := len(v.Replicas); n > 0 {
		last = fmt.Sprint(v.Replicas[n-1].Desired)
		most = fmt.Sprint(slices.MaxFunc(v.Replicas, func(a, b ReplicaPoint) int { return a.Desired - b.Desired }).Desired)
	}
	return []cell{
		{text: v.Name}, {text: fmt.Sprintf("%dx%s", v.AcceleratorCount, v.Accelerator)}, {text: money(v.CostPerReplicaHour)},
		{text: most}, {text: last}, {text: fmt.Sprint(v.ScaleWrites)},
		{text: fmt.Sprintf("%.3f", v.GPUHours)}, {text: money(v.Cost)},
	}
}

func (d Demo) placementLines(style Style, scheduler string) []string {
	wrong := d.Misplaced(scheduler)
	lines := []string{"", fmt.Sprintf("placements: %d right, %s", len(d.Placements)-len(wrong),
		style.paint(when(len(wrong) > 0, bad), fmt.Sprintf("%d wrong", len(wrong))))}
	for _, p := range wrong {
		on := p.Accelerator
		if on == "" {
			on = "no accelerator"
		}
		lines = append(lines, cut(fmt.Sprintf("  %s of %s is on %s with %s, by %s", p.Pod, p.Variant, p.Node, on, p.Scheduler), style.width()))
	}
	return lines
}

// comparisonLines say what a HorizontalPodAutoscaler does with the same traffic.
func (d Demo) comparisonLines(style Style) []string {
	var lines []string
	for _, m := range d.Models {
		if c := m.Comparison; c != nil {
			lines = append(lines, style.row(comparisonWidths, []cell{
				{text: m.Model}, {text: attained(c.Own.Attainment)}, {text: times(c.Own.CostOverBound)},
				{text: attained(c.HPA.Attainment)}, {text: times(c.HPA.CostOverBound)}, {text: c.HPA.Policy},
			}))
		}
	}
	if lines == nil {
		return nil
	}
	lines = append([]string{style.row(comparisonWidths, header(comparisonHeader))}, lines...)
	return append(lines, style.paint(faint, "the same traffic; cost: over the bound; the HPA has the setting that hindsight finds best"), "")
}

func times(factor float64) string { return fmt.Sprintf("%.2fx", factor) }
