package simulation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

const (
	// ceiling is the share of the throughput row's rate up to which rows count.
	ceiling = 0.8
	// sweepDevice is what the sweep was taken on, which its rows do not say.
	sweepDevice = "NVIDIA H100 80GB HBM3"
	// sweepCache is the KV cache that vLLM reports for Llama-3.1-8B on that device
	// with its defaults, in tokens; the batch limit and the token budget are its
	// defaults there too.
	sweepCache  = 447936
	sweepBatch  = 1024
	sweepBudget = simulation.LargeTokenBudget
	// The generator draws both lengths evenly from half to one and a half of the
	// nominal one: prompt_tokens_min and _max (output_tokens_min and _max) without a
	// standard deviation. The quantiles of the sweep's own output show it.
	shortest, longest = 0.5, 1.5
)

// row is one constant-rate run of a sweep.
type row struct {
	model string
	// in and out are the nominal lengths, which name the token shape.
	in, out float64
	// offered is the rate of arrivals, rate that of completed requests, per second.
	offered, rate float64
	// input is the mean prompt of the completed requests.
	input    float64
	duration time.Duration
	measured statistics
}

// readSweep reads the load generator's table: the rows that count, in their order.
func readSweep(path string) ([]row, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the sweep: %w", err)
	}
	defer func() { _ = file.Close() }()
	rows, err := parseSweep(file)
	if err != nil {
		return nil, fmt.Errorf("read the sweep %s: %w", path, err)
	}
	return rows, nil
}

// columns are those that a row needs.
var columns = []string{"model", "isl_nominal", "osl_nominal", "strategy", "rps", "isl_mean", "duration_s",
	"ttft_ms_mean", "ttft_ms_p50", "ttft_ms_p99", "itl_ms_mean", "itl_ms_p99"}

func parseSweep(source io.Reader) ([]row, error) {
	reader := csv.NewReader(source)
	header, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1: expected the names of the columns: %w", err)
	}
	at := map[string]int{}
	for i, name := range header {
		at[strings.TrimSpace(name)] = i
	}
	for _, name := range columns {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("line 1: the column %s is missing", name)
		}
	}
	most := map[[2]float64]float64{}
	var rows []row
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		r, strategy, err := parseRow(record, at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		switch strategy {
		case "throughput":
			most[[2]float64{r.in, r.out}] = r.rate
		case "constant":
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		if most[[2]float64{r.in, r.out}] == 0 {
			return nil, fmt.Errorf("the shape %v/%v has no throughput row, so that nothing says which of its rates count", r.in, r.out)
		}
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.rate > ceiling*most[[2]float64{r.in, r.out}] })
	if len(rows) == 0 {
		return nil, fmt.Errorf("it has no rows of a constant rate of at most %v of the shape's throughput", ceiling)
	}
	return rows, nil
}

func parseRow(record []string, at map[string]int) (r row, strategy string, err error) {
	number := func(text, name string) float64 {
		x, failed := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if (failed != nil || math.IsNaN(x) || math.IsInf(x, 0)) && err == nil {
			err = fmt.Errorf("the column %s is not a number: %q", name, text)
		}
		return x
	}
	column := func(name string) float64 { return number(record[at[name]], name) }
	r = row{
		model: record[at["model"]], in: column("isl_nominal"), out: column("osl_nominal"),
		rate: column("rps"), input: column("isl_mean"), duration: seconds(column("duration_s")),
		measured: statistics{
			meanTTFT: column("ttft_ms_mean"), p99TTFT: column("ttft_ms_p99"),
			meanTPOT: column("itl_ms_mean"), p99TPOT: column("itl_ms_p99"),
		},
	}
	strategy, offered, constant := strings.Cut(record[at["strategy"]], "@")
	if constant {
		r.offered = number(offered, "strategy")
	}
	// A broken clock at one request can spoil the mean; the median still holds.
	if r.measured.meanTTFT <= 0 {
		r.measured.meanTTFT, r.measured.medianTTFT = column("ttft_ms_p50"), true
	}
	m := r.measured
	if err == nil && (r.in < 1 || r.out < 1 || r.rate <= 0 || constant && r.offered <= 0 || r.input < 1 || r.duration <= 0 ||
		m.meanTTFT <= 0 || m.p99TTFT <= 0 || m.meanTPOT <= 0 || m.p99TPOT <= 0) {
		err = fmt.Errorf("a rate, a length, a duration or a latency is not positive: %v", record)
	}
	return r, strategy, err
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// requests are those of the row: evenly spaced as the generator sends them at a
// constant rate, with lengths that are spread as evenly as so many can be, in an
// order from a fixed seed.
func (r row) requests() []request {
	count := max(1, int(math.Ceil(r.offered*r.duration.Seconds())))
	random := rand.New(rand.NewPCG(1, 2))
	inputs, outputs := random.Perm(count), random.Perm(count)
	length := func(mean float64, place int) int {
		return max(1, int(math.Round(mean*(shortest+(longest-shortest)*(float64(place)+0.5)/float64(count)))))
	}
	all := make([]request, count)
	for i := range all {
		all[i] = request{at: seconds(float64(i) / r.offered), input: length(r.input, inputs[i]), output: length(r.out, outputs[i])}
	}
	return all
}

// checkerboard splits the rows by their token shape: the fields of the board whose
// places on the two length axes add up to an even number, and the others.
func checkerboard(rows []row) [2][]row {
	place := func(of func(row) float64) func(row) int {
		var axis []float64
		for _, r := range rows {
			axis = append(axis, of(r))
		}
		slices.Sort(axis)
		axis = slices.Compact(axis)
		return func(r row) int { i, _ := slices.BinarySearch(axis, of(r)); return i }
	}
	column, line := place(func(r row) float64 { return r.in }), place(func(r row) float64 { return r.out })
	var halves [2][]row
	for _, r := range rows {
		half := (column(r) + line(r)) % 2
		halves[half] = append(halves[half], r)
	}
	return halves
}
