package main

import (
	"fmt"
	"os"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
)

const introduction = `# Metrics of the manager

Generated from the program by ` + "`make update`" + `. Every metric of a manager with a controller instance has the label
` + "`controller_instance`" + ` too. A scrape may turn the label ` + "`namespace`" + ` into ` + "`exported_namespace`" + `. The names ` + "`inferno_...`" + ` are those of
earlier versions; ` + "`METRICS_PUBLISHED_NAMES=false`" + ` turns them off. Units are in the names, except: replicas and slots are
counts, ` + "`inferno_current_load`" + ` is in requests per minute, and the latencies ` + "`inferno_..._average`" + ` are in milliseconds.

| name | kind | labels | what it shows |
|---|---|---|---|
`

func main() {
	references, err := metrics.References()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(introduction)
	for _, r := range references {
		fmt.Printf("| `%s` | %s | %s | %s |\n", r.Name, r.Kind, strings.Join(r.Labels, ", "), r.Help)
	}
}
