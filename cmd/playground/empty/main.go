package empty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// The exit codes.
const (
	exitGood   = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `Starts a Kubernetes cluster with emulated GPU nodes and Prometheus, and installs
nothing in it. It runs until Ctrl-C.

A pod with the annotation emulation.llmd.ai/model-server gets an emulated model
server. All other pods only look as if they ran: start the manager by hand.

Usage:
  playground empty [flags]

Examples:
  # with the settings for kubectl and the manager in playground.env
  playground empty

  # with model servers that take a minute to start
  playground empty --startup 1m

Flags:
`

// options are what the user chose.
type options struct {
	// Model is the model whose requests the router takes.
	Model string
	// Namespace is where the router looks for its replicas.
	Namespace string
	// Startup is how long a model server takes until it serves.
	Startup time.Duration
	// Env is the file with the settings for a shell.
	Env string
	// Logs is the directory of the logs; empty means one that is removed at the end.
	Logs string
	// programs is the directory of the programs that run as children.
	programs string
}

// Main starts the cluster with the arguments after "empty", waits for Ctrl-C, and
// returns the exit code: 0 after Ctrl-C, 1 when something failed, 2 for a mistake in the
// arguments.
func Main(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitGood
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "playground:", err)
		return exitUsage
	}
	self, err := os.Executable()
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "playground: find this program's own file:", err)
		return exitFailed
	}
	o.programs = filepath.Dir(self)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, o, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, "playground:", err)
		return exitFailed
	}
	return exitGood
}

// parse reads the command line. An error is one line that names the flag and what is
// expected.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := pflag.NewFlagSet("empty", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.SortFlags = false
	flags.StringVar(&o.Model, "model", "meta-llama/Llama-3.1-8B-Instruct", "model whose requests the router takes")
	flags.StringVar(&o.Namespace, "namespace", "chat", "namespace in which the router looks for replicas of the model")
	flags.DurationVar(&o.Startup, "startup", 15*time.Second, "how long a model server takes until it serves")
	flags.StringVar(&o.Env, "env", "playground.env", "file that the settings for a shell are written to")
	flags.StringVar(&o.Logs, "logs", "", "directory for the logs of every component; without one they are removed at the end")
	flags.Usage = func() {}
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, _ = io.WriteString(out, usage+strings.TrimSuffix(flags.FlagUsagesWrapped(98), "\n")+"\n")
		return o, err
	case err != nil:
		return o, errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	case o.Model == "" || o.Namespace == "" || o.Env == "":
		return o, errors.New("--model, --namespace and --env must not be empty")
	case o.Startup < 0 || o.Startup > time.Hour:
		return o, fmt.Errorf("--startup is %s; expected between 0 and 1h", o.Startup)
	}
	return o, nil
}
