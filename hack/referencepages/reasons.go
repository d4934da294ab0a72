package main

import (
	"fmt"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// reasons is the page of the conditions and reasons, each with its entry in the runbook.
func reasons() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `# Reasons and conditions

%s

The set is closed: scripts and alerts may rely on the names. `+"`Conflict` and `ScalingLimited`"+` are bad news when True, the other conditions when False. Each reason links to what to do about it.
`, generated)
	condition := "?"
	for _, r := range v1alpha1.Reasons() {
		if r.Condition != condition {
			condition = r.Condition
			title, intro := "Condition "+condition, "| status | reason | meaning |\n|---|---|---|\n"
			if condition == "" {
				title, intro = "Reasons of the decision alone", "They are in `status.decision` and its steps.\n\n| reason | meaning |\n|---|---|\n"
			}
			fmt.Fprintf(&b, "\n## %s\n\n%s", title, intro)
		}
		if condition != "" {
			fmt.Fprintf(&b, "| %s ", r.Status)
		}
		fmt.Fprintf(&b, "| [%s](../operate/runbook.md#%s) | %s |\n", r.Name, strings.ToLower(r.Name), cell(r.Meaning))
	}
	return b.String(), nil
}
