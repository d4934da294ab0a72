package serving

import (
	"context"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
	"llmd.ai/workload-variant-autoscaler/test/performance/tokenform"
)

// defaultSweep is the file within the data folder that is judged when none is named.
const defaultSweep = "guidellm_sweeps/llama31_8b_h100_vllm_guidellm.csv"

// clients is the number of requests that the load generator keeps open at most:
// what a form predicts beyond it cannot have happened.
const clients = 512

// result is one line of the benchmark's output.
type result struct {
	Form        string  `json:"form"`
	File        string  `json:"file"`
	Fold        string  `json:"fold"`
	TTFTMAPEPct float64 `json:"ttftMapePct"`
	ITLMAPEPct  float64 `json:"itlMapePct"`
}

// forms are the judged ones, in the order of the table.
var forms = []struct {
	name string
	fit  func([]row) latency
}{
	{"four", fitFour},
	{"three", fitThree},
	{"ours", fitOurs},
}

// Run is the benchmark.
func Run(_ context.Context, call *harness.Call) error {
	flags := call.Flags("serving")
	data := flags.String("data", "", "folder that holds "+defaultSweep)
	sweep := flags.String("sweep", "", "a sweep to judge instead, absolute or within the folder")
	window := flags.Duration("window", assumedRun, "length of every run, in the place of what the rows say; 0 takes every row for a steady state")
	parameters := flags.Bool("parameters", false, "print the fitted parameters of our form, and its error at every row of the half that it was not fitted on")
	if err := flags.Parse(); err != nil {
		return err
	}
	path := harness.Within(*data, *sweep)
	if *sweep == "" {
		if *data == "" {
			return harness.NoData(defaultSweep + "; or --sweep FILE")
		}
		path = filepath.Join(*data, defaultSweep)
	}
	rows, err := read(path)
	if err != nil {
		return err
	}
	var text strings.Builder
	report(&text, path, rows)
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "window" {
			return
		}
		fmt.Fprintf(&text, "every run is taken to last %s, whatever the rows say; 0s is a steady state\n", *window)
		for i := range rows {
			rows[i].window = *window
		}
	})
	results := make([]result, 0, 2*len(forms))
	for _, f := range forms {
		results = append(results, judge(f.name, f.fit, filepath.Base(path), rows)...)
	}
	table(&text, results)
	if *parameters {
		detail(&text, rows)
	}
	call.Tell("%s", &text)
	return flags.Save(results)
}

// judge fits the form and measures its error on the other half, and on all rows.
func judge(name string, fit func([]row) latency, file string, rows []row) []result {
	halves := checkerboard(rows)
	var ttft, itl float64
	judged := 0
	for i, half := range halves {
		if len(half) == 0 || len(halves[1-i]) == 0 {
			continue
		}
		t, l := miss(fit(halves[1-i]), half)
		ttft, itl, judged = ttft+t, itl+l, judged+1
	}
	allTTFT, allITL := miss(fit(rows), rows)
	inSample := result{name, file, "insample", round(allTTFT), round(allITL)}
	if judged == 0 {
		return []result{inSample}
	}
	return []result{{name, file, "heldout", round(ttft / float64(judged)), round(itl / float64(judged))}, inSample}
}

// A latency is a profile for requests of each shape.
type latency func(capacity.TokenShape) serving.Profile

// learned is a profile as the autoscaler fits it.
func learned(form serving.Form, rows []row) serving.Profile {
	start, points := guess(form, rows)
	return serving.Fit(start, points, 0, measuredAt(rows))
}

// guess is where the fit of the autoscaler starts.
func guess(form serving.Form, rows []row) (serving.Profile, []serving.Point) {
	points := make([]serving.Point, len(rows))
	for i, r := range rows {
		points[i] = r.point
	}
	start := serving.Guess(form, points)
	start.BatchLimit = clients
	return start, points
}

func fitOurs(rows []row) latency {
	p := learned(serving.Overlapped, rows)
	return func(capacity.TokenShape) serving.Profile { return p }
}

// The published forms are fitted as well as we can.
func fitFour(rows []row) latency {
	p := learned(serving.FourParameters, rows)
	start := four(serving.FourParameter{Alpha: p.Base, Beta: p.PerRequest, Gamma: p.Gamma, Delta: p.PerPrefillToken})
	return searched(append(slices.Clone(knownFour), start), rows).at
}

func fitThree(rows []row) latency {
	p, _ := guess(serving.Linear, rows)
	start := three(tokenform.Form{Alpha: p.Base, Beta: p.PerPrefillToken, Gamma: p.PerResidentToken})
	return searched(append(slices.Clone(knownThree), start), rows).at
}

// measuredAt is what a profile says about a row.
func measuredAt(rows []row) func(serving.Profile, int) serving.At {
	return func(p serving.Profile, i int) serving.At {
		_, at := within(p, rows[i].point.Rate, rows[i].point.Shape, rows[i].window)
		return at
	}
}

// predict uses the rate, the lengths and the duration of the row and nothing else of
// it.
func predict(of latency, r row) (ttft, itl float64) {
	_, at := within(of(r.point.Shape), r.point.Rate, r.point.Shape, r.window)
	return float64(at.TTFT), float64(at.ITL)
}

// miss is the mean absolute error of both latencies in per cent.
func miss(of latency, rows []row) (ttft, itl float64) {
	for _, r := range rows {
		t, l := predict(of, r)
		ttft += relative(t, r.point.TTFT)
		itl += relative(l, r.point.ITL)
	}
	n := float64(len(rows))
	return 100 * ttft / n, 100 * itl / n
}

func relative(got float64, want capacity.Milliseconds) float64 {
	return math.Abs(got/float64(want) - 1)
}

func round(x float64) float64 { return math.Round(x*100) / 100 }
