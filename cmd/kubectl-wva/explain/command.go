package explain

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const long = `Explain the last decision about a variant: the load, what a replica serves, the number of
replicas after every stage, what settled it (a limit, or else the demand), the next best mix of
replicas, where replicas fit, the mode, the SLO, and recent events.

Everything but the events is from the status of the object; the mode may be from the settings of
the manager. The autoscaler writes the status when a number, a reason or a condition changes. So
as long as the autoscaler runs, an old decision still holds.

With --reason it says what a reason means and what to do about it. That needs no cluster.`

const examples = `  # A variant of the current namespace
  kubectl wva explain llama-8b-h100

  # What to do about a reason
  kubectl wva explain --reason NoSlots

  # The steps, for a script
  kubectl wva explain llama-8b-h100 -n chat -o json | jq '.decision.steps'`

// mostEvents is how many events are shown.
const mostEvents = 10

// NewCommand is the command, for the cluster of the flags.
func NewCommand(flags *cluster.Flags) *cobra.Command {
	var form output.Form
	var reason, managerNamespace string
	command := &cobra.Command{
		Use:     "explain VARIANTAUTOSCALING | --reason REASON",
		Short:   "Explain the last decision about a variant",
		Long:    long,
		Example: examples,
		Args: func(command *cobra.Command, names []string) error {
			if reason != "" {
				return cobra.NoArgs(command, names)
			}
			return cobra.ExactArgs(1)(command, names)
		},
		ValidArgsFunction: flags.CompleteVariants,
		RunE: func(command *cobra.Command, names []string) error {
			if reason != "" {
				text, err := entry(reason)
				if err == nil {
					_, err = io.WriteString(command.OutOrStdout(), text)
				}
				return err
			}
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
				output.Note(command.ErrOrStderr(), fmt.Sprint("the events are not known: ", err))
			}
			modes, notes := installation.FindModes(ctx, api, managerNamespace)
			account := AccountOf(object, modes, events)
			if account.Variant.Mode == "" && len(notes) > 0 {
				output.Note(command.ErrOrStderr(), "the mode is not known: "+strings.Join(notes, "; "))
			}
			if form.ForPrograms() {
				return form.Write(command.OutOrStdout(), account)
			}
			return account.Text(command.OutOrStdout(), time.Now())
		},
	}
	form.Add(command, "text", output.JSON, output.YAML)
	command.Flags().StringVar(&reason, "reason", "", "Say what this reason means and what to do, instead of explaining a variant.")
	command.Flags().StringVar(&managerNamespace, "manager-namespace", "", "Namespace of the manager; without it the manager is looked for in all.")
	_ = command.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasonNames(), cobra.ShellCompDirectiveNoFileComp))
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
