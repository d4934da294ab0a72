package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMarkdownOfSomeRuns(t *testing.T) {
	assert.Equal(t, strings.Join([]string{
		"| trace, prices, cluster, start-up | hybrid | keda | bound | static:7 |",
		"|---|---|---|---|---|",
		"| conversation, aws, roomy, 60 s | 98.9 % at 1.20 | 99.0 % at 3.43 | 100.0 % at 1.00 |  |",
		"| conversation, aws, roomy, 300 s |  |  |  | 99.2 % at 1.20 |",
		"| code, lowest, full, 60 s | 99.2 % at 1.20 |  |  |  |",
		"| synthetic diurnal, aws, roomy, 60 s |  |  |  |  |",
		"| m-large, aws, roomy, 60 s |  | 99.2 % at 1.20 |  |  |",
		"| conversation, nothing known of the profiles, aws, roomy, 60 s | 99.2 % at 1.20 |  |  |  |",
		"",
	}, "\n"), markdown([]row{
		made("bound", attains(1), overBound(1)), made("hybrid", attains(0.98999)), made("keda", attains(0.99), overBound(3.434)),
		made("static:7", starts(300)), made("hybrid", of("azure-code"), priced(lowest), in(full)),
		made("keda", of("synthetic-diurnal"), empty), made("keda", of(large)),
		made("hybrid", of(conversation+"-learning"), aside),
	}))
}

func TestMarkdownOfAWholeRun(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(markdown(wholeRun(unchanged))), "\n")
	assert.Equal(t, "| trace, prices, cluster, start-up | "+strings.Join(policies, " | ")+" |", lines[0])
	assert.Len(t, lines, 2+17, "every trial with each of its start-up times")
	for _, line := range lines[2:18] {
		assert.Equal(t, len(policies), strings.Count(line, "99.2 % at 1.20"), line)
	}
}
