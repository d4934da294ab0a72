package component

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/component/kwok"
)

// argument is the hidden first argument that turns the playground into one of its children.
const argument = "component"

// roles are the children by the name that follows the argument. A role gets the rest of the command line and
// returns the exit code of the process.
var roles = map[string]func(args []string) int{
	"etcd":                    untilSignalled(runEtcd),
	"kube-apiserver":          runAPIServer,
	"kube-controller-manager": runControllerManager,
	"kube-scheduler":          runScheduler,
	"kwok":                    untilSignalled(kwok.Run),
	"prometheus":              untilSignalled(runPrometheus),
	"external-metrics":        untilSignalled(runExternalMetrics),
}

// Requested says whether the command line asks for a child role: main must ask before it looks at anything
// else and leave the process to Run when it does.
func Requested(args []string) bool {
	return len(args) > 1 && args[1] == argument
}

// Run runs the role that the command line names (program, "component", name, flags of the role) until it
// ends or gets SIGTERM, and returns the exit code: 2 for an unknown role or flag.
func Run(args []string) int {
	if len(args) < 3 {
		fmt.Fprintf(os.Stderr, "usage: %s %s <%s> [flags]\n", args[0], argument, strings.Join(names(), "|"))
		return 2
	}
	role, known := roles[args[2]]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: no component %q, there are %s\n", args[0], args[2], strings.Join(names(), ", "))
		return 2
	}
	return role(args[3:])
}

func names() []string {
	var all []string
	for name := range roles {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// untilSignalled gives a role that has no signal handling of its own a context that ends with SIGTERM or
// SIGINT. Kubernetes' commands install theirs.
func untilSignalled(run func(ctx context.Context, args []string) error) func(args []string) int {
	return func(args []string) int {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		if err := run(ctx, args); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return 1
		}
		return 0
	}
}
