package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const long = `Compare the replicas that an object wanted with those that were there, since the object was
created: replicas, cost, saturated time and, where the model has an SLO, the share of its requests
that met it. Use it for objects with actuation "Off", before
you switch them to Scale.

Both numbers of replicas come from the manager's metrics wva_desired_replicas and
wva_current_replicas, in Prometheus. The line "was there" counts as saturated while there were
fewer replicas than the decision wanted. The line "this object" counts as saturated while
replicas that it would have asked for would still have been starting (--startup).

The share that met the SLO is measured for the line "was there", and estimated for "this object":
no request counts as met in saturated time, and with fewer replicas than were there no more than
the share that decisions are sized for.

The result is an estimate: ignore small differences. The decisions saw the queues of the
replicas that were there. With other replicas, the queues would have been different.`

const examples = `  # Since the object was created
  kubectl wva shadow llama-8b

  # The last day, with replicas that take five minutes to start
  kubectl wva shadow llama-8b --since 24h --startup 5m

  # From a Prometheus that is forwarded to this machine, for a script
  kubectl wva shadow llama-8b --prometheus http://localhost:9090 -o json`

const (
	// finest is the shortest time between two samples, and mostSamples what Prometheus
	// gives for one series.
	finest      = 15 * time.Second
	mostSamples = 10000
	// usualStartup is how long a replica takes to serve when nobody says it.
	usualStartup = 2 * time.Minute
)

type options struct {
	cluster    *cluster.Flags
	prometheus prometheus.Flags
	form       output.Form
	since      time.Duration
	startup    time.Duration
}

// Result is what the command answers.
type Result struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Actuation v1alpha1.Actuation `json:"actuation"`
	From      time.Time          `json:"from"`
	To        time.Time          `json:"to"`
	// CostPerHour is the price of one replica; nil where nobody gave one.
	CostPerHour *float64 `json:"costPerReplicaHour,omitempty"`
	// Objective is the share of the requests that is to meet the SLO; 0 where the model has none.
	Objective float64 `json:"objective,omitempty"`
	Comparison
}

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := &options{cluster: flags}
	command := &cobra.Command{
		Use:               "shadow VARIANTAUTOSCALING",
		Short:             "Compare the replicas that an object wanted with those that were there",
		Long:              long,
		Example:           examples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: flags.CompleteVariants,
		RunE: func(command *cobra.Command, names []string) error {
			return o.run(command.Context(), names[0], command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.form.Add(command, output.Table, output.JSON, output.YAML)
	command.Flags().DurationVar(&o.since, "since", 0, "How far back to look, at most to the creation of the object, which is the default.")
	command.Flags().DurationVar(&o.startup, "startup", usualStartup, "Time from the request for a replica until it serves.")
	o.prometheus.Add(command)
	return command
}

func (o *options) run(ctx context.Context, name string, out, notes io.Writer) error {
	switch {
	case o.since < 0:
		return fmt.Errorf("--since is %s: expected a duration above 0, such as 24h", o.since)
	case o.startup < 0:
		return fmt.Errorf("--startup is %s: expected a duration of at least 0, such as 2m", o.startup)
	}
	api, err := o.cluster.Client()
	if err != nil {
		return err
	}
	object, err := o.cluster.Variant(ctx, api, name)
	if err != nil {
		return err
	}
	server, err := o.prometheus.Find(ctx, api, o.cluster)
	if err != nil {
		return err
	}
	cost, said, err := server.Manager.Cost(ctx, api, object)
	if err != nil {
		return err
	}
	for _, note := range append(server.Manager.Notes, said...) {
		output.Note(notes, note)
	}
	r := &Result{Namespace: object.Namespace, Name: object.Name, Actuation: object.Spec.Actuation, CostPerHour: cost, To: time.Now()}
	r.From = object.CreationTimestamp.Time
	if o.since > 0 && r.To.Sub(r.From) > o.since {
		r.From = r.To.Add(-o.since)
	}
	samples, step, err := read(ctx, server, object, r.From, r.To)
	if err != nil {
		return err
	}
	first := r.To.Add(-time.Duration(len(samples)-1) * step)
	if r.Objective, err = readMet(ctx, server, object, samples, first, r.To, step); err != nil {
		return err
	}
	r.Comparison = Compare(samples, step, o.startup, cost, r.Objective)
	if r.Known == 0 {
		return errors.New("there are no samples of wva_desired_replicas and wva_current_replicas for it in that time: if the object is new, wait for two scrapes; else see that Prometheus scrapes the manager (its ServiceMonitor) and that the manager handles the object")
	}
	if o.form.ForPrograms() {
		return o.form.Write(out, r)
	}
	return r.text(out)
}

// read reads the samples of an object, and the time between them.
func read(ctx context.Context, server *prometheus.Server, object *v1alpha1.VariantAutoscaling, from, to time.Time) ([]Sample, time.Duration, error) {
	step := max(finest, (to.Sub(from)/mostSamples).Round(time.Second)+time.Second)
	if to.Sub(from)/finest <= mostSamples {
		step = finest
	}
	// The last sample is that of now.
	samples := make([]Sample, int(to.Sub(from)/step)+1)
	from = to.Add(-time.Duration(len(samples)-1) * step)
	there := make([]bool, len(samples))
	for _, m := range []struct {
		metric string
		set    func(i int, value float64)
	}{
		{"wva_desired_replicas", func(i int, value float64) { samples[i].Wanted, there[i] = value, true }},
		{"wva_current_replicas", func(i int, value float64) { samples[i].There, samples[i].Known = value, there[i] }},
	} {
		// Several managers have the series for a moment when the leader changes.
		matrix, err := server.Range(ctx, "max("+prometheus.Of(m.metric, object.Namespace, object.Name)+")", from, to, step)
		if err != nil {
			return nil, 0, err
		}
		each(matrix, func(at time.Time, value float64) {
			if i := int(math.Round(float64(at.Sub(from)) / float64(step))); i >= 0 && i < len(samples) {
				m.set(i, value)
			}
		})
	}
	return samples, step, nil
}

func each(matrix model.Matrix, do func(at time.Time, value float64)) {
	for _, series := range matrix {
		for _, pair := range series.Values {
			if value := float64(pair.Value); !math.IsNaN(value) && !math.IsInf(value, 0) {
				do(pair.Timestamp.Time(), value)
			}
		}
	}
}

// text writes the result for people.
func (r *Result) text(out io.Writer) error {
	side := func(name string, s *Side) []string {
		cost := "no price"
		if s.Cost != nil {
			cost = fmt.Sprintf("%.2f", *s.Cost)
		}
		cells := []string{
			name, fmt.Sprintf("%.1f", s.ReplicaHours), fmt.Sprintf("%.1f", s.Mean), fmt.Sprintf("%.0f", s.Most), cost,
			span(s.Saturated), fmt.Sprint(s.Changes),
		}
		if r.Objective > 0 {
			cells = append(cells, s.Attainment.percent())
		}
		return cells
	}
	price := "without a price for a replica (spec.variantCost, or the price of its accelerator)"
	if r.CostPerHour != nil {
		price = fmt.Sprintf("at %.2f an hour for a replica", *r.CostPerHour)
	}
	if _, err := fmt.Fprintf(out, "%s/%s, the last %s, %s; samples cover %.0f %% of the time\n\n",
		r.Namespace, r.Name, duration.HumanDuration(r.To.Sub(r.From)), price, 100*r.Known); err != nil {
		return err
	}
	header := []string{"", "REPLICA HOURS", "MEAN", "MOST", "COST", "SATURATED", "CHANGES"}
	if r.Objective > 0 {
		header = append(header, "MET SLO")
	}
	err := output.Rows(out, header, [][]string{side("was there", &r.There), side("this object", &r.Object)})
	if text := r.verdict(); err == nil && text != "" {
		_, err = fmt.Fprintf(out, "\n%s\n", text)
	}
	if err != nil || r.Actuation == v1alpha1.ActuationOff {
		return err
	}
	_, err = fmt.Fprintf(out, "\nActuation is %s, so what was there follows the object's decisions.\n", r.Actuation)
	return err
}

func span(seconds float64) string {
	if seconds == 0 {
		return "0s"
	}
	return duration.HumanDuration(time.Duration(seconds * float64(time.Second)))
}
