package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// options are what the command line says.
type options struct {
	variants   int
	replicas   int
	nodes      int
	namespaces int
	scrape     time.Duration
	interval   time.Duration
	logs       string
}

// devicesPerNode is how many GPUs a node has, of which a pod takes one.
const devicesPerNode = 16

// Run is the benchmark.
func Run(ctx context.Context, call *harness.Call) error {
	var o options
	flags := call.Flags("manager")
	if err := o.parse(flags); err != nil {
		return err
	}
	// What was measured before something failed is worth having.
	results, err := measure(ctx, o, call.Clock())
	if results != nil {
		results.print(call.Out)
		err = errors.Join(err, flags.Save(results))
	}
	return err
}

func (o *options) parse(flags *harness.Flags) error {
	flags.IntVar(&o.variants, "variants", 1000, "VariantAutoscaling objects, each with a Deployment; two serve one model.")
	flags.IntVar(&o.replicas, "replicas", 10, "Replicas, and so pods, of each variant.")
	flags.IntVar(&o.nodes, "nodes", 1000, fmt.Sprintf("Nodes, each with %d GPUs; a replica takes one.", devicesPerNode))
	flags.IntVar(&o.namespaces, "namespaces", 20, "Namespaces that the variants are in.")
	flags.DurationVar(&o.scrape, "scrape-interval", 15*time.Second, "Time between two scrapes of a pod.")
	flags.DurationVar(&o.interval, "interval", 20*time.Second, "Time between two full rounds (GLOBAL_OPT_INTERVAL).")
	flags.StringVar(&o.logs, "logs", "", "Directory for the logs of all programs, the audit log among them; without it they go with the cluster.")
	if err := flags.Parse(); err != nil {
		return err
	}
	switch {
	case o.variants < 2 || o.variants%2 != 0:
		return errors.New("--variants is an even number of at least 2: two serve one model")
	case o.replicas < 1:
		return errors.New("--replicas is at least 1")
	case o.nodes*devicesPerNode < o.variants*(o.replicas+1):
		return fmt.Errorf("--nodes is at least %d, so that one more replica of each variant fits", (o.variants*(o.replicas+1)+devicesPerNode-1)/devicesPerNode)
	case o.namespaces < 1 || o.namespaces > o.variants/2:
		return errors.New("--namespaces is at least 1, and at most half of --variants")
	case o.scrape < time.Second || o.interval < time.Second:
		return errors.New("--scrape-interval and --interval are at least 1s")
	}
	return nil
}
