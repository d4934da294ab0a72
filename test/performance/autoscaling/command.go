package autoscaling

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// The errors that end a run that went through and showed something bad beyond its noise. That an
// aim is missed, as docs/benchmarks.md says, is none.
var (
	errWorse  = errors.New("hybrid mode does worse than docs/benchmarks.md says: the lines above name the cases")
	errBroken = errors.New("something does not hold that must: the lines above name it")
)

// Run is the benchmark.
func Run(_ context.Context, call *harness.Call) error { return run(call.Args, call.Out, call.Log) }

// options are the flags.
type options struct {
	data, target, page string
	only               string
	families           string
	commit             string
	runs, rivals       string
	workers, seeds     int
	quick, speed       bool
	recipes            bool
	markdown           bool
}

func run(arguments []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("autoscaling", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&o.data, "data", "", "folder that holds azure2023 and servegen")
	flags.StringVar(&o.target, "out", "bench-autoscaling.json", "where the numbers go; empty for nowhere")
	flags.StringVar(&o.page, "html", "bench-autoscaling.html", "where the pictures go; empty for nowhere")
	flags.StringVar(&o.only, "only", "", "only trials whose name contains one of these, separated by commas, such as azure-code,full")
	flags.StringVar(&o.families, "families", "", "only these families of rivals, separated by commas")
	flags.StringVar(&o.commit, "commit", "", "the commit that this is, for the results")
	flags.StringVar(&o.runs, "runs", "", "note every run in this file, and make none again that it has: goes on after an interruption")
	flags.StringVar(&o.rivals, "rivals", "", "take over the rivals' runs from a file that --runs wrote, of whatever commit: to judge a new decision")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "runs at the same time")
	flags.IntVar(&o.seeds, "seeds", 3, "how many seeds the numbers are means of")
	flags.BoolVar(&o.quick, "quick", false, "few traces, two seeds, one start-up time, few families, hybrid alone and no single settings: five minutes")
	flags.BoolVar(&o.markdown, "markdown", false, "print the verdicts as a Markdown table, too")
	flags.BoolVar(&o.speed, "speed", false, "replay one hour of the large service at its full rate in hybrid mode alone, and say how long it took")
	flags.BoolVar(&o.recipes, "recipes", false, "judge hybrid mode against the recipes that others ship, each with its own settings, and tune nothing")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	switch {
	case o.data == "":
		return errors.New("say where the traces are: --data FOLDER (holds azure2023 and servegen)")
	case o.seeds < 1:
		return fmt.Errorf("--seeds is %d: expected at least 1", o.seeds)
	case o.speed:
		return measureSpeed(&o, speed(), out)
	}
	if o.quick {
		o.seeds = min(o.seeds, 2)
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	if o.recipes {
		return againstRecipes(&o, chosen, out, progress)
	}
	began := time.Now()
	b, err := judge(&o, chosen, progress)
	if err != nil {
		return err
	}
	b.print(out)
	if o.markdown {
		tell(out, "%s\n", markdown(b))
	}
	if err := b.keep(&o); err != nil {
		return err
	}
	tell(out, "%d runs with %d seeds in %s", b.runs, o.seeds, time.Since(began).Round(time.Second))
	if spent, known := processorTime(); known {
		tell(out, ", %s of processor", spent.Round(time.Second))
	}
	if o.commit != "" {
		tell(out, ", commit %s", o.commit)
	}
	tell(out, "\n")
	return b.failure()
}

// failure is what makes a run fail that went through.
func (b *bench) failure() error {
	var broken, worse error
	if slices.ContainsFunc(b.claims, claim.broken) {
		broken = errBroken
	}
	if slices.ContainsFunc(b.compared, func(c comparison) bool { return c.Worse != "" }) {
		worse = errWorse
	}
	return errors.Join(broken, worse)
}

// chosen are the trials that the flags leave.
func (o *options) chosen() ([]trial, error) {
	for _, name := range o.asked() {
		if _, err := tuning.Named(name); err != nil {
			return nil, err
		}
	}
	var chosen []trial
	var names []string
	for _, t := range trials() {
		wanted := true
		if o.quick {
			t, wanted = t.hurried()
		}
		names = append(names, t.String())
		if wanted && slices.ContainsFunc(strings.Split(o.only, ","), func(part string) bool { return strings.Contains(t.String(), part) }) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no trial has %q in its name; there are: %s", o.only, strings.Join(names, ", "))
	}
	return chosen, nil
}

// asked are the families that are named; none means all.
func (o *options) asked() []string {
	if o.families == "" {
		return nil
	}
	return strings.Split(o.families, ",")
}

// tell prints for people; that nobody may listen is no failure of the benchmark.
func tell(out io.Writer, format string, arguments ...any) {
	_, _ = fmt.Fprintf(out, format, arguments...)
}
