package main

import (
	"os"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/component"
	"llmd.ai/workload-variant-autoscaler/cmd/playground/demo"
	"llmd.ai/workload-variant-autoscaler/cmd/playground/empty"
)

func main() {
	if component.Requested(os.Args) {
		os.Exit(component.Run(os.Args))
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "demo":
			os.Exit(demo.Main(os.Args[2:], os.Stdout, os.Stderr))
		case "empty":
			os.Exit(empty.Main(os.Args[2:], os.Stdout, os.Stderr))
		}
	}
	os.Exit(explain(os.Args[1:], os.Stdout, os.Stderr))
}
