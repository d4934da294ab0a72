package autoscaling

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

// madeTrace writes a conversation trace that has so many requests per second in each
// minute; the benchmark sends every one of them twenty times.
func madeTrace(t *testing.T, perSecond ...int) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for second := range 60 * len(perSecond) {
		for i := range perSecond[second/60] {
			moment := time.Unix(int64(second), int64(i)*int64(time.Millisecond)).UTC()
			fmt.Fprintf(&text, "%s,2000,200\n", moment.Format("2006-01-02 15:04:05.0000000"))
		}
	}
	data := t.TempDir()
	path := filepath.Join(data, "azure2023", "AzureLLMInferenceTrace_conv.csv")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return data
}

// runs the command on a folder of data, and returns what it prints, its numbers and its
// page.
func benched(t *testing.T, data string, arguments ...string) (out string, numbers map[string]any, page string, err error) {
	t.Helper()
	target, html := filepath.Join(t.TempDir(), "bench.json"), filepath.Join(t.TempDir(), "bench.html")
	var printed, progress strings.Builder
	err = run(append([]string{"--data", data, "--out", target, "--html", html, "--commit", "abc"}, arguments...), &printed, &progress)
	text, failed := os.ReadFile(target)
	require.NoError(t, failed, "the run ended with %v", err)
	require.NoError(t, json.Unmarshal(text, &numbers))
	shown, failed := os.ReadFile(html)
	require.NoError(t, failed)
	return printed.String(), numbers, string(shown), err
}

func rowsOf(t *testing.T, numbers map[string]any, key string) []map[string]any {
	t.Helper()
	var rows []map[string]any
	list, ok := numbers[key].([]any)
	require.True(t, ok, key)
	for _, one := range list {
		row, ok := one.(map[string]any)
		require.True(t, ok)
		rows = append(rows, row)
	}
	return rows
}

func TestAPartOfTheTrials(t *testing.T) {
	out, numbers, page, err := benched(t, madeTrace(t, 1, 1, 2, 1), "--only", "azure-conversation aws full", "--families", "hpa:rps,hpa:inflight", "--seeds", "2", "--markdown")
	if err != nil {
		require.ErrorIs(t, err, errWorse, "these requests are not those of the page")
	}
	assert.Equal(t, "abc", numbers["commit"])
	verdicts := rowsOf(t, numbers, "verdicts")
	require.Len(t, verdicts, 2, "two modes and one start-up time")
	for i, v := range verdicts {
		assert.Equal(t, "azure-conversation", v["trace"])
		assert.Equal(t, ours[i], v["policy"])
		assert.InDelta(t, 60, v["startupSeconds"], 0)
		assert.InDelta(t, 2, v["seeds"], 0)
		for _, key := range []string{"attainment", "cost", "frontCostAtSameAttainment", "ratio", "ratioNoise", "ratioIs", "frontAttainmentAtSameCost", "costOverBound"} {
			assert.Contains(t, v, key)
		}
	}
	families := map[any]int{}
	for _, p := range rowsOf(t, numbers, "fronts") {
		families[p["family"]]++
		for _, key := range []string{"trace", "startupSeconds", "family", "setting", "attainment", "cost"} {
			assert.Contains(t, p, key)
		}
	}
	// Which of the rivals no other setting beats depends on where the front is looked at.
	assert.Greater(t, families["hpa:rps"]+families["hpa:inflight"], 1)
	for family := range families {
		assert.Contains(t, []any{"hpa:rps", "hpa:inflight"}, family)
		assert.Contains(t, page, family)
	}
	assert.Len(t, rowsOf(t, numbers, "runs"), 3, "ours and the nearest rival")
	assert.Len(t, rowsOf(t, numbers, "claims"), 5)
	require.Len(t, rowsOf(t, numbers, "documented"), 1)
	assert.Equal(t, "azure-conversation aws full, start-up 60 s", rowsOf(t, numbers, "documented")[0]["of"])
	assert.Regexp(t, `\nhybrid against docs/benchmarks\.md: worse in [01] of 1 cases\n`, out)
	assert.Regexp(t, `azure-conversation aws full, start-up 60 s\nindex of dispersion of the arrivals: .+; of the trace as it is: .+\nPOLICY`, out)
	assert.Contains(t, out, "(a) hybrid costs at most 1.00 of the front of all others, tuned by hindsight for each trace, at the same attainment: not shown\n", "no such trace ran")
	assert.Regexp(t, `\(c\) with several models or variants that matter at most 0\.80: .+\n   .+  azure-conversation aws full, start-up 60 s  `, out)
	assert.Contains(t, out, "(d) on the full cluster ours ask for nothing that fits nowhere: holds\n")
	assert.Contains(t, out, "| azure-conversation aws full, start-up 60 s | ")
	assert.Regexp(t, `\n\d+ runs with 2 seeds in \S+, \S+ of processor, commit abc\n$`, out)
	assert.Contains(t, page, "Ours against all others at their best")
}

// A run that was interrupted goes on with what it noted, and says the same.
func TestItGoesOnAfterAnInterruption(t *testing.T) {
	data, noted := madeTrace(t, 1, 2), filepath.Join(t.TempDir(), "runs")
	flags := []string{"--only", "azure-conversation aws full", "--families", "hpa:rps", "--seeds", "1", "--runs", noted}
	_, first, _, err := benched(t, data, flags...)
	if err != nil {
		require.ErrorIs(t, err, errWorse, "these requests are not those of the page")
	}
	text, err := os.ReadFile(noted)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.Greater(t, len(lines), 10)
	cut := strings.Join(lines[:5], "") + lines[5][:20]
	require.NoError(t, os.WriteFile(noted, []byte(cut), 0o600))

	out, second, _, err := benched(t, data, flags...)
	if err != nil {
		require.ErrorIs(t, err, errWorse, "these requests are not those of the page")
	}
	assert.Equal(t, first, second)
	assert.Regexp(t, fmt.Sprintf(`\n%d runs with 1 seeds in `, len(lines)-6), out, "all but four of those noted")
	whole, err := os.ReadFile(noted)
	require.NoError(t, err)
	assert.ElementsMatch(t, lines, strings.SplitAfter(string(whole), "\n"))

	for name, tc := range map[string]struct{ content, want string }{
		"another commit":   {`{"commit":"old","data":"` + data + `"}` + "\n", `its runs are of commit "old" and data`},
		"other data":       {`{"commit":"abc","data":"elsewhere"}` + "\n", `and data "elsewhere", and these would be of "abc" and`},
		"some other file":  {"azure\n", "line 1 is not that of a file of runs"},
		"a line of others": {lines[0] + "moon\n", "line 2 is no run"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(noted, []byte(tc.content), 0o600))
			var out, progress strings.Builder
			assert.ErrorContains(t, run(append(flags, "--data", data, "--commit", "abc"), &out, &progress), tc.want)
		})
	}
	var told, progress strings.Builder
	err = run(append(flags, "--data", data, "--commit", "abc-dirty"), &told, &progress)
	assert.ErrorContains(t, err, "the runs would be of abc-dirty")
}

// A new decision is judged against the rivals' runs of another commit, and plays its own.
func TestItTakesOverTheRivalsOfAnotherCommit(t *testing.T) {
	data, noted := madeTrace(t, 1, 2), filepath.Join(t.TempDir(), "runs")
	flags := []string{"--only", "azure-conversation aws full", "--families", "hpa:rps", "--seeds", "1"}
	_, first, _, err := benched(t, data, append(flags, "--runs", noted)...)
	if err != nil {
		require.ErrorIs(t, err, errWorse, "these requests are not those of the page")
	}
	text, err := os.ReadFile(noted)
	require.NoError(t, err)
	ours := 0
	old := regexp.MustCompile(`(?m)^.*"policy":"(hybrid|capacity-only)".*$`).ReplaceAllStringFunc(string(text), func(line string) string {
		ours++
		return regexp.MustCompile(`"attainment":[0-9.]+`).ReplaceAllString(line, `"attainment":0.123`)
	})
	require.Equal(t, 2, ours)
	old = strings.Replace(old, `"commit":"abc"`, `"commit":"old"`, 1)
	require.NoError(t, os.WriteFile(noted, []byte(old), 0o600))

	out, second, _, err := benched(t, data, append(flags, "--rivals", noted)...)
	if err != nil {
		require.ErrorIs(t, err, errWorse, "these requests are not those of the page")
	}
	assert.Equal(t, first, second)
	assert.Contains(t, out, "\n2 runs with 1 seeds in ", "ours")

	var told, progress strings.Builder
	other := strings.Replace(old, data, "elsewhere", 1)
	require.NoError(t, os.WriteFile(noted, []byte(other), 0o600))
	assert.ErrorContains(t, run(append(flags, "--data", data, "--rivals", noted), &told, &progress), `its runs are of data "elsewhere"`)
	assert.ErrorContains(t, run(append(flags, "--data", data, "--rivals", noted+"-none"), &told, &progress), "no such file")
}

func TestWhatIsForgotten(t *testing.T) {
	s, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{Prices: aws, Cluster: roomy})
	require.NoError(t, err)
	require.Len(t, s.Models[0].Variants, 3)
	forget(s)
	for _, v := range s.Models[0].Variants {
		assert.Equal(t, serving.Profile{}, v.Given, v.Name)
		assert.True(t, v.Profile.Known(), "the world still has one")
	}
}

func TestTheTrials(t *testing.T) {
	var names, quick []string
	count := map[part]int{}
	for _, one := range trials() {
		names = append(names, one.String())
		count[one.part] += len(one.startups)
		_, err := one.scenario()
		require.NoError(t, err, one)
		rivals, aside := one.families(minute[0], nil)
		assert.GreaterOrEqual(t, len(rivals), 4, one)
		further, none := one.families(time.Hour, nil)
		assert.Empty(t, none)
		assert.Equal(t, one.aside, len(aside) > 0, one)
		if one.rivals != nil {
			assert.Len(t, rivals, len(one.rivals), "%s: every name is a family", one)
			assert.Len(t, further, len(rivals))
		} else {
			assert.Len(t, further, len(common), "every name is a family")
		}
		if hurried, some := one.hurried(); some {
			quick = append(quick, hurried.String())
			assert.Len(t, hurried.startups, 1)
		}
	}
	assert.Equal(t, []string{
		"azure-conversation aws roomy", "azure-code aws roomy", "servegen-m-large aws roomy", "synthetic-diurnal aws roomy",
		"azure-conversation aws full", "azure-conversation lowest roomy", "azure-conversation-in-bursts aws roomy", "azure-conversation-told aws roomy", "azure-conversation-learning aws roomy",
		"two-models busy-60", "two-models busy-85", "five-models busy-60", "five-models busy-85", "failing-nodes", "four-cheap", "spot",
	}, names)
	assert.Equal(t, map[part]int{single: 8, several: 8, beside: 4}, count)
	assert.Equal(t, slices.Concat(names[:2], []string{"synthetic-diurnal aws roomy", "four-cheap"}), quick)
}

func TestWhichTrialsAreChosen(t *testing.T) {
	for only, want := range map[string][]string{
		"full":             {"azure-conversation aws full"},
		"five-models,spot": {"five-models busy-60", "five-models busy-85", "spot"},
	} {
		o := options{only: only}
		chosen, err := o.chosen()
		require.NoError(t, err)
		var names []string
		for _, one := range chosen {
			names = append(names, one.String())
		}
		assert.Equal(t, want, names)
	}
}

func TestWhatCannotBeRun(t *testing.T) {
	data := t.TempDir()
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no data":              {nil, "say where the traces are"},
		"no such trial":        {[]string{"--data", data, "--only", "moon"}, `no trial has "moon" in its name; there are: azure-conversation aws roomy, `},
		"an unknown family":    {[]string{"--data", data, "--families", "hpa:rps,magic"}, `"magic" cannot be tuned; expected one of hpa:rps`},
		"a trace is missing":   {[]string{"--data", data, "--only", "azure-code"}, "AzureLLMInferenceTrace_code.csv"},
		"no trace for speed":   {[]string{"--data", data, "--speed"}, "language_m-large_rate.csv"},
		"no seed":              {[]string{"--data", data, "--seeds", "0"}, "--seeds is 0: expected at least 1"},
		"not in a quick run":   {[]string{"--data", data, "--quick", "--only", "spot"}, `no trial has "spot" in its name`},
		"a flag nobody knows ": {[]string{"--fast"}, "flag provided but not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, progress strings.Builder
			assert.ErrorContains(t, run(tc.arguments, &out, &progress), tc.want)
		})
	}
}

func TestSpeedTellsItsNumbers(t *testing.T) {
	var out strings.Builder
	o := options{data: madeTrace(t, 1), speed: true}
	require.NoError(t, measureSpeed(&o, trials()[4], &out))
	assert.Regexp(t, `^azure-conversation aws full, hybrid, start-up 60 s: 1200 requests in \S+s of wall time with one worker, `, out.String())
	assert.Regexp(t, `\npeak memory [1-9]\d* MiB \(.+\); \d+\.\d\d% attained at \d+\.\d\d times the bound\n$`, out.String())
}

func TestPeakMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		bytes  uint64
		ok     bool
	}{
		"as Linux writes it": {"Name:\tautoscaling\nVmPeak:\t 9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1000 kB\n", 2 << 20, true},
		"the last line":      {"VmHWM: 1 kB", 1 << 10, true},
		"no such line":       {"Name:\tautoscaling\nVmRSS:\t 1000 kB\n", 0, false},
		"another unit":       {"VmHWM:\t2 MB\n", 0, false},
		"no number":          {"VmHWM:\tmany kB\n", 0, false},
		"empty":              {"", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, ok := highWater(tc.status)
			assert.Equal(t, tc.ok, ok)
			if ok {
				assert.Equal(t, tc.bytes, bytes)
			}
		})
	}
	held := make([]byte, 8<<20)
	for i := range held {
		held[i] = 1
	}
	bytes, source := peakMemory()
	assert.Greater(t, bytes, uint64(len(held)))
	assert.NotEmpty(t, source)
}
