package localcluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *Cluster

// nodes of the shared cluster: one of each shape.
var nodes = map[string]Shape{"h100": EightH100, "a100": EightA100, "l40s": FourL40S, "cpu": CPUOnly}

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		os.Exit(beOrphaned())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	options := Options{Components: Components{ControllerManager: true, Scheduler: true, Kwok: true, Prometheus: &Prometheus{}}}
	for name, shape := range nodes {
		options.Nodes = append(options.Nodes, shape.Node(name, "zone-1"))
	}
	begin := time.Now()
	var err error
	if cluster, err = Start(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "a cluster with %d ready nodes took %.1f s\n", len(nodes), time.Since(begin).Seconds())
	code := m.Run()
	begin = time.Now()
	cluster.Stop()
	fmt.Fprintf(os.Stderr, "stopping it took %.1f s\n", time.Since(begin).Seconds())
	return code
}
