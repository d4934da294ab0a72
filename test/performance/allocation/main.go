package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "allocation:", err)
		}
		os.Exit(1)
	}
}

type options struct {
	data, out string
	only      string
	limit     time.Duration
	seeds     uint64
}

func parseOptions(arguments []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("allocation", flag.ContinueOnError)
	flags.StringVar(&o.data, "data", "", "folder that holds inferno_sample")
	flags.StringVar(&o.out, "out", "bench-allocation.json", "where the numbers go; empty for nowhere")
	flags.StringVar(&o.only, "only", "", "only the instances whose names contain this")
	flags.DurationVar(&o.limit, "limit", time.Minute, "time limit of the exact solver for one instance")
	flags.Uint64Var(&o.seeds, "seeds", 3, "random instances of each kind")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.data == "":
		return nil, errors.New("no data: name the folder that holds inferno_sample, --data DIR")
	}
	return o, nil
}

func run(arguments []string, out io.Writer) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	list, err := instances(o)
	if err != nil {
		return err
	}
	s, done, err := newSolver(o.limit)
	if err != nil {
		return err
	}
	defer done()
	var results []result
	for _, in := range list {
		r, err := s.compare(context.Background(), in)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := writeTable(out, results); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if err := save(o.out, results); err != nil {
		return err
	}
	text, good := verify(summarise(results))
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if !good {
		return errMissed
	}
	return nil
}

// instances are the published ones, as they are and with more load, and random ones.
func instances(o *options) ([]Instance, error) {
	var list []Instance
	for _, folder := range []string{"small", "large"} {
		s, err := readSample(filepath.Join(o.data, "inferno_sample", folder))
		if err != nil {
			return nil, err
		}
		for _, load := range []float64{1, 2, 4, 8} {
			in, err := s.instance(fmt.Sprintf("published-%s-x%g", folder, load), load)
			if err != nil {
				return nil, err
			}
			list = append(list, in)
		}
	}
	for _, variants := range []int{20, 50, 100, 200} {
		for seed := range o.seeds {
			list = append(list, synthetic(variants, false, seed+1), synthetic(variants, true, seed+1))
		}
	}
	return slices.DeleteFunc(list, func(in Instance) bool { return !strings.Contains(in.Name, o.only) }), nil
}

func (s *solver) compare(ctx context.Context, in Instance) (result, error) {
	replicas, took := ours(in)
	score := in.score(replicas)
	if !score.Fits {
		return result{}, fmt.Errorf("%s: our answer breaks a limit or a bound", in.Name)
	}
	began := time.Now()
	exact, complete, err := s.exactly(ctx, in)
	if err != nil {
		return result{}, err
	}
	best := in.score(exact)
	r := result{
		Instance: in.Name, Models: len(in.Models), Variants: in.variants(), Stopped: !complete,
		UnservedOurs: round(score.Unserved), UnservedExact: round(best.Unserved), LevelsOurs: score.Levels, LevelsExact: best.Levels,
		CostOurs: round(score.Cost), CostExact: round(best.Cost), OursMs: took, ExactMs: round(1000 * time.Since(began).Seconds()),
	}
	if best.Cost > 0 {
		r.GapPct = 100 * (score.Cost/best.Cost - 1)
	}
	r.ObjectiveGapPct = r.GapPct
	if at, differs := firstDifference(score.Levels, best.Levels); differs {
		ours, exact := score.Levels[at], best.Levels[at]
		r.Worse, r.Better = ours > exact, ours < exact
		r.ObjectiveGapPct = 100 * (ours - exact) / math.Max(exact, sameShare)
	}
	return r, nil
}

// ours answers several times and takes the median of the processor's times in
// milliseconds, garbage collection included: other work on the machine does not count.
func ours(in Instance) (replicas [][]int, took float64) {
	var times []float64
	for range 5 {
		began := processorTime()
		answer := allocation.Share(in.Models, in.Rows)
		times = append(times, processorTime()-began)
		replicas = nil
		for _, v := range answer {
			replicas = append(replicas, v.Replicas)
		}
	}
	slices.Sort(times)
	return replicas, times[len(times)/2]
}

// processorTime is what this process has used, in milliseconds.
func processorTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return 1000*float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1000
}

func save(path string, results []result) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Instances []result `json:"instances"`
		Summary   summary  `json:"summary"`
	}{results, summarise(results)}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
