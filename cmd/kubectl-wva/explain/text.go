package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/status"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// Text writes the account for people.
func (a *Account) Text(out io.Writer, now time.Time) error {
	w := &writer{out: out}
	a.head(w, now)
	if a.Decision != nil {
		a.sentences(w, now)
	}
	if a.Decision != nil && len(a.Decision.Steps) > 0 {
		w.line("")
		w.rows([]string{"STAGE", "BEFORE", "AFTER", "REASON", "DETAIL"}, steps(a.Decision.Steps))
	}
	if len(a.Problems) > 0 {
		w.line("")
		w.line("Not as it should be:")
		for _, line := range problems(a.Problems) {
			w.line("  %s", line)
		}
		w.line("What to do:")
		for _, reason := range reasonsOf(a.Problems) {
			w.line("  kubectl wva explain --reason %s", reason)
		}
	}
	w.line("")
	a.recent(w, now)
	return w.err
}

// reasonsOf are the reasons of conditions, each once.
func reasonsOf(conditions []metav1.Condition) (reasons []string) {
	for _, c := range conditions {
		if !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	return reasons
}

// problems are the conditions, one line for all that have the same message.
func problems(conditions []metav1.Condition) []string {
	var messages []string
	said := map[string][]string{}
	for _, c := range conditions {
		if said[c.Message] == nil {
			messages = append(messages, c.Message)
		}
		said[c.Message] = append(said[c.Message], fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason))
	}
	lines := make([]string, 0, len(messages))
	for _, message := range messages {
		lines = append(lines, strings.Join(said[message], ", ")+": "+message)
	}
	return lines
}

// recent shows the events.
func (a *Account) recent(w *writer, now time.Time) {
	if len(a.Events) == 0 {
		w.line("No recent events.")
		return
	}
	w.line("Recent events:")
	rows := make([][]string, 0, len(a.Events))
	for _, e := range a.Events {
		ago := output.Ago(e.Time.Time, now)
		if e.Count > 1 {
			ago += fmt.Sprintf(" (x%d)", e.Count)
		}
		rows = append(rows, []string{ago, e.Type, e.Reason, e.Message})
	}
	w.rows([]string{"AGO", "TYPE", "REASON", "MESSAGE"}, rows)
}

// head says what the variant is, what is there and what is wanted.
func (a *Account) head(w *writer, now time.Time) {
	v := &a.Variant
	w.line("%s/%s: %s on %s, behind %s, actuation %s", v.Namespace, v.Name, v.Model, cmp.Or(v.Shape(), "an accelerator that is not known"), v.Target, v.Actuation)
	if v.Decided == nil {
		w.line("Nothing was decided yet.")
		if v.State == status.Unseen {
			w.line("No autoscaler has looked at it: does one run, and is it the instance of the object's label %s?", v1alpha1.LabelControllerInstance)
		}
		return
	}
	wants := fmt.Sprintf("The last decision wants %s, and %s there.", replicas(v.Desired), areThere(v.Current))
	switch {
	case a.Applied:
	case v.Actuation == v1alpha1.ActuationOff:
		wants += " Actuation is Off, so nothing is written."
	case v.Actuation == v1alpha1.ActuationMetric:
		wants += " Who follows the metric wva_desired_replicas has not acted yet."
	default:
		wants += " That was not written to the target."
	}
	w.line("%s", wants)
	when := fmt.Sprintf("It is from %s ago; the autoscaler writes a later one when it differs.", output.Ago(v.Decided.Time, now))
	if a.LastScale != nil {
		when += fmt.Sprintf(" The autoscaler last changed the replicas %s ago.", output.Ago(a.LastScale.Time, now))
	}
	w.line("%s", when)
}

func replicas(n *int32) string {
	switch {
	case n == nil:
		return "a number of replicas that is not known"
	case *n == 1:
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", *n)
}

func areThere(n *int32) string {
	switch {
	case n == nil:
		return "it is not known how many are"
	case *n == 1:
		return "1 is"
	}
	return fmt.Sprintf("%d are", *n)
}

// sentences say why.
func (a *Account) sentences(w *writer, now time.Time) {
	d := a.Decision
	why := d.Reason + ": " + cmp.Or(d.Message, "no detail")
	if a.Meaning != "" && !same(a.Meaning, d.Message) {
		why += ". " + a.Meaning
	}
	settled := cmp.Or(d.Binds, "not known")
	if stage, detail, cut := strings.Cut(settled, ": "); cut && same(detail, d.Message) {
		settled = stage + ", as above"
	}
	if len(d.Steps) == 0 {
		settled = "the variant took no part in the last decision"
	}
	w.line("")
	w.rows(nil, [][]string{
		{"Why", why},
		{"Load", a.then(a.Load, now)},
		{"Supply", a.then(a.Supply, now)},
		{"Settled by", settled},
		{"Next best", cmp.Or(d.Alternative, "none")},
		{"Placement", placement(a.Placement)},
		{"Mode", a.mode()},
		{"SLO", a.slo()},
	})
}

// then is what was seen when the decision was made, with how long ago that is.
func (a *Account) then(what string, now time.Time) string {
	switch {
	case what == "":
		return "not known"
	case a.Variant.Decided == nil:
		return what
	}
	return fmt.Sprintf("%s (%s ago)", what, output.Ago(a.Variant.Decided.Time, now))
}

// same reports whether two sentences are one, with or without its full stop.
func same(a, b string) bool { return strings.TrimSuffix(a, ".") == strings.TrimSuffix(b, ".") }

// mode is that of the manager, and what the last decision was sized by.
func (a *Account) mode() string {
	mode := cmp.Or(string(a.Variant.Mode), "not known")
	if a.SizedBy != "" {
		mode += "; " + a.SizedBy
	}
	return mode
}

// slo says which latency target the model has.
func (a *Account) slo() string {
	switch {
	case a.ServiceClass == "":
		return "none, so nothing keeps the latency low: no service class counts for the model"
	case a.Variant.Mode == installation.CapacityOnly:
		return "that of service class " + a.ServiceClass + ", which counts in hybrid mode alone"
	}
	return "that of service class " + a.ServiceClass
}

// placement says what a replica takes and where replicas stand.
func placement(p *v1alpha1.Placement) string {
	if p == nil {
		return "not known"
	}
	var parts []string
	if p.Shape != nil {
		parts = append(parts, "a replica takes "+shape(p.Shape))
	}
	switch {
	case p.Slots == nil:
		parts = append(parts, "how many more fit is not known")
	case p.SlotsBound != "":
		parts = append(parts, fmt.Sprintf("at most %d more fit (%s)", *p.Slots, p.SlotsBound))
	default:
		parts = append(parts, fmt.Sprintf("%d more fit", *p.Slots))
	}
	for _, state := range []struct {
		count *int32
		what  string
	}{{p.Pending, "not serving yet"}, {p.Unschedulable, "without a node"}, {p.Unplaced, "that fit nowhere now"}} {
		if state.count != nil && *state.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", *state.count, state.what))
		}
	}
	return strings.Join(parts, "; ")
}

func shape(s *v1alpha1.Shape) string {
	what := cmp.Or(s.Device().String(), "an unknown accelerator")
	switch {
	case s.Devices == nil:
	case *s.Devices == 0:
		what = "no accelerator"
	default:
		what = fmt.Sprintf("%dx%s", *s.Devices, what)
	}
	if s.Pods != nil && *s.Pods > 1 {
		what = fmt.Sprintf("%d pods of %s", *s.Pods, what)
	}
	if s.CPU != nil {
		what += ", " + s.CPU.String() + " CPU"
	}
	if s.Memory != nil {
		what += ", " + s.Memory.String() + " memory"
	}
	return what
}

func steps(all []v1alpha1.DecisionStep) [][]string {
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		rows = append(rows, []string{s.Stage, fmt.Sprint(s.Before), fmt.Sprint(s.After), s.Reason, s.Detail})
	}
	return rows
}

// writer keeps the first error.
type writer struct {
	out io.Writer
	err error
}

func (w *writer) line(format string, arguments ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.out, report.Printable(fmt.Sprintf(format, arguments...)))
	}
}

func (w *writer) rows(header []string, rows [][]string) {
	if w.err == nil {
		w.err = output.Rows(w.out, header, rows)
	}
}
