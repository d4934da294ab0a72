package allocation

import "llmd.ai/workload-variant-autoscaler/test/performance/harness"

// What the answers are to reach.
const (
	mostMeanGapPct = 1
	mostMsAt200    = 50
	// same is how near two levels are the same, as a share of the level and of the
	// priority's demand at the price of the last band.
	same, sameShare = 0.001, 0.005
)

// firstDifference is the first priority at which the levels are not the same.
func firstDifference(a, b []float64) (at int, differs bool) {
	for i := range a {
		if a[i] > b[i]*(1+same)+sameShare || a[i] < b[i]*(1-same)-sameShare {
			return i, true
		}
	}
	return 0, false
}

func verify(s summary) *harness.Verdict {
	v := &harness.Verdict{}
	v.Printf("\n%d instances solved exactly, %d of them served alike:", s.Compared, s.Equal)
	v.Ask(s.MeanGapPct <= mostMeanGapPct, "gap in cost %.3f %% in the mean (at most %d), %.2f %% at most", s.MeanGapPct, mostMeanGapPct, s.MaxGapPct)
	v.Ask(s.MeanObjectiveGapPct <= mostMeanGapPct, "gap in what differs first %.3f %% in the mean (at most %d), %.2f %% at most", s.MeanObjectiveGapPct, mostMeanGapPct, s.MaxObjectiveGapPct)
	v.Ask(s.Worse == 0, "%d with more unserved demand, by priority", s.Worse)
	v.Ask(s.MaxMsAt200 <= mostMsAt200, "%.1f ms with up to 200 variants (at most %d)", s.MaxMsAt200, mostMsAt200)
	v.Printf("%d where the exact solver was stopped: it had less unserved all the same in %d, and more in %d", s.Stopped, s.WorseThanStopped, s.BetterThanStopped)
	return v
}
