package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// ErrInterrupted says that the user ended the replay early.
var ErrInterrupted = errors.New("interrupted")

var long = `Replay a trace of requests under several scaling policies, in virtual time. The output has
the cost of each policy, and the share of requests that met the SLO, the targets
for TTFT and ITL. This autoscaler decides with the code of the manager, pods are placed with the code
of the scheduler, and other autoscalers follow their published rules. To replay a day takes
seconds to minutes.

The trace is a file, or synthetic:NAME. A file is plain CSV with the first line
time,input_tokens,output_tokens, or plain JSON lines with these names. The time is in seconds,
or a time such as 2026-11-22T18:15:46Z. The published files of the Azure LLM inference traces
(CSV), of Mooncake (JSON lines) and of ServeGen (its rate file, with the clients and lengths
files beside it) can be read too.

The scenario has the nodes, the models, the variants with their latencies and prices, and the
settings of the autoscaler. Without --scenario a built-in one is used. --print-scenario prints
it, and explains every key. With --from-cluster, nodes and variants come from a live cluster,
which is only read.

With --from-prometheus, the past of one of your models is replayed. Each minute of the trace
has the number of requests that the servers counted, and their lengths. The seed draws the
arrival of each request within its minute. A variant without a profile gets one from its own
metrics of that time, like the manager learns it. Without such metrics the profile comes from
another variant, scaled, or from the published figures of the model and the devices. Notes say
which. If a model has no VariantAutoscaling objects, those that kubectl wva adopt would write
for its Deployments are used. The trace is written to a file.

Every cost is also a multiple of the bound: in each minute, the least price of its load when
there may be parts of replicas. It is an estimate by the latencies of the scenario, and a
policy that misses the SLO in some minutes can cost less.

Policies:
  capacity-only  this autoscaler, sizing by saturation
  hybrid         this autoscaler, sizing for the SLO too
  static:N       always N replicas of the cheapest variant
  peak           the smallest static fleet that meets the SLO on this very trace, found by
                 hindsight: a reference, not a rival. Other variants and mixes are tried if the
                 cheapest variant is not enough. A * marks a fleet that does not meet the
                 SLO, because none that was tried does
  hpa:rps=N      HorizontalPodAutoscaler on requests per second, N for each replica
  hpa:intok=N    the same on prompt tokens per second
  hpa:inflight=N the same on running and waiting requests
  hpa:queue      the same on waiting requests, 5 for each replica
  hpa:kv         the same on the used share of the KV cache, 0.8
  keda           KEDA, which polls every 30 s, and its HorizontalPodAutoscaler on the queue
For each model, static, hpa and keda scale one variant: the one that costs least per request.
keda adds up to 100 replicas, the others have no limit. None exceeds what empty nodes would
hold, unless the variant has its own bound.

Settings follow the name, as in hpa:rps=4.5,down=60s,max=40 or hybrid:down=120s. An unknown
setting is an error that lists the known ones.
  capacity-only, hybrid
              down and up: the stabilization windows of all variants; every setting of the
              manager that affects decisions, in lower case or by the end of its name
              (horizon=10m); the saturation thresholds
  hpa, keda   the trigger with its target: rps, intok (prompt tokens per second), inflight,
              queue or kv; down, up, min, max, tolerance; window: time over which rates are taken;
              keda alone: polling, and with min=0 cooldown and activation
  hpa, keda and static
              variant: the one that is scaled; split: fixed replicas of other variants, as in
              hpa:rps=4,variant=dear,split=cheap:4. A fixed fleet of several variants is
              static:split=cheap:4+dear:2
With several models, each has its own autoscaler. A number may then have one part for each
model, with + between the parts, in the order of the scenario (hpa:rps=4.5+0.8). variant names
one variant of each model.

Synthetic traces:`

const examples = `  # A service's day, with every policy
  kubectl wva replay --trace synthetic:diurnal

  # A recorded hour, every request twenty times, two policies, two start-up times
  kubectl wva replay --trace AzureLLMInferenceTrace_conv.csv --rate 20 --policy hybrid,hpa:queue --startup 60s,300s

  # A HorizontalPodAutoscaler on requests per second, at two targets
  kubectl wva replay --trace synthetic:diurnal --policy hpa:rps=3.4,down=120s,hpa:rps=3.8,down=120s

  # The first ten minutes, as a page for the browser
  kubectl wva replay --trace AzureLLMInferenceTrace_conv.csv --rate 20 --duration 10m --policy hybrid --html replay.html

  # Your own nodes, variants and prices
  kubectl wva replay --print-scenario > scenario.yaml
  kubectl wva replay --trace yesterday.csv --scenario scenario.yaml

  # Two models that share a cluster, with requests of their own
  kubectl wva replay --scenario two-models --cluster busy-60

  # What yesterday would have been, on the nodes and variants of the cluster
  kubectl wva replay --from-prometheus http://localhost:9090 --model llama-8b --last 24h --slo-ttft 2500 --slo-itl 50

  # The nodes and variants of a live cluster, for a script
  kubectl wva replay --trace yesterday.csv --from-cluster -A -o json | jq '.[] | {policy, attainment, cost}'`

// options are what the command line says.
type options struct {
	live *cluster.Flags

	trace  string
	rate   float64
	spread time.Duration
	// prompts asks the trace what prompts begin with.
	prompts  bool
	from     time.Duration
	duration time.Duration

	scenario string
	prices   string
	cluster  string
	print    bool

	policies []string
	startups []time.Duration
	seed     uint64

	output string
	html   string

	lookback

	fromCluster bool
	names       string
	namespace   string
	sloTTFT     float64
	sloITL      float64
}

// The forms of the output.
var outputs = []string{"table", "json"}

// newOptions are those of a command line that says nothing.
func newOptions(flags *cluster.Flags) *options {
	return &options{live: flags, rate: 1, startups: []time.Duration{time.Minute}, policies: standardPolicies(),
		lookback: lookback{last: usualLast, servers: servers{}, now: time.Now}}
}

// NewCommand is the command; flags say which cluster is meant by --from-cluster.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := newOptions(flags)
	command := &cobra.Command{
		Use:          "replay --trace FILE|synthetic:NAME | --scenario NAME | --from-prometheus URL --model ID",
		Short:        "Try scaling policies on a trace of requests, in virtual time",
		Long:         long + synthetic(),
		Example:      examples,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx, command)
		},
	}
	o.add(command)
	return command
}

// synthetic are the synthetic traces, one on each line, and the scenarios.
func synthetic() string {
	var b strings.Builder
	for _, e := range workload.Examples() {
		fmt.Fprintf(&b, "\n  %-7s  %s", e.Name, e.Description)
	}
	b.WriteString("\n\nScenarios with requests of their own (--scenario NAME):")
	for _, e := range scenario.Examples() {
		fmt.Fprintf(&b, "\n  %-13s  %s", e.Name, e.Description)
	}
	return b.String()
}

// standardPolicies are all but those that need a number.
func standardPolicies() []string {
	var names []string
	for _, name := range replay.PolicyNames() {
		if replay.CheckPolicy(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

func (o *options) add(command *cobra.Command) {
	f := command.Flags()
	f.SortFlags = false
	f.StringVar(&o.trace, "trace", "", "Requests: a file, or synthetic:NAME. Without it the scenario's own requests, if it has any.")
	f.Var((*number)(&o.rate), "rate", "Send every request this many times; below 1 only that share of them. Time is not compressed.")
	f.Var((*span)(&o.spread), "rate-spread", "With --rate: time around a request within which its copies arrive, from 1s to 1h; without it that of the scenario, else a minute. With 1s the copies come as a burst, in the second of their request.")
	f.Var((*span)(&o.from), "from", "Leave out what arrives before this time of the trace.")
	f.Var((*span)(&o.duration), "duration", "Length of the part that is replayed; without it all.")
	f.StringVar(&o.scenario, "scenario", "", "Scenario file (YAML), or the name of a built-in one. With --from-cluster it adds what a cluster does not have, such as profiles.")
	f.StringVar(&o.prices, "prices", "", "Price list of the scenario; without it the one that the scenario names.")
	f.StringVar(&o.cluster, "cluster", "", "Cluster of the scenario; without it the one that the scenario names. A live one is chosen with --context.")
	f.BoolVar(&o.print, "print-scenario", false, "Only print a built-in scenario, the default one or that of --scenario, with an explanation of every key.")
	f.StringSliceVar(&o.policies, "policy", o.policies, "Policies with their settings, with commas between them. The bound is always computed.")
	f.Var((*spans)(&o.startups), "startup", "Mean time from the placement of a replica on its node until it serves; several with commas between them.")
	f.Uint64Var(&o.seed, "seed", 1, "Seed of every random number: the same seed and inputs give the same bytes.")
	f.StringVarP(&o.output, "output", "o", outputs[0], "Form of the output: "+strings.Join(outputs, ", ")+".")
	f.StringVar(&o.html, "html", "", "Also write a page with charts to this file; it opens without a network.")
	f.BoolVar(&o.fromCluster, "from-cluster", false, "Take the nodes, what other pods hold on them, and the variants of the namespace (with -A of all) from a live cluster.")
	o.live.AddAll(command)
	f.StringVar(&o.namespace, "manager-namespace", "", "With --from-cluster or --from-prometheus: namespace of the manager and its ConfigMaps; without it the manager is looked for in all.")
	f.StringVar(&o.names, "accelerator-names", "", "With --from-cluster or --from-prometheus: ConfigMap (NAMESPACE/NAME) with names of accelerators; without it the manager's, if there is one.")
	f.Var((*number)(&o.sloTTFT), "slo-ttft", "With --from-cluster or --from-prometheus: TTFT target of the SLO in milliseconds (time to first token), where no service class says it.")
	f.Var((*number)(&o.sloITL), "slo-itl", "With --from-cluster or --from-prometheus: ITL target of the SLO in milliseconds (mean time per further token), where no service class says it.")
	o.addLookback(command)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(completions(outputs), cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(completions(standardPolicies()), cobra.ShellCompDirectiveNoFileComp))
}

func completions(words []string) []cobra.Completion {
	made := make([]cobra.Completion, len(words))
	copy(made, words)
	return made
}

// run does what the command line says.
func (o *options) run(ctx context.Context, command *cobra.Command) error {
	if o.print {
		return printScenario(command.OutOrStdout(), o.scenario)
	}
	j, err := o.prepare(ctx, command)
	if err != nil {
		return err
	}
	return j.run(ctx)
}
