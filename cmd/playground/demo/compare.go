package demo

import (
	"fmt"
	"runtime"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// rivalTargets are the requests in flight per replica that a HorizontalPodAutoscaler is
// tried with, and rivalWindows its stabilization windows of scaling down.
var (
	rivalTargets = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}
	rivalWindows = []string{"30s", "60s", "300s"}
)

// comparisons are what the demo's own mode, and a HorizontalPodAutoscaler on requests in
// flight per replica, do with the same traffic in virtual time, by model. The
// HorizontalPodAutoscaler has the setting that hindsight chooses for each model.
func (p plan) comparisons() ([]report.Comparison, error) {
	policies := []string{p.Mode}
	for _, target := range rivalTargets {
		for _, window := range rivalWindows {
			policies = append(policies, fmt.Sprintf("hpa:inflight=%d,down=%s", target, window))
		}
	}
	replays, err := p.replays()
	if err != nil {
		return nil, err
	}
	var all []report.Comparison
	for _, o := range replays {
		o.Policies, o.Record, o.Workers = policies, false, runtime.GOMAXPROCS(0)
		results, _, err := replay.Run(o)
		if err != nil {
			return nil, err
		}
		all = append(all, report.Comparison{Own: compared(results[0]), HPA: compared(rival(results[0], results[1:]))})
	}
	return all, nil
}

// rival is the cheapest of the results that keep the promise as often as ours; where none
// does, the one that keeps it most often.
func rival(own replay.Result, others []replay.Result) replay.Result {
	best := others[0]
	for _, r := range others[1:] {
		least := min(own.Attainment, max(r.Attainment, best.Attainment))
		if best.Attainment < least || r.Attainment >= least && r.Cost < best.Cost {
			best = r
		}
	}
	return best
}

func compared(r replay.Result) report.Compared {
	return report.Compared{Policy: r.Policy, Attainment: r.Attainment, CostOverBound: r.CostOverBound}
}
