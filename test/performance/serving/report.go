package serving

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// report says what is judged, and what a prediction uses.
func report(out *strings.Builder, path string, rows []row) {
	shapes := map[[2]float64]bool{}
	median := 0
	for _, r := range rows {
		shapes[[2]float64{r.in, r.out}] = true
		if r.medianTTFT {
			median++
		}
	}
	fmt.Fprintf(out, "%s: %d constant-rate rows of %d token shapes\n", filepath.Base(path), len(rows), len(shapes))
	if median > 0 {
		fmt.Fprintf(out, "%d of them have an impossible mean TTFT (not positive: a broken clock); their median is used instead\n", median)
	}
	fmt.Fprintf(out, "a prediction uses rps, isl_mean, osl_mean and how long the run lasted: %s\n", durations(rows))
}

// durations says where the lengths of the runs come from.
func durations(rows []row) string {
	least, most, silent := time.Duration(math.MaxInt64), time.Duration(0), 0
	for _, r := range rows {
		if r.unsaid {
			silent++
			continue
		}
		least, most = min(least, r.window), max(most, r.window)
	}
	said := fmt.Sprintf("the row's duration_s, %.0f s to %.0f s", least.Seconds(), most.Seconds())
	assumed := fmt.Sprintf("%.0f s is assumed for the %d rows without duration_s", assumedRun.Seconds(), silent)
	switch silent {
	case 0:
		return said
	case len(rows):
		return assumed
	}
	return said + "; " + assumed
}

func table(out *strings.Builder, results []result) {
	fmt.Fprintf(out, "\n%-6s  %-8s  %10s  %10s\n", "form", "fold", "TTFT MAPE", "ITL MAPE")
	for _, r := range results {
		fmt.Fprintf(out, "%-6s  %-8s  %8.2f %%  %8.2f %%\n", r.Form, r.Fold, r.TTFTMAPEPct, r.ITLMAPEPct)
	}
}

// detail prints what our form learned from each half and where it errs on the other.
func detail(out *strings.Builder, rows []row) {
	halves := checkerboard(rows)
	for i, half := range halves {
		if len(half) == 0 || len(halves[1-i]) == 0 {
			continue
		}
		profile := learned(serving.Overlapped, halves[1-i])
		fmt.Fprintf(out, "\nfitted on the other half: %+v\n%6s %6s %9s %7s %9s %7s %9s %7s\n", profile, "in", "out", "rate", "batch", "TTFT", "error", "ITL", "error")
		for _, r := range half {
			batch, at := within(profile, r.point.Rate, r.point.Shape, r.window)
			fmt.Fprintf(out, "%6.0f %6.0f %9.3f %7.1f %9.1f %+6.1f%% %9.2f %+6.1f%%\n", r.in, r.out, float64(r.point.Rate), batch,
				float64(r.point.TTFT), 100*(float64(at.TTFT/r.point.TTFT)-1), float64(r.point.ITL), 100*(float64(at.ITL/r.point.ITL)-1))
		}
	}
}
