package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// oneIn is the share of the changes that may survive: one in so many.
const oneIn = 20

type judgement struct {
	mutants, timedOut int
	listed, unlisted  []mutant
	// gone are listed, but a test noticed them or they are no longer in the code.
	gone []string
}

// judge compares what survived with what the package lists. An identity that occurs
// several times in the code is listed once for all.
func judge(mutants []mutant, reasons map[identity]string) judgement {
	j := judgement{mutants: len(mutants)}
	alive := map[identity]bool{}
	for _, m := range mutants {
		if m.status == timedOut {
			j.timedOut++
			// On a busy machine a change that nobody notices takes too long as well.
			alive[m.identity] = true
		}
		if m.status != lived {
			continue
		}
		alive[m.identity] = true
		if _, ok := reasons[m.identity]; ok {
			j.listed = append(j.listed, m)
		} else {
			j.unlisted = append(j.unlisted, m)
		}
	}
	for i := range reasons {
		if !alive[i] {
			j.gone = append(j.gone, i.String())
		}
	}
	slices.Sort(j.gone)
	return j
}

func (j judgement) survivors() int { return len(j.listed) + len(j.unlisted) }

func (j judgement) tooMany() bool { return j.survivors()*oneIn > j.mutants }

func (j judgement) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b)
	for _, m := range j.unlisted {
		fmt.Fprintf(&b, "no test notices (line %d):\n%s\n", m.line, m.identity)
	}
	for _, g := range j.gone {
		fmt.Fprintf(&b, "listed, but it no longer lives: take it out of %s:\n%s\n", listName, g)
	}
	fmt.Fprintf(&b, "%d changes, %d survivors (%.1f %%), %d of them listed; %d took too long\n",
		j.mutants, j.survivors(), 100*float64(j.survivors())/float64(max(j.mutants, 1)), len(j.listed), j.timedOut)
	_, err := io.WriteString(out, b.String())
	return err
}

func (j judgement) err() error {
	var errs []error
	if n := len(j.unlisted); n > 0 {
		errs = append(errs, fmt.Errorf("%d survivors are not in %s: write a test that notices the change, or its reason", n, listName))
	}
	if n := len(j.gone); n > 0 {
		errs = append(errs, fmt.Errorf("%d survivors in %s no longer live", n, listName))
	}
	if j.tooMany() {
		errs = append(errs, fmt.Errorf("more than one change in %d survives", oneIn))
	}
	return errors.Join(errs...)
}
