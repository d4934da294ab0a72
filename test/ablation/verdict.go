package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// change is by how much something is more without a rule, in the mean over loads and seeds, and the
// standard error of that mean.
type change struct{ mean, err float64 }

// changeOf is that of numbers that were seen.
func changeOf(seen []float64) change {
	n := float64(len(seen))
	sum, squares := 0.0, 0.0
	for _, x := range seen {
		sum += x
	}
	for _, x := range seen {
		squares += (x - sum/n) * (x - sum/n)
	}
	return change{sum / n, math.Sqrt(squares / max(1, n-1) / n)}
}

// beyond reports whether it is beyond its noise, and more than so little that nobody would mind.
func (c change) beyond(least float64) bool { return math.Abs(c.mean) > max(least, 2*c.err) }

const (
	// leastCost and leastMet are changes of the cost in percent, and of the share that met the SLO in points,
	// below which the judge is taken not to move.
	leastCost, leastMet = 0.2, 0.05
)

// verdict is what one rule buys.
type verdict struct {
	rule *rule
	// cost is in percent, and met in percentage points.
	cost, met change
	// most is the load on which it changes most, and how.
	most string
	// fails are the checks at which more scenarios of the closed loop fail.
	fails map[string]int
}

// judge holds what was measured without a rule against what was measured with all.
func (b *bench) judge(r *rule, without, with *measured) verdict {
	v := verdict{rule: r, fails: map[string]int{}}
	var costs, met []float64
	least := 0.0
	for i := range b.loads {
		cost, share := 0.0, 0.0
		for seed, now := range without.outcomes[i] {
			was := with.outcomes[i][seed]
			costs, met = append(costs, 100*(now.Cost/was.Cost-1)), append(met, 100*(now.Attainment-was.Attainment))
			cost, share = cost+costs[len(costs)-1], share+met[len(met)-1]
		}
		n := float64(len(without.outcomes[i]))
		if size := math.Abs(cost/n) + 10*math.Abs(share/n); size > least {
			least, v.most = size, fmt.Sprintf("%s %+.1f%% %+.2f", b.loads[i].name, cost/n, share/n)
		}
	}
	v.cost, v.met = changeOf(costs), changeOf(met)
	for check, n := range without.failures {
		if n > with.failures[check] {
			v.fails[check] = n - with.failures[check]
		}
	}
	return v
}

// buys reports whether the judge moves beyond its noise, or scenarios fail.
func (v *verdict) buys() bool {
	return v.cost.beyond(leastCost) || v.met.beyond(leastMet) || len(v.fails) > 0
}

// said is a change as people read it.
func (c change) said(unit string) string { return fmt.Sprintf("%+.2f%s ±%.2f", c.mean, unit, c.err) }

// failed is what fails, as people read it.
func (v *verdict) failed() string {
	checks := slices.SortedFunc(maps.Keys(v.fails), cmp.Compare[string])
	for i, check := range checks {
		checks[i] = fmt.Sprintf("%s %d", check, v.fails[check])
	}
	return cmp.Or(strings.Join(checks, ", "), "none")
}

// write prints the verdicts, and at the end the rules that buy nothing here.
func write(out io.Writer, verdicts []verdict) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := []string{"WITHOUT\tCOST\tMET THE SLO\tSCENARIOS THAT FAIL\tCHANGES MOST"}
	var idle []string
	for i := range verdicts {
		v := &verdicts[i]
		lines = append(lines, strings.Join([]string{v.rule.name, v.cost.said("%"), v.met.said(""), v.failed(), cmp.Or(v.most, "nothing")}, "\t"))
		if !v.buys() {
			idle = append(idle, v.rule.name+": "+v.rule.does)
		}
	}
	if _, err := fmt.Fprintln(table, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(idle) == 0 {
		_, err := fmt.Fprintln(out, "\nEvery rule buys something.")
		return err
	}
	_, err := fmt.Fprintf(out, "\nRules that buy nothing here. They stay only for a promise of the documentation or a fault that somebody reported:\n  %s\n", strings.Join(idle, "\n  "))
	return err
}
