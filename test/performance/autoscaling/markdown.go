package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// markdown is one table of all rows: a line for each trial and start-up time, a column for
// each policy, and in the cells which share of the requests met the SLO, at which multiple
// of the bound's cost.
func markdown(rows []row) string {
	var columns, lines []string
	for _, name := range policies {
		if slices.ContainsFunc(rows, func(r row) bool { return r.Policy == name }) {
			columns = append(columns, name)
		}
	}
	for _, r := range rows {
		if !slices.Contains(columns, r.Policy) {
			columns = append(columns, r.Policy)
		}
		if line := r.line(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| trace, prices, cluster, start-up | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, line := range lines {
		cells := make([]string, len(columns))
		for i := range rows {
			if r := &rows[i]; r.line() == line {
				cells[slices.Index(columns, r.Policy)] = r.cell()
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", line, strings.Join(cells, " | "))
	}
	return b.String()
}

// line names the trial of a row, for a table of all.
func (r *row) line() string {
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(r.Trace, "-learning"), "azure-"), "servegen-")
	name = strings.ReplaceAll(name, "synthetic-", "synthetic ")
	if r.aside {
		name += ", nothing known of the profiles"
	}
	return fmt.Sprintf("%s, %s, %s, %g s", name, r.Prices, r.Cluster, r.StartupSeconds)
}

// cell is what a policy kept and cost, "98.4 % at 1.35". An attainment is rounded down, so
// that nobody has kept 99 % who has not; what is not known is left out.
func (r *row) cell() string {
	if r.Requests == 0 || r.CostOverBound <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %% at %.2f", math.Floor(1000*r.Attainment+rounding)/10, r.CostOverBound)
}
