package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// options are what the command line says.
type options struct {
	pairs            int
	nodes            int
	acceleratorNodes int
	pods             int
	only             string
	out              string
	profiles         string
	logs             string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command; its result is the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	// Whether it can be written shows before the measurement, not after it.
	file, err := os.OpenFile(o.out, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error: open the file for the results:", err)
		return 1
	}
	results, err := measure(ctx, o, stderr)
	if err == nil {
		err = results.write(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	results.print(stdout)
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("scheduler", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.pairs, "pairs", 6, "Pairs of runs, one of each scheduler, for each of the two workloads.")
	flags.IntVar(&o.nodes, "nodes", 5000, "Nodes of the cluster.")
	flags.IntVar(&o.acceleratorNodes, "accelerator-nodes", 700, "How many of the nodes carry 8 GPUs.")
	flags.IntVar(&o.pods, "pods", 5000, "Pods of a run.")
	flags.StringVar(&o.only, "only", "", "Only the workloads with this in their names, which are \"one GPU\" and \"no devices\".")
	flags.StringVar(&o.out, "out", "bench-scheduler.json", "File for the results.")
	flags.StringVar(&o.profiles, "profiles", "", "Directory for a CPU profile of the scheduler in each run; taking it slows both.")
	flags.StringVar(&o.logs, "logs", "", "Directory for the logs of etcd, the API server and the schedulers.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("what is %q? There are flags only", flags.Arg(0))
	case o.pairs < 2:
		err = errors.New("--pairs is at least 2: one pair has no spread")
	case o.nodes < o.acceleratorNodes || o.acceleratorNodes < 1:
		err = errors.New("--accelerator-nodes is at least 1 and at most --nodes")
	case o.pods < 2 || o.pods > devicesPerNode*o.acceleratorNodes:
		err = fmt.Errorf("--pods is at least 2 and at most %d, the GPUs of the cluster", devicesPerNode*o.acceleratorNodes)
	case len(o.workloads()) == 0:
		err = fmt.Errorf("--only is part of a workload's name, not %q", o.only)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
	}
	return o, err
}
