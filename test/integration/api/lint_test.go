package api_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/lint"
)

// linted is what kubectl wva lint says of an object with a spec.
func linted(t *testing.T, spec string) (lines []string, err error) {
	t.Helper()
	object := variant(t, spec)
	object.SetGenerateName("")
	object.SetName("a")
	text, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	var out bytes.Buffer
	command := lint.NewCommand()
	command.SetIn(bytes.NewReader(text))
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs([]string{"-o", "json", "-"})
	command.SilenceErrors = true
	err = command.Execute()
	var findings []struct {
		Level, Text string
	}
	require.NoError(t, yaml.Unmarshal(out.Bytes(), &findings), out.String())
	for _, f := range findings {
		if f.Level == "error" {
			lines = append(lines, f.Text)
		}
	}
	return lines, err
}

// What the API server refuses, lint of a file refuses in the same words.
func TestLintSaysWhatTheServerSays(t *testing.T) {
	for name, rule := range rules {
		if strings.HasPrefix(rule.refused, "modelID: m") && !strings.Contains(rule.refused, "scaleTargetRef") {
			continue // an object without a target is of an older form, which lint says
		}
		t.Run(name, func(t *testing.T) {
			_, refusal := create(t, variant(t, rule.refused))
			var status apierrors.APIStatus
			require.ErrorAs(t, refusal, &status)
			var wanted []string
			if details := status.Status().Details; apierrors.IsInvalid(refusal) {
				for _, cause := range details.Causes {
					if !strings.Contains(cause.Message, "some validation rules were not checked") {
						wanted = append(wanted, cause.Field+": "+cause.Message)
					}
				}
			} else {
				_, text, _ := strings.Cut(refusal.Error(), "strict decoding error: ")
				wanted = []string{"strict decoding error: " + text}
			}
			said, err := linted(t, rule.refused)
			require.Error(t, err)
			for i := range said {
				said[i], _, _ = strings.Cut(said[i], ": YAML reads")
			}
			assert.ElementsMatch(t, wanted, said)
		})
	}
}
