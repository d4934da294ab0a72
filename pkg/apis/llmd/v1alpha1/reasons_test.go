package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// constants are the values of the string constants of a Go file whose names start
// with a prefix.
func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var values []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	})
	require.NotEmpty(t, values, "%s has no constants named %s...", file, prefix)
	return values
}

func TestReasonsAreAClosedSet(t *testing.T) {
	known := map[string]bool{}
	for _, reason := range v1alpha1.Reasons() {
		known[reason.Name] = true
	}
	own := constants(t, "reasons.go", "Reason")
	decided := constants(t, "../../../decision/contract/plan.go", "Reason")
	for _, name := range append(own, decided...) {
		assert.Contains(t, known, name, "give the reason a line in Reasons")
		delete(known, name)
	}
	assert.Empty(t, known, "Reasons lists names that are no constants")
}

func TestReasonsAreReadable(t *testing.T) {
	conditions := map[string]bool{"": true}
	for _, name := range constants(t, "reasons.go", "Condition") {
		conditions[name] = false
	}
	type key struct{ condition, name string }
	seen := map[key]bool{}
	for _, reason := range v1alpha1.Reasons() {
		require.Contains(t, conditions, reason.Condition)
		conditions[reason.Condition] = true
		k := key{reason.Condition, reason.Name}
		assert.False(t, seen[k], "%v is listed twice", k)
		seen[k] = true
		assert.Regexp(t, `^[A-Z][A-Za-z]+$`, reason.Name)
		assert.Regexp(t, `^[A-Za-z].*\.$`, reason.Meaning)
		if reason.Condition == "" {
			assert.Empty(t, reason.Status)
		} else {
			assert.Contains(t, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}, reason.Status)
		}
	}
	for name, used := range conditions {
		assert.True(t, used, "condition %s has no reason", name)
	}
}
