package main

import (
	"fmt"
	"os"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/component"
	"llmd.ai/workload-variant-autoscaler/cmd/playground/demo"
)

func main() {
	if component.Requested(os.Args) {
		os.Exit(component.Run(os.Args))
	}
	if len(os.Args) > 1 && os.Args[1] == "demo" {
		os.Exit(demo.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	fmt.Fprintln(os.Stderr, "usage: playground demo [flags]; see playground demo --help")
	os.Exit(2)
}
