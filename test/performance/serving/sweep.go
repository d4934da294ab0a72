package serving

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// assumedRun is how long a run is taken to have lasted when its row does not say it: the
// load generator was told six minutes for nearly all runs of the default sweep.
const assumedRun = 6 * time.Minute

// row is one constant-rate run of a sweep.
type row struct {
	// in and out are the nominal lengths, which name the token shape.
	in, out float64
	point   serving.Point
	// window is the length of the run, which began empty; 0 is a steady state.
	window time.Duration
	// unsaid says that the row does not say how long the run lasted.
	unsaid bool
	// medianTTFT says that the file's mean was impossible and its median was taken.
	medianTTFT bool
}

// read reads a sweep. Two layouts are known: the load generator's own columns, of
// which the rows with a strategy other than a constant rate are left out, and the
// short one with ttft_ms and itl_ms, every row of which counts.
func read(path string) ([]row, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the sweep: %w", err)
	}
	defer func() { _ = file.Close() }()
	rows, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("read the sweep %s: %w", path, err)
	}
	return rows, nil
}

func parse(source io.Reader) ([]row, error) {
	records, err := csv.NewReader(source).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) < 2 {
		return nil, fmt.Errorf("it has no rows")
	}
	columns := map[string]int{}
	for i, name := range records[0] {
		columns[strings.TrimSpace(name)] = i
	}
	ttft, itl := "ttft_ms_mean", "itl_ms_mean"
	if _, long := columns[ttft]; !long {
		ttft, itl = "ttft_ms", "itl_ms"
	}
	for _, name := range []string{"isl_nominal", "osl_nominal", "rps", "isl_mean", "osl_mean", ttft, itl} {
		if _, ok := columns[name]; !ok {
			return nil, fmt.Errorf("the column %s is missing", name)
		}
	}
	var rows []row
	for i, record := range records[1:] {
		if at, ok := columns["strategy"]; ok && !strings.HasPrefix(record[at], "constant") {
			continue
		}
		r, err := parseRow(record, columns, ttft, itl)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("it has no rows of a constant rate")
	}
	return rows, nil
}

func parseRow(record []string, columns map[string]int, ttft, itl string) (row, error) {
	var failed error
	number := func(name string) float64 {
		x, err := strconv.ParseFloat(strings.TrimSpace(record[columns[name]]), 64)
		if (err != nil || math.IsNaN(x) || math.IsInf(x, 0)) && failed == nil {
			failed = fmt.Errorf("the column %s is not a number: %q", name, record[columns[name]])
		}
		return x
	}
	r := row{in: number("isl_nominal"), out: number("osl_nominal"), point: serving.Point{
		Shape: capacity.TokenShape{Input: capacity.Tokens(number("isl_mean")), Output: capacity.Tokens(number("osl_mean"))},
		Rate:  capacity.Rate(number("rps")),
		TTFT:  capacity.Milliseconds(number(ttft)),
		ITL:   capacity.Milliseconds(number(itl)),
	}}
	if at, ok := columns["duration_s"]; ok && strings.TrimSpace(record[at]) != "" {
		r.window = time.Duration(number("duration_s") * float64(time.Second))
	} else {
		r.window, r.unsaid = assumedRun, true
	}
	if _, ok := columns["ttft_ms_p50"]; ok && failed == nil && r.point.TTFT <= 0 {
		r.point.TTFT, r.medianTTFT = capacity.Milliseconds(number("ttft_ms_p50")), true
	}
	if p := r.point; failed == nil && (!p.Shape.Known() || p.Rate <= 0 || p.TTFT <= 0 || p.ITL <= 0 || r.window <= 0) {
		failed = fmt.Errorf("a rate, a length, a latency or a duration is not positive: %v", record)
	}
	return r, failed
}

// checkerboard splits the rows by their token shape: the fields of the board whose
// places on the two length axes add up to an even number, and the others.
func checkerboard(rows []row) [2][]row {
	var ins, outs []float64
	for _, r := range rows {
		ins, outs = append(ins, r.in), append(outs, r.out)
	}
	place := func(axis []float64) func(float64) int {
		slices.Sort(axis)
		axis = slices.Compact(axis)
		return func(x float64) int { i, _ := slices.BinarySearch(axis, x); return i }
	}
	column, line := place(ins), place(outs)
	var halves [2][]row
	for _, r := range rows {
		half := (column(r.in) + line(r.out)) % 2
		halves[half] = append(halves[half], r)
	}
	return halves
}
