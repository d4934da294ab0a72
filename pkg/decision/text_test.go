package decision

import (
	"fmt"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// textOf is what users read of a finding.
func textOf(f Finding) string { return sentence.Of(f) }

// tellSteps is what users read of steps.
func tellSteps(steps []Step) string {
	all := make([]string, len(steps))
	for i, step := range steps {
		all[i] = fmt.Sprintf("%s: %d -> %d (%s), %s", step.Stage, step.Before, step.After, step.Reason, textOf(step.Detail))
	}
	return strings.Join(all, "\n")
}

// tellFacts is what users read of facts.
func tellFacts(facts []Fact) string {
	all := make([]string, len(facts))
	for i, f := range facts {
		all[i] = string(f.Reason) + ": " + textOf(f.Detail)
	}
	return strings.Join(all, "\n")
}

// mostNamed is how many replicas a text names.
const mostNamed = 3
