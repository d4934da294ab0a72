package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const long = `Explain the last decision about a variant: the load, what a replica serves, the number of
replicas after every stage, the limit that was reached, the next best alternative, where
replicas fit, and recent events.

Everything but the events is from the status of the object. The autoscaler writes the status
when a number, a reason or a condition changes. So as long as the autoscaler runs, an old
decision still holds.`

const examples = `  # A variant of the current namespace
  kubectl wva explain llama-8b-h100

  # The steps, for a script
  kubectl wva explain llama-8b-h100 -n chat -o json | jq '.decision.steps'`

// mostEvents is how many events are shown.
const mostEvents = 10

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	var form output.Form
	command := &cobra.Command{
		Use:               "explain VARIANTAUTOSCALING",
		Short:             "Explain the last decision about a variant",
		Long:              long,
		Example:           examples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: flags.CompleteVariants,
		RunE: func(command *cobra.Command, names []string) error {
			ctx := command.Context()
			api, err := flags.Client()
			if err != nil {
				return err
			}
			object, err := flags.Variant(ctx, api, names[0])
			if err != nil {
				return err
			}
			events, err := recent(ctx, api, object)
			if err != nil {
				_, _ = fmt.Fprintln(command.ErrOrStderr(), "note: the events are not known:", err)
			}
			account := AccountOf(object, events)
			if form.ForPrograms() {
				return form.Write(command.OutOrStdout(), account)
			}
			return account.Text(command.OutOrStdout(), time.Now())
		},
	}
	form.Add(command, "text", output.JSON, output.YAML)
	return command
}

// recent are the last events of an object, the oldest first.
func recent(ctx context.Context, api client.Reader, object *v1alpha1.VariantAutoscaling) ([]Event, error) {
	var list corev1.EventList
	err := api.List(ctx, &list, client.InNamespace(object.Namespace), client.MatchingFields{
		"involvedObject.kind": v1alpha1.Kind, "involvedObject.name": object.Name,
	})
	if err != nil {
		return nil, cluster.Advise(err, "list", "events", object.Namespace)
	}
	var events []Event
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.UID != "" && e.InvolvedObject.UID != object.UID {
			continue
		}
		events = append(events, eventOf(e))
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time.Time) })
	return events[max(0, len(events)-mostEvents):], nil
}

// eventOf reads an event of either API: they keep the time and the count in other fields.
func eventOf(e *corev1.Event) Event {
	shown := Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count, Time: e.LastTimestamp}
	if shown.Time.IsZero() {
		shown.Time = metav1.NewTime(e.EventTime.Time)
	}
	if e.Series != nil {
		shown.Count, shown.Time = e.Series.Count, metav1.NewTime(e.Series.LastObservedTime.Time)
	}
	return shown
}
