package simulation

import (
	"fmt"
	"io"
	"math"
	"path/filepath"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// result is one line of the benchmark's output, in per cent.
type result struct {
	Run              string  `json:"run"`
	MeanTTFTErrorPct float64 `json:"meanTtftErrorPct"`
	P99TTFTErrorPct  float64 `json:"p99TtftErrorPct"`
	MeanTPOTErrorPct float64 `json:"meanTpotErrorPct"`
	P99TPOTErrorPct  float64 `json:"p99TpotErrorPct"`
}

// targets are what each line is asked for, in per cent, in the order of values.
var targets = [4]float64{15, 25, 10, 25}

func lineOf(run string, size miss) result {
	pct := func(x float64) float64 { return math.Round(x*1e4) / 100 }
	return result{run, pct(size[0]), pct(size[1]), pct(size[2]), pct(size[3])}
}

func (r result) values() [4]float64 {
	return [4]float64{r.MeanTTFTErrorPct, r.P99TTFTErrorPct, r.MeanTPOTErrorPct, r.P99TPOTErrorPct}
}

// report prints what was judged and how, and the table.
type report struct{ out io.Writer }

func (p report) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(p.out, format, arguments...)
}

func (p report) sweep(path string, rows []row) {
	shapes, medians := map[[2]float64]bool{}, 0
	for _, r := range rows {
		shapes[[2]float64{r.in, r.out}] = true
		if r.measured.medianTTFT {
			medians++
		}
	}
	p.printf("%s on %s: %d constant-rate rows of %d token shapes, up to %v of the shape's throughput\n",
		filepath.Base(path), sweepDevice, len(rows), len(shapes), ceiling)
	if medians > 0 {
		p.printf("%d of them have an impossible mean TTFT (not positive: a broken clock); their median is used instead\n", medians)
	}
}

func (p report) record(r record, profile serving.Profile) {
	e := r.meta.Engine
	p.printf("%s: %d requests to %s on %d of %s; at most %d sequences, %d tokens per iteration, %.0f tokens of KV cache\n",
		r.name, len(r.requests), r.meta.Model, max(1, e.Tensor), r.meta.Hardware.Device, e.Sequences, e.BatchedTokens, float64(profile.KVTokens))
	if r.meta.Cache.Tokens == 0 {
		p.printf("  the size of its KV cache is not recorded: it is what the weights leave of %.0f GiB\n", r.memory)
	}
	switch cached, said := r.prefixes(); {
	case cached && said:
		p.printf("  its prefix cache finds what the hash_ids of its requests say\n")
	case cached:
		p.printf("  its prefix cache is taken to find nothing, as no hash_ids say which prompts begin alike\n")
	}
	if r.ahead() {
		p.printf("  it schedules while the device computes\n")
	}
	switch {
	case profile.Experts.Engines > 1:
		p.printf("  %d such engines share the experts and the requests, and go together\n", r.engines)
	case r.engines > 1:
		p.printf("  %d such engines share the requests\n", r.engines)
	}
}

func (p report) constants(half int, c efficiency) {
	p.printf("fitted on half %d: %.2f ms per iteration, %.3f of the published arithmetic\n", half+1, float64(c.Overhead), c.Arithmetic)
}

// row prints how one row of the sweep was predicted.
func (p report) row(r row, m miss) {
	p.printf("  %5.0f %5.0f %8.2f/s  TTFT %7.1f ms %+6.1f %%  p99 %7.1f ms %+6.1f %%  TPOT %6.2f ms %+6.1f %%  p99 %6.2f ms %+6.1f %%\n",
		r.in, r.out, r.offered, r.measured.meanTTFT, 100*m[0], r.measured.p99TTFT, 100*m[1],
		r.measured.meanTPOT, 100*m[2], r.measured.p99TPOT, 100*m[3])
}

func (p report) signed(r record, measured statistics, m miss) {
	p.printf("  %s: TTFT %.0f ms %+.1f %%, p99 %.0f ms %+.1f %%; TPOT %.2f ms %+.1f %%, p99 %.2f ms %+.1f %%\n", r.name,
		measured.meanTTFT, 100*m[0], measured.p99TTFT, 100*m[1], measured.meanTPOT, 100*m[2], measured.p99TPOT, 100*m[3])
}

func (p report) table(results []result) {
	p.printf("\n%-28s  %10s  %10s  %10s  %10s\n", "error of", "mean TTFT", "p99 TTFT", "mean TPOT", "p99 TPOT")
	for _, r := range results {
		v := r.values()
		p.printf("%-28s  %8.2f %%  %8.2f %%  %8.2f %%  %8.2f %%\n", r.Run, v[0], v[1], v[2], v[3])
	}
	p.printf("%-28s  %8.0f %%  %8.0f %%  %8.0f %%  %8.0f %%\n", "asked for: at most", targets[0], targets[1], targets[2], targets[3])
	p.printf("sweep: mean over its rows of the absolute error of the row's statistic, each row predicted with the constants of\n" +
		"the half that its shape is not in; its TPOT is the mean per request weighted by tokens, as its generator reports it.\n" +
		"run: absolute error of the statistic over its requests, the mean of both halves' constants.\n")
	for _, line := range missed(results) {
		p.printf("%s\n", line)
	}
}

// missed says which targets are missed; an error that is no number misses its target
// too.
func missed(results []result) []string {
	var all []string
	for _, r := range results {
		for i, v := range r.values() {
			if !(v <= targets[i]) {
				all = append(all, fmt.Sprintf("%s misses the target of its %s", r.Run, [4]string{"mean TTFT", "p99 TTFT", "mean TPOT", "p99 TPOT"}[i]))
			}
		}
	}
	return all
}
