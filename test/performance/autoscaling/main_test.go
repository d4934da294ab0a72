package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/config/scenario"
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

// bench runs the command on a folder of data, and returns what it prints, its rows and
// its page.
func bench(t *testing.T, data string, arguments ...string) (out string, rows []map[string]any, page string, err error) {
	t.Helper()
	target, html := filepath.Join(t.TempDir(), "bench.json"), filepath.Join(t.TempDir(), "bench.html")
	var printed, progress strings.Builder
	err = run(append([]string{"--data", data, "--out", target, "--html", html}, arguments...), &printed, &progress)
	text, failed := os.ReadFile(target)
	require.NoError(t, failed, "the run ended with %v", err)
	require.NoError(t, json.Unmarshal(text, &rows))
	shown, failed := os.ReadFile(html)
	require.NoError(t, failed)
	return printed.String(), rows, string(shown), err
}

func TestAPartOfTheTrials(t *testing.T) {
	out, rows, page, err := bench(t, madeTrace(t, 1, 1, 1), "--only", "azure-conversation aws full", "--policies", "hybrid,static:2")
	require.NoError(t, err, "nothing speaks against us")
	require.Len(t, rows, 4, "two policies and two start-up times")
	for _, r := range rows {
		assert.Equal(t, "azure-conversation", r["trace"])
		assert.Equal(t, "aws", r["prices"])
		assert.Equal(t, "full", r["cluster"])
		assert.InDelta(t, 3600, r["requests"], 0, "each of 180 twenty times")
		for _, key := range []string{"policy", "parameters", "startupSeconds", "attainment", "ttftMs", "itlMs", "replicaHours", "gpuHours", "cost",
			"costOverBound", "scaleEvents", "flips", "underProvisionedSeconds", "unplaceableReplicas"} {
			assert.Contains(t, r, key)
		}
	}
	assert.Contains(t, out, "azure-conversation, aws prices, full cluster")
	assert.Contains(t, out, "ours: not judged, 0 of 160 comparisons")
	assert.Contains(t, out, "bound: not judged, 0 of 2 traces")
	assert.Contains(t, out, "nowhere: holds so far, judged on 2 of 4 runs alone")
	assert.NotContains(t, out, "All three hold")
	assert.Contains(t, out, "runs: 4, in ")
	assert.Contains(t, page, "azure-conversation aws full")
}

func TestAMissedPromiseIsAnErrorAfterTheFiles(t *testing.T) {
	// The fourth minute brings twelve times the load of the others, and nothing that
	// reacts to it serves before the fifth.
	out, rows, page, err := bench(t, madeTrace(t, 1, 1, 1, 12), "--only", "azure-conversation aws roomy", "--policies", "hybrid")
	require.ErrorIs(t, err, errBeaten)
	assert.Len(t, rows, 4, "four start-up times")
	assert.Contains(t, page, "azure-conversation aws roomy")
	assert.Contains(t, out, "bound: does not hold, judged on 1 of 2 traces\n   azure-conversation, aws prices, roomy cluster, start-up 60 s: ")
}

func TestLearningIsShownAndNotJudged(t *testing.T) {
	out, rows, _, err := bench(t, madeTrace(t, 1, 1, 1, 12), "--only", "azure-conversation-learning", "--policies", "keda,hybrid")
	require.NoError(t, err)
	require.Len(t, rows, 1, "hybrid alone, with a start-up of a minute")
	assert.Equal(t, "azure-conversation-learning", rows[0]["trace"])
	assert.Equal(t, "hybrid", rows[0]["policy"])
	assert.Less(t, rows[0]["attainment"], 0.99, "it would miss the promise")
	assert.Contains(t, out, "bound: not judged, 0 of 2 traces")
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
	var names []string
	runs, learning := 0, 0
	for _, trial := range trials() {
		names = append(names, trial.String())
		runs += len(trial.startups) * len(trial.chosen(policies))
		if trial.learns {
			learning++
		}
	}
	assert.Equal(t, []string{
		"azure-conversation aws roomy", "azure-conversation lowest roomy", "azure-conversation aws full", "azure-code aws roomy",
		"servegen-m-large aws roomy", "synthetic-diurnal aws roomy", "azure-conversation-in-bursts aws roomy",
		"azure-conversation-learning aws roomy",
	}, names)
	assert.Equal(t, 16*10+1, runs)
	assert.Equal(t, 1, learning)
	assert.Subset(t, policies, ours)
	assert.Subset(t, policies, baselines)
}

func TestWhatCannotBeRun(t *testing.T) {
	data := t.TempDir()
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no data":             {nil, "say where the traces are"},
		"no such trial":       {[]string{"--data", data, "--only", "moon"}, `no trial of these policies has "moon" in its name; there are: [azure-conversation aws roomy`},
		"nobody to learn":     {[]string{"--data", data, "--only", "learning", "--policies", "keda"}, `no trial of these policies has "learning" in its name`},
		"an unknown policy":   {[]string{"--data", data, "--policies", "hybrid,magic"}, `unknown policy "magic"`},
		"a policy twice":      {[]string{"--data", data, "--policies", "hybrid,keda,hybrid"}, "the policy hybrid is named twice"},
		"a trace is missing":  {[]string{"--data", data, "--only", "azure-code"}, "AzureLLMInferenceTrace_code.csv"},
		"no trace for speed":  {[]string{"--data", data, "--speed"}, "language_m-large_rate.csv"},
		"a flag nobody knows": {[]string{"--fast"}, "flag provided but not defined"},
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
	require.NoError(t, measureSpeed(&o, trials()[2], &out))
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
