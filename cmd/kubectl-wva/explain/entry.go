package explain

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// entries is the runbook as plain text, which hack/update-cli.sh writes: for each reason a line
// with its name after entryMark, and below it what the reason means and what to do.
//
//go:embed entries.txt
var entries string

const entryMark = "### "

// entry is what the runbook says of a reason, whatever its case. It fails on what is no reason.
func entry(name string) (string, error) {
	var known []string
	for part := range strings.SplitSeq("\n"+entries, "\n"+entryMark) {
		reason, text, found := strings.Cut(part, "\n")
		if !found || reason == "" {
			continue
		}
		if strings.EqualFold(reason, name) {
			return reason + "\n\n" + strings.TrimSpace(text) + "\n", nil
		}
		known = append(known, reason)
	}
	slices.Sort(known)
	return "", fmt.Errorf("%q is no reason: expected one of %s", name, strings.Join(known, ", "))
}

// reasonNames are all reasons that conditions and decisions give, for the completion of a flag.
func reasonNames() (names []string) {
	for _, r := range v1alpha1.Reasons() {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return names
}
