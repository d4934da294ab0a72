package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"llmd.ai/workload-variant-autoscaler/test/performance/allocation"
	"llmd.ai/workload-variant-autoscaler/test/performance/autoscaling"
	"llmd.ai/workload-variant-autoscaler/test/performance/churn"
	"llmd.ai/workload-variant-autoscaler/test/performance/episode"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
	"llmd.ai/workload-variant-autoscaler/test/performance/manager"
	"llmd.ai/workload-variant-autoscaler/test/performance/scheduler"
	"llmd.ai/workload-variant-autoscaler/test/performance/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/simulation"
)

// benchmarks are what can be measured. The settings are those of the Makefile.
var benchmarks = []struct {
	name, about, settings string
	run                   func(context.Context, *harness.Call) error
}{
	{"allocation", "what to buy under shared limits against an exact solver, cbc", "DATA", allocation.Run},
	{"autoscaling", "ours against all others at their best, on recorded traces", "DATA QUICK RECIPES SPEED RUNS RIVALS", autoscaling.Run},
	{"churn", "replicas that come and go, under several schedulers", "", churn.Run},
	{"episode", "the published episode of llm-d's SLO-aware recipe, and ours on it", "", episode.Run},
	{"go-benchmarks", "the pure packages and the scheduler plugin, by go test", "", goBenchmarks},
	{"manager", "the whole manager on a cluster of many objects", "VARIANTS REPLICAS NODES", manager.Run},
	{"scheduler", "our scheduler against the stock one on 5,000 fake nodes", "PAIRS", scheduler.Run},
	{"serving", "the latency model of a replica against a real sweep", "DATA SWEEP", serving.Run},
	{"simulation", "the simulated model server against real ones", "DATA RUN LINK", simulation.Run},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 {
		list(out)
		return nil
	}
	for _, b := range benchmarks {
		if b.name != args[0] {
			continue
		}
		err := b.run(ctx, &harness.Call{Args: args[1:], Out: out, Log: log})
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	list(log)
	return fmt.Errorf("there is no benchmark %q", args[0])
}

func list(out io.Writer) {
	_, _ = fmt.Fprintln(out, "What can be measured, with its settings: make bench WHAT=...")
	for _, b := range benchmarks {
		_, _ = fmt.Fprintf(out, "  %-14s %-60s %s\n", b.name, b.about, b.settings)
	}
}

// goBenchmarks runs those of go test, from the root of the repository.
func goBenchmarks(ctx context.Context, call *harness.Call) error {
	args := append([]string{"test", "-run", "^$", "-bench", ".", "-benchmem"}, call.Args...)
	args = append(args, "./pkg/capacity/...", "./pkg/decision/...", "./pkg/simulation/...", "./pkg/workload/...", "./plugins/...")
	command := exec.CommandContext(ctx, "go", args...) // #nosec G204: the arguments are those of the person who calls
	command.Stdout, command.Stderr = call.Out, call.Log
	return command.Run()
}
