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
	duration time.Duration
	seed     uint64
	out      string
	logs     string
}

const (
	// shortest is the shortest time in which something can go wrong and come right again.
	shortest = 2 * time.Minute
	// calm is the end of a soak, in which nothing is killed and the load is constant.
	calm = time.Minute
	// drained is how long a queue of before may last then, and shortQueue how many may wait
	// in one replica in the normal course of things.
	drained    = 5 * time.Minute
	shortQueue = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command; its result is the exit code: 0 when nothing was wrong, 1 when
// something was or the soak could not be run, and 2 for a mistake in the arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	// Whether it can be written shows before the soak, not after it.
	file, err := os.OpenFile(o.out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error: open the file for the results:", err)
		return 1
	}
	seen, err := soak(ctx, o, stderr)
	if err != nil {
		_ = file.Close()
		_, _ = fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	result := judge(seen)
	if err := errors.Join(result.write(file), file.Close()); err != nil {
		_, _ = fmt.Fprintln(stderr, "error: write the results:", err)
		return 1
	}
	result.print(stdout)
	if len(result.Wrong) > 0 {
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "duration", 10*time.Minute, "How long there is load; the last minute of it, and what queues of before take, are calm.")
	flags.Uint64Var(&o.seed, "seed", 1, "Decides what happens when.")
	flags.StringVar(&o.out, "out", "soak.json", "File for the results.")
	flags.StringVar(&o.logs, "logs", "", "Directory for the logs of all programs, the audit log among them; without it they go with the cluster.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("what is %q? There are flags only", flags.Arg(0))
	case o.duration < shortest:
		err = fmt.Errorf("--duration is at least %s, of which the last %s are calm", shortest, calm)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "error:", err)
	}
	return o, err
}

// soak runs everything and returns what was seen.
func soak(ctx context.Context, o options, progress io.Writer) (*seen, error) {
	w, err := start(ctx, o, progress)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	w.begin()
	if err := w.wreck(ctx, o.duration-calm); err != nil {
		return nil, err
	}
	w.say("nothing is killed any more, and the load is constant")
	if err := w.rest(ctx); err != nil {
		return nil, err
	}
	return w.seen(ctx)
}
