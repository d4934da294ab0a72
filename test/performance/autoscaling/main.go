package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/config/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// What a run ends with; its rows are told already.
var (
	// errBeaten ends a run that proved something against us.
	errBeaten = errors.New("not everything that was to be proved holds")
	// errPartial ends a whole run that left something unproved.
	errPartial = errors.New("not everything that was to be proved was judged")
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	data, target, page string
	only               string
	policies           string
	workers            int
	speed              bool
	markdown           bool
}

func run(arguments []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("autoscaling", flag.ContinueOnError)
	flags.StringVar(&o.data, "data", "", "folder that holds azure2023 and servegen")
	flags.StringVar(&o.target, "out", "bench-autoscaling.json", "where the numbers go; empty for nowhere")
	flags.StringVar(&o.page, "html", "bench-autoscaling.html", "where the pictures go; empty for nowhere")
	flags.StringVar(&o.only, "only", "", "only trials whose name contains this, such as azure-code or full")
	flags.StringVar(&o.policies, "policies", "", "only these policies with their settings, separated by commas")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "runs at the same time")
	flags.BoolVar(&o.markdown, "markdown", false, "print the comparison as one Markdown table, too")
	flags.BoolVar(&o.speed, "speed", false, "replay one hour of the large service at its full rate in hybrid mode alone, and say how long it took")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if o.data == "" {
		return errors.New("say where the traces are: --data FOLDER (holds azure2023 and servegen)")
	}
	if o.speed {
		return measureSpeed(&o, speed(), out)
	}
	began := time.Now()
	rows, runs, err := replays(&o, progress)
	if err != nil {
		return err
	}
	table(out, rows)
	if o.markdown {
		tell(out, "%s\n", markdown(rows))
	}
	holds, whole := verdict(out, rows)
	if err := keep(&o, rows, runs); err != nil {
		return err
	}
	tell(out, "runs: %d, in %s\n", len(rows), time.Since(began).Round(time.Second))
	switch {
	case !holds:
		return errBeaten
	case !whole && o.only == "" && o.policies == "":
		return errPartial
	}
	return nil
}

// replays performs the trials that the flags leave.
func replays(o *options, progress io.Writer) ([]row, []report.ReplayRun, error) {
	names, err := o.names()
	if err != nil {
		return nil, nil, err
	}
	var rows []row
	var runs []report.ReplayRun
	for _, t := range trials() {
		chosen := t.chosen(names)
		if len(chosen) == 0 || !strings.Contains(t.String(), o.only) {
			continue
		}
		began := time.Now()
		results, recorded, err := perform(o, t, chosen)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t, err)
		}
		tell(progress, "%-50s %4d runs in %s\n", t, len(results), time.Since(began).Round(time.Second))
		for i := range results {
			rows = append(rows, row{Trace: t.trace.name, Prices: t.prices, Cluster: t.cluster, Result: results[i], aside: t.learns})
			run := report.ReplayRun{Scene: t.String(), Result: results[i]}
			if pictured(results[i]) {
				// A copy, so that the recordings that are not shown can go.
				run.Recording = new(recorded[i])
			}
			runs = append(runs, run)
		}
	}
	if len(rows) == 0 {
		return nil, nil, fmt.Errorf("no trial of these policies has %q in its name; there are: %s", o.only, trials())
	}
	return rows, runs, nil
}

// names are the policies that the flags leave.
func (o *options) names() ([]string, error) {
	if o.policies == "" {
		return policies, nil
	}
	names := replay.JoinPolicies(strings.Split(o.policies, ","))
	for i, name := range names {
		spec, err := replay.ParseSpec(name)
		if err != nil {
			return nil, err
		}
		name = spec.String()
		names[i] = name
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("the policy %s is named twice: expected each once", name)
		}
	}
	return names, nil
}

// pictured says of which runs the page shows the course: with one start-up time, and not
// of all policies, so that the page stays small.
func pictured(r replay.Result) bool {
	return r.StartupSeconds == 60 && slices.Contains([]string{"hybrid", "capacity-only", "hpa:queue", "saturation-v2", "bound"}, r.Policy)
}

func perform(o *options, t trial, names []string) ([]replay.Result, []replay.Recording, error) {
	s, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{Prices: t.prices, Cluster: t.cluster})
	if err != nil {
		return nil, nil, err
	}
	if t.learns {
		forget(s)
	}
	var counted workload.Dispersion
	return replay.Run(replay.Options{
		Scenario: s, Policies: names, Startups: t.startups, Seed: seed, Workers: o.workers, Record: !o.speed,
		Source: func() (workload.Stream, error) { return t.trace.open(o.data, &counted) }, Trace: &counted,
	})
}

// forget takes the profiles from the autoscaler, so that it has to learn them.
func forget(s *replay.Scenario) {
	for m := range s.Models {
		for v := range s.Models[m].Variants {
			s.Models[m].Variants[v].Given = serving.Profile{}
		}
	}
}

// tell prints for people; that nobody may listen is no failure of the benchmark.
func tell(out io.Writer, format string, arguments ...any) {
	_, _ = fmt.Fprintf(out, format, arguments...)
}

// table prints the rows for people.
func table(out io.Writer, rows []row) {
	last := ""
	var part []replay.Result
	flush := func() {
		if len(part) > 0 {
			tell(out, "\n%s\n", last)
			for _, line := range report.ReplayDispersion(part) {
				tell(out, "%s\n", line)
			}
			for _, line := range report.ReplayTable(part, report.Style{}) {
				tell(out, "%s\n", line)
			}
		}
		part = nil
	}
	for _, r := range rows {
		title := fmt.Sprintf("%s, %s prices, %s cluster", r.Trace, r.Prices, r.Cluster)
		if title != last {
			flush()
			last = title
		}
		part = append(part, r.Result)
	}
	flush()
	tell(out, "\n")
}

// keep writes the files.
func keep(o *options, rows []row, runs []report.ReplayRun) error {
	if o.target != "" {
		encoded, err := json.MarshalIndent(rows, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the results: %w", err)
		}
		if err := os.WriteFile(o.target, append(encoded, '\n'), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	if o.page == "" {
		return nil
	}
	file, err := os.Create(o.page)
	if err != nil {
		return fmt.Errorf("write the pictures: %w", err)
	}
	if err := report.HTMLOfRuns(file, "Scaling policies on recorded traces", runs); err != nil {
		_ = file.Close()
		return fmt.Errorf("write the pictures: %w", err)
	}
	return file.Close()
}
