package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// Result is one line of bench-packing.json.
type Result struct {
	Policy       string  `json:"policy"`
	List         string  `json:"list"`
	Seed         uint64  `json:"seed"`
	ArrivedPct   int     `json:"arrivedPct"`
	AllocatedPct float64 `json:"allocatedPct"`
}

// reported are the per cent arrived that the results carry.
var reported = [...]int{90, 95, 100, 110, 120, 130}

// resultsOf are the curves as results, in the order of policies, seeds and arrivals.
func resultsOf(list string, seeds []uint64, curves [][]Curve) []Result {
	var results []Result
	for p := range policies {
		for i, seed := range seeds {
			for _, pct := range reported {
				results = append(results, Result{Policy: policies[p].name, List: list, Seed: seed, ArrivedPct: pct,
					AllocatedPct: math.Round(curves[p][i][pct]*1e4) / 1e4})
			}
		}
	}
	return results
}

// writeResults writes a result to a line, as one JSON list.
func writeResults(w io.Writer, results []Result) error {
	for i := range results {
		line, err := json.Marshal(&results[i])
		if err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
		before, after := ",\n ", ""
		if i == 0 {
			before = "["
		}
		if i == len(results)-1 {
			after = "]\n"
		}
		if _, err := fmt.Fprintf(w, "%s%s%s", before, line, after); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	return nil
}

// writeTable shows mean and spread by policy, and what we are ahead of the gradient.
func writeTable(w io.Writer, list string, curves [][]Curve) error {
	seeds := len(curves[0])
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s, %d seeds: allocated GPUs in %%, mean and standard deviation over the seeds\n\n", list, seeds)
	fmt.Fprintf(text, "%-12s%-20s%s\n", "policy", "at 100 % arrived", "at 130 % arrived")
	for p := range policies {
		fmt.Fprintf(text, "%-12s%-20s%s\n", policies[p].name, meanAndSpread(curves[p], 100), meanAndSpread(curves[p], 130))
	}
	fmt.Fprintln(text)
	for _, pct := range []int{100, 130} {
		lead, err, wins := paired(curves, "ours", "gradient", pct)
		fmt.Fprintf(text, "ours minus gradient at %d %%, paired: %+.3f, standard error %.3f, ahead on %d of %d seeds\n", pct, lead, err, wins, seeds)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func meanAndSpread(curves []Curve, pct int) string {
	var values []float64
	for i := range curves {
		values = append(values, curves[i][pct])
	}
	mean, deviation := moments(values)
	return fmt.Sprintf("%.2f ± %.2f", mean, deviation)
}

// moments are the mean and the standard deviation of a sample; that of one value is 0.
func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return mean, 0
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / float64(len(values)-1))
}

// paired is how far the first policy is ahead of the second, in the mean over the seeds,
// with its standard error and the number of seeds on which it is.
func paired(curves [][]Curve, first, second string, pct int) (lead, standardError float64, wins int) {
	a, b := curves[indexOf(first)], curves[indexOf(second)]
	var leads []float64
	for i := range a {
		leads = append(leads, a[i][pct]-b[i][pct])
		if a[i][pct] > b[i][pct] {
			wins++
		}
	}
	lead, deviation := moments(leads)
	return lead, deviation / math.Sqrt(float64(len(leads))), wins
}

func indexOf(policy string) int {
	for p := range policies {
		if policies[p].name == policy {
			return p
		}
	}
	return -1
}
