package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes of the demo.
const (
	exitGood        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// Main runs the demo with the arguments after "demo" and returns the exit code: 0
// when everything went well, 1 when something failed or a pod was misplaced, 2 for
// a mistake in the arguments or the trace, before anything was started, and 130
// after Ctrl-C.
func Main(args []string, stdout, stderr io.Writer) int {
	plan, err := prepare(args, stdout)
	if errors.Is(err, errHelp) {
		return exitGood
	}
	if err != nil {
		say(stderr, "playground: "+err.Error())
		return exitUsage
	}
	ctx, stop := untilInterrupted(stderr)
	defer stop()
	err = run(ctx, plan, stdout)
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	say(stderr, "playground: "+err.Error())
	return exitFailed
}

// say writes a line for the user; there is nobody to tell when that fails.
func say(to io.Writer, line string) { _, _ = io.WriteString(to, line+"\n") }

// errInterrupted says that the user ended the demo early.
var errInterrupted = errors.New("interrupted")

// plan is what is run, checked.
type plan struct {
	Options
	programs
	models []model
	// trace is how much there is of the trace, when there is one.
	trace extent
}

// prepare finds every mistake that can be found before anything starts.
func prepare(args []string, help io.Writer) (plan, error) {
	o, err := parse(args, help)
	if err != nil {
		return plan{}, err
	}
	if err := o.check(); err != nil {
		return plan{}, err
	}
	p := plan{Options: o, models: scenario()[:o.Models]}
	if o.Trace != "" {
		if p.trace, err = checkTrace(o); err != nil {
			return p, err
		}
	}
	undo, err := o.checkOutput()
	if err != nil {
		return p, err
	}
	if p.programs, err = findPrograms(); err != nil {
		undo()
	}
	return p, err
}

// untilInterrupted is a context that ends with the first signal. The second one
// ends the process at once; the children die with it.
func untilInterrupted(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for count := 0; ; count++ {
			if _, open := <-signals; !open {
				return
			}
			if count > 0 {
				os.Exit(exitInterrupted)
			}
			say(stderr, "\nstopping; Ctrl-C again to stop at once")
			cancel(errInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
