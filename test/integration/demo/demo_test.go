package demo_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// A short run on real parts: the load rises and ends, replicas follow, and every pod
// lands on its variant's accelerator through our scheduler. Requests wait in the first
// replicas until these have served them, and none goes before. How well latencies are
// kept depends on the machine and is not judged here.
func TestAShortDemo(t *testing.T) {
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "report.json")
	command := exec.Command(filepath.Join(programs, "playground"), "demo", //nolint:gosec // our own program
		"--duration", "30s", "--tail", "125s", "--startup", "3s", "--report", file)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Run(), "%s", &output)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var run report.Demo
	require.NoError(t, decoder.Decode(&run))

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
		assert.Greater(t, most, 1, "%s must grow:\n%s", m.Model, &output)
		assert.Less(t, last, most, "%s must come down again:\n%s", m.Model, &output)
	}
	assert.NotEmpty(t, run.Placements)
	for _, p := range run.Placements {
		assert.Equal(t, wanted[p.Variant], p.Accelerator, "%+v", p)
		assert.Equal(t, "variant-scheduler", p.Scheduler, "%+v", p)
	}
}
