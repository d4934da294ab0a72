package main

import (
	"fmt"
	"io"
	"slices"
)

// usage is the help of the program as a whole.
const usage = `Runs a whole Kubernetes cluster on this machine, with emulated GPU nodes and model servers.
It needs no Docker, no GPU and no cluster.

Usage:
  playground demo [flags]    three minutes of traffic for two models, scaled by the autoscaler,
                             and a report of it
  playground empty [flags]   a cluster with nothing installed, to try things by hand

"playground demo --help" and "playground empty --help" list the flags. "make demo" and
"make playground-empty" build the programs first and then run these commands.
`

// exitUsage is the code of a command line that cannot be used.
const exitUsage = 2

// explain answers a command line that names no command: with the help where it is asked for,
// else with what is wrong.
func explain(arguments []string, stdout, stderr io.Writer) int {
	switch {
	case len(arguments) == 0:
		_, _ = fmt.Fprint(stderr, usage)
	case slices.Contains([]string{"help", "--help", "-h"}, arguments[0]):
		_, _ = fmt.Fprint(stdout, usage)
		return 0
	default:
		_, _ = fmt.Fprintf(stderr, "playground: %q is no command: expected demo or empty; see playground --help\n", arguments[0])
	}
	return exitUsage
}
