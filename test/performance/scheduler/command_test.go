package scheduler

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// A small cluster is no measurement. It shows that both schedulers bind every pod of
// both workloads, and that the results say it.
func TestTheCommandMeasuresBothSchedulers(t *testing.T) {
	// The programs and the manifests are those of the module above.
	t.Chdir("../../..")
	file := filepath.Join(t.TempDir(), "bench.json")
	var stdout, stderr bytes.Buffer
	args := []string{"--nodes=40", "--accelerator-nodes=20", "--pods=120", "--pairs=2", "--out=" + file}
	require.NoError(t, Run(t.Context(), &harness.Call{Args: args, Out: &stdout, Log: &stderr}))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var got results
	require.NoError(t, json.Unmarshal(content, &got))
	var order []string
	for _, run := range got.Runs {
		order = append(order, run.Workload+", "+run.Scheduler)
		assert.Positive(t, run.PodsPerSecond)
		assert.Positive(t, run.SchedulerCPUSeconds)
		if run.Workload == "one GPU" {
			assert.LessOrEqual(t, run.NodesUsed, 20, "pods with devices go to nodes with devices")
		}
		if run.Workload == "one GPU" && run.Scheduler == oursName {
			assert.Equal(t, 15, run.NodesUsed, "120 pods of one GPU fill 15 nodes of 8")
		}
	}
	assert.Equal(t, []string{
		"one GPU, stock", "one GPU, ours", "no devices, stock", "no devices, ours",
		"one GPU, ours", "one GPU, stock", "no devices, ours", "no devices, stock",
	}, order, "the order of the pairs alternates")
	require.Len(t, got.Summary, 2)
	assert.Contains(t, stdout.String(), "pods with one GPU")
	assert.Contains(t, stderr.String(), "pair 2 of 2")
}

func TestMistakesOnTheCommandLineAreTold(t *testing.T) {
	for args, want := range map[string]string{
		"--pairs=1":             "--pairs is at least 2",
		"--accelerator-nodes=0": "--accelerator-nodes is at least 1",
		"--nodes=10":            "at most --nodes",
		"--pods=5601":           "at most 5600",
		"--only=two GPUs":       `not "two GPUs"`,
		"fast":                  `what is "fast"?`,
	} {
		call := &harness.Call{Args: []string{"--out=", args}, Out: io.Discard, Log: io.Discard}
		assert.ErrorContains(t, Run(t.Context(), call), want, args)
	}
}
