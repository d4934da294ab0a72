package v1alpha1_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

func TestBoundLeavesWhatFits(t *testing.T) {
	decision := v1alpha1.Decision{
		Reason:  "Saturated",
		Message: strings.Repeat("ü", 1024),
		Steps:   []v1alpha1.DecisionStep{{Stage: "demand", Before: 1, After: 2, Detail: strings.Repeat("x", 256)}},
	}
	before := *decision.DeepCopy()
	decision.Bound()
	assert.Equal(t, before, decision)
}

func TestBoundKeepsTheLastSteps(t *testing.T) {
	decision := v1alpha1.Decision{
		Message: strings.Repeat("ü", 2000),
		Binds:   strings.Repeat("b", 300),
	}
	for i := range int32(20) {
		decision.Steps = append(decision.Steps, v1alpha1.DecisionStep{Stage: "s", After: i, Detail: strings.Repeat("d", 500)})
	}
	decision.Bound()
	assert.Equal(t, 1024, utf8.RuneCountInString(decision.Message))
	assert.True(t, strings.HasSuffix(decision.Message, "ü…"), "a cut shows")
	assert.Equal(t, 256, utf8.RuneCountInString(decision.Binds))
	assert.Len(t, decision.Steps, 16)
	assert.EqualValues(t, 19, decision.Steps[15].After)
	assert.Equal(t, 256, utf8.RuneCountInString(decision.Steps[0].Detail))
}
