package serving

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
	"llmd.ai/workload-variant-autoscaler/test/performance/tokenform"
)

// made writes a sweep of the short layout that a profile would have produced.
func made(t *testing.T) string {
	t.Helper()
	truth := serving.Profile{Form: serving.Overlapped, Base: 10, PerRequest: 0.03, PerResidentToken: 6e-5, PerPrefillToken: 0.04,
		PerPrompt: 0.5, First: serving.FirstToken{Fixed: 3, Iterations: 1.2, Cold: 8, ColdBelow: 1}, BatchLimit: clients}
	var text strings.Builder
	text.WriteString("isl_nominal,osl_nominal,rps,isl_mean,osl_mean,ttft_ms,itl_ms\n")
	for _, in := range []float64{64, 512, 4096} {
		for _, out := range []float64{64, 512, 2048} {
			shape := capacity.TokenShape{Input: capacity.Tokens(in * 1.01), Output: capacity.Tokens(out * 0.99)}
			for _, n := range []float64{4, 48} {
				at := truth.Steady(n, shape)
				fmt.Fprintf(&text, "%v,%v,%v,%v,%v,%v,%v\n", in, out, float64(at.Rate), float64(shape.Input), float64(shape.Output), float64(at.TTFT), float64(at.ITL))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "made.csv")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

func run(t *testing.T, out io.Writer, args ...string) error {
	t.Helper()
	return Run(t.Context(), &harness.Call{Args: args, Out: out, Log: io.Discard})
}

func TestOurFormFindsItselfInAShortSweep(t *testing.T) {
	target := filepath.Join(t.TempDir(), "bench.json")
	var out strings.Builder
	require.NoError(t, run(t, &out, "--sweep", made(t), "--window", "0", "--out", target))
	var results []result
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &results))
	require.Len(t, results, 6)
	for _, r := range results {
		assert.Equal(t, "made.csv", r.File)
		assert.Contains(t, out.String(), r.Form)
		assert.Contains(t, out.String(), "every run is taken to last 0s")
		if r.Form == "ours" {
			assert.Less(t, r.TTFTMAPEPct, 3.0, r.Fold)
			assert.Less(t, r.ITLMAPEPct, 2.0, r.Fold)
		}
	}
}

func TestThePredictionReadsNoLatencyAndNoBatch(t *testing.T) {
	rows, err := read(made(t))
	require.NoError(t, err)
	profile := knownThree[0].at
	ttft, itl := predict(profile, rows[5])
	blind := rows[5]
	blind.point.TTFT, blind.point.ITL, blind.point.Batch, blind.in, blind.out = 0, 0, 0, 0, 0
	blindTTFT, blindITL := predict(profile, blind)
	assert.InDelta(t, ttft, blindTTFT, 0)
	assert.InDelta(t, itl, blindITL, 0)
}

func TestTheHalvesShareNoShape(t *testing.T) {
	rows, err := read(made(t))
	require.NoError(t, err)
	halves := checkerboard(rows)
	assert.Len(t, halves[0], 10, "five of nine fields")
	assert.Len(t, halves[1], 8)
	for _, a := range halves[0] {
		for _, b := range halves[1] {
			assert.False(t, a.in == b.in && a.out == b.out)
		}
	}
}

func TestTheGeneratorsOwnLayout(t *testing.T) {
	const header = "model,isl_nominal,osl_nominal,strategy,rps,isl_mean,osl_mean,ttft_ms_mean,ttft_ms_p50,itl_ms_mean\n"
	rows, err := parse(strings.NewReader(header +
		"m,64,64,synchronous,1,64,64,20,19,7\n" +
		"m,64,64,constant@1,1,64,64,20,19,7\n" +
		"m,64,64,constant@2,2,64,64,-1.5e8,23,8\n" +
		"m,64,64,throughput,9,64,64,20,19,7\n"))
	require.NoError(t, err)
	require.Len(t, rows, 2, "only constant rates")
	assert.False(t, rows[0].medianTTFT)
	assert.True(t, rows[1].medianTTFT)
	assert.InDelta(t, 23, float64(rows[1].point.TTFT), 0)
	var out strings.Builder
	report(&out, "x.csv", rows)
	assert.Contains(t, out.String(), "1 of them have an impossible mean TTFT")
}

// A run lasts as long as its row says; where it says nothing, what is assumed is told.
func TestHowLongARunLasted(t *testing.T) {
	const header = "isl_nominal,osl_nominal,rps,isl_mean,osl_mean,ttft_ms,itl_ms"
	for name, c := range map[string]struct {
		text string
		want []time.Duration
		told string
	}{
		"each row says it": {",duration_s\n64,64,1,64,64,20,7,360.03\n64,64,2,64,64,20,7,91.965\n",
			[]time.Duration{360030 * time.Millisecond, 91965 * time.Millisecond}, "the row's duration_s, 92 s to 360 s\n"},
		"no row says it": {"\n64,64,1,64,64,20,7\n64,64,2,64,64,20,7\n",
			[]time.Duration{assumedRun, assumedRun}, "360 s is assumed for the 2 rows without duration_s\n"},
		"one row does not say it": {",duration_s\n64,64,1,64,64,20,7,120\n64,64,2,64,64,20,7,\n",
			[]time.Duration{2 * time.Minute, assumedRun}, "the row's duration_s, 120 s to 120 s; 360 s is assumed for the 1 rows without duration_s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := parse(strings.NewReader(header + c.text))
			require.NoError(t, err)
			for i, want := range c.want {
				assert.Equal(t, want, rows[i].window)
			}
			var out strings.Builder
			report(&out, "x.csv", rows)
			assert.Contains(t, out.String(), "rps, isl_mean, osl_mean and how long the run lasted: "+c.told)
		})
	}
}

func TestTheLengthOfTheRunCounts(t *testing.T) {
	rows, err := read(made(t))
	require.NoError(t, err)
	profile := knownThree[0].at
	long := rows[len(rows)-1]
	short := long
	long.window, short.window = time.Hour, 30*time.Second
	_, ofLong := predict(profile, long)
	_, ofShort := predict(profile, short)
	assert.NotEqual(t, ofLong, ofShort)
}

// The comparison is fair only when a published form is fitted as well as it can be:
// it finds itself in a sweep that it made, far from where the searches start, and where it did not make it, it errs less than its
// published constants do and than it does when the autoscaler fits it.
func TestThePublishedFormsAreFittedWell(t *testing.T) {
	sweep, err := read(made(t))
	require.NoError(t, err)
	for i := range sweep {
		sweep[i].window = 0
	}
	for name, c := range map[string]struct {
		truth published
		fit   func([]row) latency
		known []published
	}{
		"four":  {four(serving.FourParameter{Alpha: 14, Beta: 0.09, Gamma: 9, Delta: 0.003}), fitFour, knownFour},
		"three": {three(tokenform.Form{Alpha: 14, Beta: 0.05, Gamma: 2e-5}), fitThree, knownThree},
	} {
		t.Run(name, func(t *testing.T) {
			rows := slices.Clone(sweep)
			for i := range rows {
				p := &rows[i].point
				at := c.truth.at(p.Shape).Steady(float64(4+i%2*44), p.Shape)
				p.Rate, p.TTFT, p.ITL = at.Rate, at.TTFT, at.ITL
			}
			assert.Less(t, judged(c.fit(rows), rows), 1.0)
			fitted := judged(c.fit(sweep), sweep)
			for _, constants := range c.known {
				assert.Less(t, fitted, judged(constants.at, sweep))
			}
		})
	}
	p := learned(serving.FourParameters, sweep)
	assert.Less(t, judged(fitFour(sweep), sweep), 0.99*judged(func(capacity.TokenShape) serving.Profile { return p }, sweep))
}

func TestABrokenSweepSaysWhereItIs(t *testing.T) {
	const header = "isl_nominal,osl_nominal,rps,isl_mean,osl_mean,ttft_ms,itl_ms\n"
	for name, tc := range map[string]struct{ text, want string }{
		"no rows":         {header, "no rows"},
		"a word":          {header + "64,64,fast,64,64,20,7\n", "line 2: the column rps is not a number"},
		"NaN":             {header + "64,64,1,64,64,NaN,7\n", "line 2: the column ttft_ms is not a number"},
		"negative":        {header + "64,64,1,64,64,-20,7\n", "line 2: a rate, a length, a latency or a duration is not positive"},
		"no duration":     {"duration_s," + header + "soon,64,64,1,64,64,20,7\n", "line 2: the column duration_s is not a number"},
		"a duration of 0": {"duration_s," + header + "0,64,64,1,64,64,20,7\n", "line 2: a rate, a length, a latency or a duration is not positive"},
		"no such name":    {"a,b\n1,2\n", "the column isl_nominal is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(strings.NewReader(tc.text))
			assert.ErrorContains(t, err, tc.want)
		})
	}
	assert.ErrorContains(t, run(t, io.Discard), "say where the data is")
}
