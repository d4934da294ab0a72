package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// What explain sends a user to is there, for every reason.
func TestEveryReasonHasAnEntry(t *testing.T) {
	t.Parallel()
	for _, r := range v1alpha1.Reasons() {
		got, err := entry(r.Name)
		require.NoError(t, err)
		name, text, _ := strings.Cut(got, "\n\n")
		assert.Equal(t, r.Name, name)
		assert.Greater(t, len(text), 15, r.Name)
		assert.NotContains(t, text, entryMark)
		assert.NotContains(t, text, ".md)", "%s: a reader has no pages", r.Name)
	}
	_, err := entry("ScaledUp")
	require.NoError(t, err, "a reason of events alone")
}

func TestAReasonWithoutACluster(t *testing.T) {
	t.Parallel()
	run := func(arguments ...string) (string, error) {
		var out bytes.Buffer
		command := NewCommand(cluster.NewFlags())
		command.SetOut(&out)
		command.SetErr(&out)
		command.SetArgs(arguments)
		command.SilenceUsage = true
		err := command.Execute()
		return out.String(), err
	}
	got, err := run("--reason", "noslots")
	require.NoError(t, err)
	assert.Regexp(t, `(?s)^NoSlots\n\nFewer replicas fit on the cluster than the load needs\.\nWhat to do: .kubectl wva capacity -A.* shows .*\n$`, got)
	for line := range strings.Lines(got) {
		assert.LessOrEqual(t, len(line), 101)
	}
	_, err = run("--reason", "Moon")
	require.ErrorContains(t, err, `"Moon" is no reason: expected one of AcceleratorCountDiffers, `)
	_, err = run("--reason", "NoSlots", "llama")
	require.Error(t, err)
	_, err = run()
	require.Error(t, err)
}
