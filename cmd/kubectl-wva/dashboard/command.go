package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/live"
)

const long = `Serve a page about the variants of a live cluster on a loopback address of this machine:
load, SLO and attainment of each model, replicas and cost of each variant, a map of the nodes and
their devices, and the decisions with their reasons as they come.

It has the permissions of your kubeconfig and changes nothing. You install nothing in the
cluster for it. The page says what you may not read, and leaves it out. Load and latencies
come from Prometheus: that of --prometheus, else the one that the manager has. Decisions
before the start come from the events of the objects, which a cluster keeps for an hour.`

const examples = `  # The variants of the current namespace
  kubectl wva dashboard

  # All variants, with a Prometheus that is forwarded to this machine
  kubectl wva dashboard -A --prometheus http://localhost:9090

  # At a fixed port, with the last three hours of load
  kubectl wva dashboard -A --port 8090 --last 3h`

const (
	shortest = 5 * time.Minute
	longest  = 24 * time.Hour
)

type options struct {
	cluster    *cluster.Flags
	prometheus prometheus.Flags
	port       uint16
	last       time.Duration
}

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := &options{cluster: flags}
	command := &cobra.Command{
		Use:     "dashboard",
		Short:   "Serve a live page about the variants of a cluster on this machine",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx, command.OutOrStdout())
		},
	}
	command.Flags().Uint16Var(&o.port, "port", 0, "Port of 127.0.0.1 that the page is served at; 0 chooses a free one.")
	command.Flags().DurationVar(&o.last, "last", 30*time.Minute, "How much of the past the charts show at least, from 5m to 24h.")
	flags.AddAll(command)
	o.prometheus.Add(command)
	return command
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if o.last < shortest || o.last > longest {
		return fmt.Errorf("--last is %s: expected between 5m and 24h", o.last)
	}
	f, err := o.follow(ctx)
	if err != nil {
		return err
	}
	server, err := live.Listen(ctx, int(o.port), every, f.source(ctx))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "The dashboard of %s is served at %s\nCtrl-C ends it.\n", f.where, server.URL()); err != nil {
		return err
	}
	go f.run(ctx)
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-server.Failed():
		return err
	}
}

// follow begins to follow the cluster of the flags.
func (o *options) follow(ctx context.Context) (*follower, error) {
	namespace, err := o.cluster.Namespace()
	if err != nil {
		return nil, err
	}
	api, err := o.cluster.Client()
	if err != nil {
		return nil, err
	}
	at, err := o.cluster.Config()
	if err != nil {
		return nil, err
	}
	reader, err := newReader(ctx, api, at, namespace)
	if err != nil {
		return nil, err
	}
	f := &follower{api: api, reader: reader, namespace: namespace, window: o.last, notes: reader.notes}
	f.where = strings.TrimPrefix(at.Host, "https://") + ", " + cmp.Or(namespace, "all namespaces")
	if namespace != "" {
		f.where = strings.TrimPrefix(at.Host, "https://") + ", namespace " + namespace
	}
	if f.manager, err = o.prometheus.Manager(ctx, api); err != nil {
		return nil, err
	}
	f.questions = questions{namespace: namespace, window: max(time.Minute, f.manager.Config.MetricsWindow)}
	switch found, err := o.prometheus.Find(ctx, api, o.cluster); {
	case err == nil:
		f.prometheus = found
	case o.prometheus.Given():
		return nil, err
	default:
		f.notes = append(f.notes, fmt.Sprintf("load and latencies are not known: %v", err))
	}
	return f, f.begin(ctx, time.Now())
}
