package scheduler

import (
	"context"
	"errors"
	"fmt"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// options are what the command line says.
type options struct {
	pairs            int
	nodes            int
	acceleratorNodes int
	pods             int
	only             string
	profiles         string
	logs             string
}

// Run is the benchmark.
func Run(ctx context.Context, call *harness.Call) error {
	var o options
	flags := call.Flags("scheduler")
	if err := o.parse(flags); err != nil {
		return err
	}
	results, err := measure(ctx, o, call.Clock())
	if err != nil {
		return err
	}
	results.print(call.Out)
	return flags.Save(results)
}

func (o *options) parse(flags *harness.Flags) error {
	flags.IntVar(&o.pairs, "pairs", 6, "Pairs of runs, one of each scheduler, for each of the two workloads.")
	flags.IntVar(&o.nodes, "nodes", 5000, "Nodes of the cluster.")
	flags.IntVar(&o.acceleratorNodes, "accelerator-nodes", 700, "How many of the nodes carry 8 GPUs.")
	flags.IntVar(&o.pods, "pods", 5000, "Pods of a run.")
	flags.StringVar(&o.only, "only", "", "Only the workloads with this in their names, which are \"one GPU\" and \"no devices\".")
	flags.StringVar(&o.profiles, "profiles", "", "Directory for a CPU profile of the scheduler in each run; taking it slows both.")
	flags.StringVar(&o.logs, "logs", "", "Directory for the logs of etcd, the API server and the schedulers.")
	if err := flags.Parse(); err != nil {
		return err
	}
	switch {
	case o.pairs < 2:
		return errors.New("--pairs is at least 2: one pair has no spread")
	case o.nodes < o.acceleratorNodes || o.acceleratorNodes < 1:
		return errors.New("--accelerator-nodes is at least 1 and at most --nodes")
	case o.pods < 2 || o.pods > devicesPerNode*o.acceleratorNodes:
		return fmt.Errorf("--pods is at least 2 and at most %d, the GPUs of the cluster", devicesPerNode*o.acceleratorNodes)
	case len(o.workloads()) == 0:
		return fmt.Errorf("--only is part of a workload's name, not %q", o.only)
	}
	return nil
}
