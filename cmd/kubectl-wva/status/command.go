package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const long = `Show all variants at a glance, one line for each:

  SHAPE            what one replica takes, such as 2xH100
  ACTUATION        Scale, Metric or Off
  MODE             hybrid (sized for the SLO too) or capacity-only (sized by saturation alone:
                   the model has no SLO, or the manager is told so)
  CURRENTREPLICAS  replicas that the target asks for; not all of them may serve yet
  OPTIMIZED        replicas that the last decision wants
  PENDING          replicas that exist and do not serve yet
  FIT              how many more fit on the cluster; "<=" is an upper bound
  STATE            Ready, or the reason of the condition to act on first
  REASON           reason of the last decision
  DECIDED          time since the status last changed, which is long while the load is steady

"-" is unknown. CURRENTREPLICAS and OPTIMIZED are the columns of kubectl get va with these names.
The SLO is the latency that the service class of the model asks for. The mode is that of the
settings of the manager, which it reads when it starts, or that of the last decision. If an
object was stored under an earlier kind and does not fit the present one, its state is Unreadable.
Lines below the table say what is wrong with the variants that are not Ready.

-o wide also shows the target, and the load and the mean latencies of the last minutes, which
come from Prometheus.`

const examples = `  # The variants of the current namespace
  kubectl wva status

  # All variants, and every change from now on
  kubectl wva status -A --watch

  # With load and latencies, from a Prometheus that is forwarded to this machine
  kubectl wva status -o wide --prometheus http://localhost:9090

  # The names of the variants that are not ready
  kubectl wva status -A -o json | jq -r '.[] | select(.state != "Ready") | .name'`

// wide is the form with what Prometheus knows.
const wide = "wide"

type options struct {
	cluster    *cluster.Flags
	prometheus prometheus.Flags
	form       output.Form
	watch      bool
}

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	o := &options{cluster: flags}
	command := &cobra.Command{
		Use:     "status",
		Short:   "Show all variants at a glance",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.form.Add(command, output.Table, wide, output.JSON, output.YAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "Show every change until interrupted; with -o json or yaml one document for each.")
	flags.AddAll(command)
	o.prometheus.Add(command)
	return command
}

func (o *options) run(ctx context.Context, out, complaints io.Writer) error {
	namespace, err := o.cluster.Namespace()
	if err != nil {
		return err
	}
	api, err := o.cluster.Client()
	if err != nil {
		return err
	}
	if o.form.String() == wide && o.watch {
		return errors.New("--watch does not go with -o wide, whose load and latencies change all the time: expected one of them")
	}
	list, err := cluster.Variants(ctx, api, namespace)
	if err != nil {
		return err
	}
	modes, notes := installation.FindModes(ctx, api, o.prometheus.ManagerNamespace())
	rows := rowsOf(list, modes)
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Mode == "" && r.State != Unreadable }) && len(notes) > 0 {
		output.Note(complaints, "the mode is not known: "+strings.Join(notes, "; "))
	}
	for _, note := range modes.Orphans(list.Items) {
		output.Note(complaints, note)
	}
	if o.form.String() == wide {
		if err := o.measure(ctx, api, namespace, rows); err != nil {
			output.Note(complaints, fmt.Sprint("load and latencies are not known: ", err))
		}
	}
	s := &screen{form: &o.form, out: out, all: namespace == "", modes: modes}
	switch {
	case o.watch:
		return s.follow(ctx, api, namespace, list)
	case len(rows) == 0 && !o.form.ForPrograms():
		where := "in any namespace"
		if namespace != "" {
			where = "in namespace " + namespace + "; -A shows all namespaces"
		}
		_, err = fmt.Fprintln(complaints, "no VariantAutoscaling objects", where)
		return err
	}
	return s.show(rows)
}

func rowsOf(list *v1alpha1.VariantAutoscalingList, modes *installation.Modes) []Row {
	rows := make([]Row, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, RowOf(&list.Items[i], modes))
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return rows
}

// measure fills in what Prometheus knows of each row.
func (o *options) measure(ctx context.Context, api client.Client, namespace string, rows []Row) error {
	server, err := o.prometheus.Find(ctx, api, o.cluster)
	if err != nil {
		return err
	}
	byName, silent := map[types.NamespacedName]*Measured{}, true
	for i := range rows {
		rows[i].Measured = &Measured{}
		byName[types.NamespacedName{Namespace: rows[i].Namespace, Name: rows[i].Name}] = rows[i].Measured
	}
	for _, m := range []struct {
		metric string
		factor float64
		field  func(*Measured) **float64
	}{
		{"inferno_current_load", 1.0 / 60, func(m *Measured) **float64 { return &m.Load }},
		{"inferno_ttft_average", 1, func(m *Measured) **float64 { return &m.TTFT }},
		{"inferno_itl_average", 1, func(m *Measured) **float64 { return &m.ITL }},
	} {
		found, err := server.Now(ctx, prometheus.Of(m.metric, namespace, ""))
		if err != nil {
			return err
		}
		silent = silent && len(found) == 0
		for _, sample := range found {
			key := types.NamespacedName{Namespace: prometheus.NamespaceOf(sample.Metric), Name: string(sample.Metric["variant_name"])}
			if measured := byName[key]; measured != nil {
				value := float64(sample.Value) * m.factor
				*m.field(measured) = &value
			}
		}
	}
	if silent && len(rows) > 0 {
		return whySilent(ctx, server, namespace)
	}
	return nil
}

// whySilent says why Prometheus has no load and no latency of any variant; nil where that is what
// the manager has to say.
func whySilent(ctx context.Context, server *prometheus.Server, namespace string) error {
	for _, m := range []struct{ metric, why string }{
		{"wva_desired_replicas", "Prometheus has no metrics of the manager about these variants: it must scrape the manager, as docs/tasks/hpa-and-keda.md says"},
		{"inferno_desired_replicas", "the manager serves them with METRICS_PUBLISHED_NAMES=true (wva.metrics.publishedNames) alone"},
	} {
		found, err := server.Now(ctx, prometheus.Of(m.metric, namespace, ""))
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return errors.New(m.why)
		}
	}
	return nil
}

// screen is where rows are shown.
type screen struct {
	form *output.Form
	out  io.Writer
	all  bool
	// modes are those of the managers.
	modes *installation.Modes
}

// show shows all rows, and below them what is wrong.
func (s *screen) show(rows []Row) error {
	if s.form.ForPrograms() {
		return s.form.Write(s.out, rows)
	}
	now := time.Now()
	isWide := s.form.String() == wide
	cells := make([][]string, 0, len(rows))
	for i := range rows {
		cells = append(cells, rows[i].cells(s.all, isWide, now))
	}
	if err := output.Rows(s.out, header(s.all, isWide), cells); err != nil {
		return err
	}
	for i := range rows {
		if r := &rows[i]; r.Message != "" {
			if _, err := fmt.Fprintf(s.out, "%s/%s: %s: %s\n", r.Namespace, r.Name, r.State, r.Message); err != nil {
				return err
			}
		}
	}
	return nil
}
