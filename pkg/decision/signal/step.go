package signal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// AsFound is the variant as it counts: where the target is not there, or another object
// counts its replicas, it has none. What a replica showed before it served again others do
// since, so that it counts for nothing.
func AsFound(v *contract.Variant) *contract.Variant {
	found := *v
	if !v.Exists() {
		found.Current, found.Ready, found.Starting, found.Replicas, found.Rolling, found.Surge = 0, 0, nil, nil, false, 0
		return &found
	}
	old := func(p contract.Replica) bool { return p.Served.Present && p.Served.Time.Before(p.Since) }
	if !slices.ContainsFunc(v.Replicas, old) {
		return v
	}
	found.Replicas = slices.Clone(v.Replicas)
	for i, p := range found.Replicas {
		if old(p) {
			found.Replicas[i] = contract.Replica{Name: p.Name, Node: p.Node, Marked: p.Marked, Since: p.Since}
		}
	}
	return &found
}

// Bounded is n, but no more than maxReplicas.
func (v *Variant) Bounded(n int) int {
	if v.Policy.Max < 0 {
		return n
	}
	return min(v.Policy.Max, n)
}

// Maximum says what maxReplicas is, and whose where it is not the object's own.
func (v *Variant) Maximum() string {
	of := ""
	if v.Policy.MaxOf != "" {
		of = " of " + v.Policy.MaxOf
	}
	return fmt.Sprintf("maxReplicas%s is %d", of, v.Policy.Max)
}

// Fact records what a condition reports, once.
func (v *Variant) Fact(reason contract.Reason, format string, args ...any) {
	if f := (contract.Fact{Reason: reason, Detail: said(format, args)}); !slices.Contains(v.Plan.Facts, f) {
		v.Plan.Facts = append(v.Plan.Facts, f)
	}
}

// Settle records a fact that is also the reason of the plan as it stands.
func (v *Variant) Settle(reason contract.Reason, detail string) {
	v.Fact(reason, "%s", detail)
	v.Plan.Reason, v.Plan.Message = reason, detail
}

// Step records what a stage made of the variant's replicas. A stage that changes
// the number also gives the plan its reason, unless it only shortens a change that
// it lets pass: then the reason for the change stands, and the message says both.
func (v *Variant) Step(stage contract.Stage, after int, reason contract.Reason, format string, args ...any) {
	s := contract.Step{Stage: stage, Before: v.Target, After: after, Reason: reason, Detail: said(format, args)}
	current := v.In.Current
	shortened := v.Plan.Reason != "" && cmp.Compare(after, current)*cmp.Compare(v.Target, current) > 0
	switch {
	case after == v.Target && v.Plan.Reason != "":
	case shortened:
		v.Plan.Message = Joined(v.Plan.Message, s.Detail)
	default:
		v.Plan.Reason, v.Plan.Message = s.Reason, s.Detail
	}
	v.Tell(s)
	v.Target = after
}

// Tell records a step. Making room for all of them at once is a tenth of a round's memory less.
func (v *Variant) Tell(s contract.Step) {
	if v.Plan.Steps == nil {
		const usual = 12
		v.Plan.Steps = make([]contract.Step, 0, usual)
	}
	v.Plan.Steps = append(v.Plan.Steps, s)
}

// MostMessage is how long a message may become by another clause; the steps tell all.
const MostMessage = 120

// PerSecond is a rate with as many digits as tell a small one from none.
func PerSecond(rate capacity.Rate) string {
	const small, digits, bits = 0.1, 2, 64
	if rate < small {
		return strconv.FormatFloat(float64(rate), 'g', digits, bits)
	}
	return strconv.FormatFloat(float64(rate), 'f', digits, bits)
}

// Joined is the message with one more clause, where that says more and leaves it short.
func Joined(message, clause string) string {
	if strings.Contains(message, clause) || len(message)+len("; ")+len(clause) > MostMessage {
		return message
	}
	return message + "; " + clause
}

// Note records a step that changes nothing and gives no reason.
func (v *Variant) Note(stage contract.Stage, reason contract.Reason, format string, args ...any) {
	v.Tell(contract.Step{Stage: stage, Before: v.Target, After: v.Target, Reason: reason, Detail: said(format, args)})
}

// said is the text with its numbers; most have none, and the rest may be one text already.
func said(format string, args []any) string {
	switch {
	case len(args) == 0:
		return format
	case format == "%s":
		if text, is := args[0].(string); is {
			return text
		}
	}
	return fmt.Sprintf(format, args...)
}

// Each calls f for every one that the decision may change.
func Each[V interface{ Decides() bool }](all []V, f func(V)) {
	for _, v := range all {
		if v.Decides() {
			f(v)
		}
	}
}

// Note records the same step at each of these.
func (m *Model) Note(stage contract.Stage, reason contract.Reason, format string, args ...any) {
	detail := said(format, args)
	Each(m.Variants, func(v *Variant) { v.Note(stage, reason, "%s", detail) })
}

// Count adds up a number of them.
func Count[V any](all []V, of func(V) int) int {
	n := 0
	for _, v := range all {
		n += of(v)
	}
	return n
}

// Decides reports whether the decision may change the variant.
func (v *Variant) Decides() bool { return v.Managed }

// Total is how many replicas the model is to have.
func (m *Model) Total() int { return Count(m.Variants, func(v *Variant) int { return v.Target }) }

// Ready is the number of replicas that serve.
func (m *Model) Ready() int { return Count(m.Variants, func(v *Variant) int { return v.In.Ready }) }

// Asleep reports whether no target of the model asks for a replica.
func (m *Model) Asleep() bool {
	return Count(m.Variants, func(v *Variant) int { return v.In.Current }) == 0
}

// Plural is a count with its word.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

const (
	// MostNamed is how many replicas a text names.
	MostNamed = 3
)

// FewOf names some replicas and says how many others there are.
func FewOf(names []string) string {
	slices.Sort(names)
	if more := len(names) - MostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
