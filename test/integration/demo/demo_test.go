package demo_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// demo runs the program and returns its report and what it printed.
func demo(t *testing.T, arguments ...string) (run report.Demo, output string) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "report.json")
	command := exec.Command(filepath.Join(programs, "playground"), append([]string{"demo", "--report", file}, arguments...)...) //nolint:gosec // our own program
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	require.NoError(t, command.Run(), "%s", &printed)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&run))
	return run, printed.String()
}

// With a Llama Stack server in front of it, the 8B model answers every request through
// the server's vLLM provider, and nobody misses a request or an accelerator.
func TestALlamaStackServerInFrontOfAModel(t *testing.T) {
	run, output := demo(t, "--llamastack", "--duration", "10s", "--tail", "1s", "--startup", "3s")
	assert.Equal(t, run.Requests.Total, run.Requests.Completed)
	match := regexp.MustCompile(`Llama Stack server llama-stack: (\d+) requests answered by its provider vllm-8b`).FindStringSubmatch(output)
	require.NotNil(t, match, output)
	answered, err := strconv.Atoi(match[1])
	require.NoError(t, err)
	assert.Positive(t, answered)
	assert.Less(t, answered, run.Requests.Completed, "the 70B model is asked directly")
	assert.Contains(t, output, "0 wrong")
}

// A short run on real parts: the load rises and ends, replicas follow, and every pod
// lands on its variant's accelerator through our scheduler. Requests wait in the first
// replicas until these have served them, and none goes before. How well latencies are
// kept depends on the machine and is not judged here.
func TestAShortDemo(t *testing.T) {
	run, output := demo(t, "--duration", "30s", "--tail", "125s", "--startup", "3s")
	assert.Equal(t, run.Requests.Total, run.Requests.Completed)
	assert.Greater(t, run.Requests.Total, 500)
	assert.NotEmpty(t, run.Decisions)
	require.Len(t, run.Models, 2)
	require.Len(t, run.Variants, 4)
	wanted := map[string]string{}
	for _, m := range run.Models {
		most, last := 0, 0
		for _, v := range run.Variants {
			wanted[v.Name] = v.Accelerator
			if v.Model != m.Model {
				continue
			}
			require.NotEmpty(t, v.Replicas)
			for _, p := range v.Replicas {
				most = max(most, p.Desired)
			}
			last += v.Replicas[len(v.Replicas)-1].Desired
		}
		assert.Greater(t, most, 1, "%s must grow:\n%s", m.Model, output)
		assert.Less(t, last, most, "%s must come down again:\n%s", m.Model, output)
	}
	assert.NotEmpty(t, run.Placements)
	for _, p := range run.Placements {
		assert.Equal(t, wanted[p.Variant], p.Accelerator, "%+v", p)
		assert.Equal(t, "variant-scheduler", p.Scheduler, "%+v", p)
	}
}
