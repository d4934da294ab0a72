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

	"llmd.ai/workload-variant-autoscaler/pkg/config/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// errBeaten is the end of a run that proved something against us; it is told already.
var errBeaten = errors.New("not everything that was to be proved holds")

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
}

func run(arguments []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("autoscaling", flag.ContinueOnError)
	flags.StringVar(&o.data, "data", "", "folder that holds azure2023 and servegen")
	flags.StringVar(&o.target, "out", "bench-autoscaling.json", "where the numbers go; empty for nowhere")
	flags.StringVar(&o.page, "html", "bench-autoscaling.html", "where the pictures go; empty for nowhere")
	flags.StringVar(&o.only, "only", "", "only trials whose name contains this, such as azure-code or full")
	flags.StringVar(&o.policies, "policies", "", "only these policies, separated by commas")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "runs at the same time")
	flags.BoolVar(&o.speed, "speed", false, "replay one hour of the large service at its full rate in hybrid mode alone, and say how long it took")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if o.data == "" {
		return errors.New("say where the traces are: --data FOLDER (holds azure2023 and servegen)")
	}
	if o.speed {
		return measureSpeed(&o, out)
	}
	names := policies
	if o.policies != "" {
		names = strings.Split(o.policies, ",")
	}
	var rows []row
	var runs []report.ReplayRun
	for _, t := range trials() {
		if !strings.Contains(t.String(), o.only) {
			continue
		}
		began := time.Now()
		r, recorded, err := perform(&o, t, names)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		fmt.Fprintf(progress, "%-50s %4d runs in %s\n", t, len(r), time.Since(began).Round(time.Second))
		for i := range r {
			rows = append(rows, row{Trace: t.trace.name, Prices: t.prices, Cluster: t.cluster, Result: r[i]})
			run := report.ReplayRun{Scene: t.String(), Result: r[i]}
			if pictured(r[i]) {
				run.Recording = &recorded[i]
			}
			runs = append(runs, run)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("no trial has %q in its name; there are: %s", o.only, trials())
	}
	table(out, rows)
	holds := verdict(out, rows)
	if err := keep(&o, rows, runs); err != nil {
		return err
	}
	if !holds {
		return errBeaten
	}
	return nil
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
	return replay.Run(replay.Options{
		Scenario: s, Policies: names, Startups: t.startups, Seed: seed, Workers: o.workers, Record: true,
		Source: func() (workload.Stream, error) { return t.trace.open(o.data) },
	})
}

// measureSpeed replays the large hour once and says how long it took.
func measureSpeed(o *options, out io.Writer) error {
	o.workers = 1
	began := time.Now()
	results, _, err := perform(o, speed(), []string{"hybrid"})
	if err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(out, "%s: %d requests in %s; %d MiB from the system, %.2f%% attained at %.2f times the bound\n",
		speed(), results[0].Requests, time.Since(began).Round(10*time.Millisecond), memory.Sys>>20,
		100*results[0].Attainment, results[0].CostOverBound)
	return nil
}

// table prints the rows for people.
func table(out io.Writer, rows []row) {
	last := ""
	var part []replay.Result
	flush := func() {
		if len(part) > 0 {
			fmt.Fprintf(out, "\n%s\n", last)
			for _, line := range report.ReplayTable(part, report.Style{}) {
				fmt.Fprintln(out, line)
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
	fmt.Fprintln(out)
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
