// Command playground runs a whole cluster in one command.
package main

import (
	"fmt"
	"os"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/component"
)

func main() {
	if component.Requested(os.Args) {
		os.Exit(component.Run(os.Args))
	}
	fmt.Fprintln(os.Stderr, "usage: playground component <name> [flags]")
	os.Exit(2)
}
