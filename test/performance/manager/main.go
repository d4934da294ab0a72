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
	"time"
)

// options are what the command line says.
type options struct {
	variants   int
	replicas   int
	nodes      int
	namespaces int
	scrape     time.Duration
	interval   time.Duration
	out        string
	logs       string
}

// devicesPerNode is how many GPUs a node has, of which a pod takes one.
const devicesPerNode = 16

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
	file, err := os.OpenFile(o.out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error: open the file for the results:", err)
		return 1
	}
	// What was measured before something failed is worth having.
	results, err := measure(ctx, o, stderr)
	if results != nil {
		results.print(stdout)
		err = errors.Join(err, results.write(file))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.variants, "variants", 1000, "VariantAutoscaling objects, each with a Deployment; two serve one model.")
	flags.IntVar(&o.replicas, "replicas", 10, "Replicas, and so pods, of each variant.")
	flags.IntVar(&o.nodes, "nodes", 1000, fmt.Sprintf("Nodes, each with %d GPUs; a replica takes one.", devicesPerNode))
	flags.IntVar(&o.namespaces, "namespaces", 20, "Namespaces that the variants are in.")
	flags.DurationVar(&o.scrape, "scrape-interval", 15*time.Second, "Time between two scrapes of a pod.")
	flags.DurationVar(&o.interval, "interval", 20*time.Second, "Time between two full rounds (GLOBAL_OPT_INTERVAL).")
	flags.StringVar(&o.out, "out", "bench-manager.json", "File for the results.")
	flags.StringVar(&o.logs, "logs", "", "Directory for the logs of all programs, the audit log among them; without it they go with the cluster.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("what is %q? There are flags only", flags.Arg(0))
	case o.variants < 2 || o.variants%2 != 0:
		err = errors.New("--variants is an even number of at least 2: two serve one model")
	case o.replicas < 1:
		err = errors.New("--replicas is at least 1")
	case o.nodes*devicesPerNode < o.variants*(o.replicas+1):
		err = fmt.Errorf("--nodes is at least %d, so that one more replica of each variant fits", (o.variants*(o.replicas+1)+devicesPerNode-1)/devicesPerNode)
	case o.namespaces < 1 || o.namespaces > o.variants/2:
		err = errors.New("--namespaces is at least 1, and at most half of --variants")
	case o.scrape < time.Second || o.interval < time.Second:
		err = errors.New("--scrape-interval and --interval are at least 1s")
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
	}
	return o, err
}
