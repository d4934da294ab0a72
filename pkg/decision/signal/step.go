package signal

import (
	"cmp"
	"slices"

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
func (v *Variant) Maximum() contract.Finding {
	if v.Policy.MaxOf != "" {
		return contract.SaysMaximumOf.With(v.Policy.MaxOf, v.Policy.Max)
	}
	return contract.SaysMaximum.With(v.Policy.Max)
}

// Fact records what a condition reports, once.
func (v *Variant) Fact(reason contract.Reason, detail contract.Finding) {
	known := func(f contract.Fact) bool { return f.Reason == reason && f.Detail.Equal(detail) }
	if !slices.ContainsFunc(v.Plan.Facts, known) {
		v.Plan.Facts = append(v.Plan.Facts, contract.Fact{Reason: reason, Detail: detail})
	}
}

// Settle records a fact that is also the reason of the plan as it stands.
func (v *Variant) Settle(reason contract.Reason, detail contract.Finding) {
	v.Fact(reason, detail)
	v.Plan.Reason, v.Plan.Message = reason, detail
}

// Step records what a stage made of the variant's replicas. A stage that changes
// the number also gives the plan its reason, unless it only shortens a change that
// it lets pass: then the reason for the change stands, and the message says both.
func (v *Variant) Step(stage contract.Stage, after int, reason contract.Reason, detail contract.Finding) {
	current := v.In.Current
	shortened := v.Plan.Reason != "" && cmp.Compare(after, current)*cmp.Compare(v.Target, current) > 0
	switch {
	case after == v.Target && v.Plan.Reason != "":
	case shortened:
		v.Plan.Message = v.Plan.Message.And(detail)
	default:
		v.Plan.Reason, v.Plan.Message = reason, detail
	}
	v.Tell(contract.Step{Stage: stage, Before: v.Target, After: after, Reason: reason, Detail: detail})
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

// Note records a step that changes nothing and gives no reason.
func (v *Variant) Note(stage contract.Stage, reason contract.Reason, detail contract.Finding) {
	v.Tell(contract.Step{Stage: stage, Before: v.Target, After: v.Target, Reason: reason, Detail: detail})
}

// Hold records a step that changes nothing, and is why nothing changes: the plan gets its reason,
// and what its message said before comes after it.
func (v *Variant) Hold(stage contract.Stage, reason contract.Reason, detail contract.Finding) {
	v.Note(stage, reason, detail)
	v.Plan.Reason, v.Plan.Message = reason, detail.And(v.Plan.Message)
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
func (m *Model) Note(stage contract.Stage, reason contract.Reason, detail contract.Finding) {
	Each(m.Variants, func(v *Variant) { v.Note(stage, reason, detail) })
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
