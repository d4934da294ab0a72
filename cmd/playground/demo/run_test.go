package demo

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

func TestTheLineSaysWhatIsSent(t *testing.T) {
	p := plan{Options: Options{Duration: 3 * time.Minute, Tail: time.Minute, Rate: 20}, models: scenario()}
	assert.Equal(t, []string{
		"Traffic for 3m, then 1m without:",
		"  meta-llama/Llama-3.1-8B-Instruct       synthetic, up to 82 req/s",
		"  meta-llama/Llama-3.1-70B-Instruct      synthetic, up to 44 req/s",
		"",
	}, trafficLines(p))
	p.Trace, p.trace = "t.csv", extent{requests: 40, last: 90 * time.Second}
	assert.Equal(t, "  meta-llama/Llama-3.1-8B-Instruct       40 requests in 1m30s, every one of the trace 20 times", trafficLines(p)[1])
}

func TestAMisplacedPodFailsTheDemo(t *testing.T) {
	d := report.Demo{
		Variants:   []report.Variant{{Name: "v", Accelerator: "H100"}},
		Placements: []report.Placement{{Pod: "p", Variant: "v", Accelerator: "H100", Scheduler: schedulerName}},
	}
	require.NoError(t, verdict(d))
	d.Placements = append(d.Placements, report.Placement{Pod: "q", Variant: "v", Accelerator: "A100", Scheduler: schedulerName})
	assert.ErrorContains(t, verdict(d), "1 pods")
}

func TestTheCauseOfTheEndIsTold(t *testing.T) {
	ctx, fail := context.WithCancelCause(t.Context())
	assert.EqualError(t, causeOf(ctx, errors.New("own")), "own")
	fail(errors.New("kwok died"))
	assert.EqualError(t, causeOf(ctx, context.Canceled), "kwok died")
}

func TestTheReportReplacesAnOlderOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<16), 0o644))
	require.NoError(t, tryWriting(path))
	require.NoError(t, writeReport(path, report.New(report.Observation{Trace: report.Synthetic}).WriteJSON))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var back report.Demo
	require.NoError(t, json.Unmarshal(content, &back))
	assert.Equal(t, report.Synthetic, back.Trace)
}

func TestSoFarCountsWhatHasArrivedAndWhatIsDone(t *testing.T) {
	m := scenario()[0]
	r := &traffic{sent: map[string][]time.Duration{}}
	for _, at := range []int{1, 4, 6, 7, 8, 9, 11} { // the last one waits for its time
		r.note(m.ID, time.Duration(at)*time.Second)
	}
	arrival, attained := r.soFar(m, 9*time.Second)
	assert.InDelta(t, 4.0/5, *arrival, 1e-9)
	assert.Nil(t, attained, "nothing is done yet")

	r.observe(emulation.Outcome{Model: m.ID, Output: 2, TTFT: time.Millisecond, EndToEnd: 3 * time.Millisecond})
	r.observe(emulation.Outcome{Model: m.ID, Failed: true})
	r.observe(emulation.Outcome{Model: "other"})
	_, attained = r.soFar(m, 9*time.Second)
	assert.InDelta(t, 0.5, *attained, 1e-9)

	r.close()
	r.observe(emulation.Outcome{Model: m.ID, Failed: true})
	assert.Len(t, r.outcomes, 3, "what is cut off at the end is nobody's failure")
}
