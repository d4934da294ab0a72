package decision

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// model is the working state of one model. Decide and see set its fields, each from what
// one stage returned; what the next round is to remember is set where it is found.
type model struct {
	in       *Model
	key      ModelKey
	variants []*variant
	// old is what was remembered, and next what will be.
	old, next  *ModelMemory
	promise    Promise
	saturation Saturation

	evidence evidence
	load     load
	demand   demand
	// lead is how long a new replica takes to serve, ahead the arrival rate that is
	// expected then, and sizeFor the one that replicas are sized for.
	lead           time.Duration
	ahead, sizeFor capacity.Rate
	// sized is set when sizing for the promised latency takes part, and rated when it is
	// known what a replica of any variant serves.
	sized, rated bool
	need         need
	// retries is set when it may be tried again what was too few before.
	retries bool
	// advisory is set where every variant is in mode Off: it is only looked at.
	advisory bool
}

// variant is the working state of one variant.
type variant struct {
	in     *Variant
	key    Key
	policy VariantPolicy
	plan   VariantPlan
	// priority is its model's.
	priority int
	// old is what was remembered, and next what will be.
	old, next *VariantMemory
	// managed is set when the decision may change this variant.
	managed bool
	// target is what it is to have, as far as the stages have come, and wanted the same
	// before behavior; needed is the part of that which the present load needs.
	target, wanted, needed int
	// fleet, odd, load and rate are what its replicas do, which are unlike the others, how loaded
	// they are, and what one of them serves; price is what one is compared by.
	fleet fleet
	odd   odd
	load  load
	rate  rate
	price capacity.Cost
	// kept is for how many of its replicas without a node room is kept, and nominated the room that
	// others make for more. Yields is how many of them go for a more important model at once.
	kept, yields int
	nominated    []nominated
	// scarceFor is the model that lacks the room of this one's replicas.
	scarceFor *model
	// anew is set when what was wanted before counts no more: somebody else changed the replicas,
	// or the last round is so long ago that nobody knows what was wanted since.
	anew bool
	// unfollowed is set where nobody made what mode Metric shows, for longer than that takes.
	unfollowed bool
}

// as is the model's name in what is told in a namespace: nobody is told names of another one.
func (m *model) as(namespace string) string {
	if m.key.Namespace == namespace {
		return m.key.ID
	}
	return "a model of another namespace"
}

// as is the same for a variant.
func (v *variant) as(namespace string) string {
	if v.key.Namespace == namespace {
		return v.key.Name
	}
	return "a variant of another namespace"
}

// begin makes the working state of a model. Where every variant is in mode Off they are
// planned for as if they were not, to be looked at.
func (r *round) begin(in *Model, memory *Memory) *model {
	m := &model{in: in, key: ModelKey{Namespace: in.Namespace, ID: in.ID}, variants: make([]*variant, len(in.Variants))}
	m.old, m.next = memory.OfModel(m.key), &ModelMemory{}
	m.saturation = r.policy.SaturationOf(m.key)
	m.promise = r.policy.PromiseTo(m.key)
	all := make([]variant, len(in.Variants))
	for i := range in.Variants {
		v := &in.Variants[i]
		key := Key{Namespace: in.Namespace, Name: v.Name}
		w := &all[i]
		*w = variant{in: v.asFound(), key: key, policy: r.policy.Variant(key), priority: m.promise.Priority, old: memory.OfVariant(key), next: &VariantMemory{}}
		if v.Request != nil {
			w.old = w.old.on(v.Request.Shape)
		}
		w.old = w.old.of(v.TargetUID)
		w.in = r.asShown(w)
		w.next.Hardware, w.next.TargetUID = w.old.Hardware, cmp.Or(v.TargetUID, w.old.TargetUID)
		w.target, w.wanted = w.in.Current, w.in.Current
		if !w.old.Sizing.Found.IsZero() {
			r.sized++
		}
		w.plan = VariantPlan{Key: key, Current: v.Current, Ready: v.Ready, Starting: len(v.Starting), Cost: v.Cost}
		for _, s := range v.Starting {
			if s.Unschedulable {
				w.plan.Unschedulable++
			}
		}
		if v.Request != nil {
			w.plan.Accelerator = v.Request.Shape.Accelerator
		}
		m.variants[i] = w
	}
	acts := func(v *variant) bool { return v.policy.Actuation != ActuationOff }
	m.advisory = !slices.ContainsFunc(m.variants, acts)
	for _, v := range m.variants {
		v.managed = m.advisory || acts(v)
	}
	return m
}

// admit decides whether the variant takes part, and says why when it does not.
func (r *round) admit(v *variant) {
	switch v.in.Target {
	case TargetFound:
	case TargetMissing:
		v.refuse(ReasonTargetMissing, "the scale target does not exist")
	case TargetForbidden:
		v.refuse(ReasonTargetForbidden, "the scale target may not be read or scaled")
	case TargetShared:
		v.refuse(ReasonConflict, "another object scales the same target")
	case TargetConflict:
		v.refuse(ReasonConflict, "another autoscaler scales the target")
	}
	if err := r.unknown(v); v.managed && err != nil && !r.guesses(v) {
		r.freeze(v, err)
	}
	v.next.Conflict, v.anew = r.conflictOf(v)
	last, known := v.old.before()
	v.anew = v.anew || known && r.snapshot.Time.Sub(last.Until) >= max(r.policy.Freshness.Ageing, r.policy.Interval)
	if v.managed || v.in.exists() && v.policy.Actuation == ActuationOff {
		r.look(v)
	}
}

// refuse keeps the variant as it is.
func (v *variant) refuse(reason Reason, detail string) {
	v.managed = false
	v.settle(reason, detail)
}

// freeze keeps the replicas as they are, within maxReplicas, while nobody knows how many
// fit: those that went could not come back.
func (r *round) freeze(v *variant, unknown error) {
	reason := ReasonShapeUnknown
	if errors.Is(unknown, errNodesUnknown) {
		reason = ReasonCapacityUnknown
	}
	v.refuse(reason, "replicas held: "+unknown.Error())
	if most := v.bounded(v.target); most < v.target && r.kind == RoundFull && !v.in.Rolling {
		v.step(StageBounds, most, ReasonMaxReplicas, "%s", v.maximum())
	}
}

// exists reports whether the target is there, so that its replicas count.
func (v *Variant) exists() bool { return v.Target == TargetFound || v.Target == TargetConflict }

// asFound is the variant as it counts: where the target is not there, or another object
// counts its replicas, it has none. What a replica showed before it served again others do
// since, so that it counts for nothing.
func (v *Variant) asFound() *Variant {
	found := *v
	if !v.exists() {
		found.Current, found.Ready, found.Starting, found.Replicas, found.Rolling, found.Surge = 0, 0, nil, nil, false, 0
		return &found
	}
	old := func(p Replica) bool { return p.Served.Present && p.Served.Time.Before(p.Since) }
	if !slices.ContainsFunc(v.Replicas, old) {
		return v
	}
	found.Replicas = slices.Clone(v.Replicas)
	for i, p := range found.Replicas {
		if old(p) {
			found.Replicas[i] = Replica{Name: p.Name, Node: p.Node, Marked: p.Marked, Since: p.Since}
		}
	}
	return &found
}

// asShown is the variant with what mode Metric shows for its target's own number, as long as
// whoever follows it is taken to get there: others would be given the same room else.
func (r *round) asShown(v *variant) *Variant {
	last, known := v.old.before()
	most := v.bounded(last.Desired)
	if !known || v.policy.Actuation != ActuationMetric || !v.in.exists() || most <= v.in.Current {
		return v.in
	}
	since := r.snapshot.Time
	for _, s := range slices.Backward(v.old.History) {
		if s.Replicas != v.in.Current || s.Desired <= v.in.Current {
			break
		}
		since = s.From
	}
	if v.unfollowed = r.snapshot.Time.Sub(since) > podPatience; v.unfollowed {
		return v.in
	}
	shown := *v.in
	shown.Current = most
	return &shown
}

// bounded is n, but no more than maxReplicas.
func (v *variant) bounded(n int) int {
	if v.policy.Max < 0 {
		return n
	}
	return min(v.policy.Max, n)
}

// maximum says what maxReplicas is, and whose where it is not the object's own.
func (v *variant) maximum() string {
	of := ""
	if v.policy.MaxOf != "" {
		of = " of " + v.policy.MaxOf
	}
	return fmt.Sprintf("maxReplicas%s is %d", of, v.policy.Max)
}

// fact records what a condition reports, once.
func (v *variant) fact(reason Reason, format string, args ...any) {
	if f := (Fact{reason, said(format, args)}); !slices.Contains(v.plan.Facts, f) {
		v.plan.Facts = append(v.plan.Facts, f)
	}
}

// settle records a fact that is also the reason of the plan as it stands.
func (v *variant) settle(reason Reason, detail string) {
	v.fact(reason, "%s", detail)
	v.plan.Reason, v.plan.Message = reason, detail
}

// step records what a stage made of the variant's replicas. A stage that changes
// the number also gives the plan its reason, unless it only shortens a change that
// it lets pass: then the reason for the change stands, and the message says both.
func (v *variant) step(stage Stage, after int, reason Reason, format string, args ...any) {
	s := Step{Stage: stage, Before: v.target, After: after, Reason: reason, Detail: said(format, args)}
	current := v.in.Current
	shortened := v.plan.Reason != "" && cmp.Compare(after, current)*cmp.Compare(v.target, current) > 0
	switch {
	case after == v.target && v.plan.Reason != "":
	case shortened:
		v.plan.Message = joined(v.plan.Message, s.Detail)
	default:
		v.plan.Reason, v.plan.Message = s.Reason, s.Detail
	}
	v.tell(s)
	v.target = after
}

// tell records a step. Making room for all of them at once is a tenth of a round's memory less.
func (v *variant) tell(s Step) {
	if v.plan.Steps == nil {
		const usual = 12
		v.plan.Steps = make([]Step, 0, usual)
	}
	v.plan.Steps = append(v.plan.Steps, s)
}

// mostMessage is how long a message may become by another clause; the steps tell all.
const mostMessage = 120

// perSecond is a rate with as many digits as tell a small one from none.
func perSecond(rate capacity.Rate) string {
	const small, digits, bits = 0.1, 2, 64
	if rate < small {
		return strconv.FormatFloat(float64(rate), 'g', digits, bits)
	}
	return strconv.FormatFloat(float64(rate), 'f', digits, bits)
}

// joined is the message with one more clause, where that says more and leaves it short.
func joined(message, clause string) string {
	if strings.Contains(message, clause) || len(message)+len("; ")+len(clause) > mostMessage {
		return message
	}
	return message + "; " + clause
}

// note records a step that changes nothing and gives no reason.
func (v *variant) note(stage Stage, reason Reason, format string, args ...any) {
	v.tell(Step{Stage: stage, Before: v.target, After: v.target, Reason: reason, Detail: said(format, args)})
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

// each calls f for every variant that the decision may change.
func (m *model) each(f func(*variant)) {
	for _, v := range m.variants {
		if v.managed {
			f(v)
		}
	}
}

// note records the same step at each of these.
func (m *model) note(stage Stage, reason Reason, format string, args ...any) {
	detail := said(format, args)
	m.each(func(v *variant) { v.note(stage, reason, "%s", detail) })
}

// count adds up a number of the variants.
func (m *model) count(of func(*variant) int) int {
	n := 0
	for _, v := range m.variants {
		n += of(v)
	}
	return n
}

// served is the rate that so many replicas of each variant serve.
func (m *model) served(replicas func(*variant) int) capacity.Rate {
	sum := capacity.Rate(0)
	for _, v := range m.variants {
		sum += v.rate.serves() * capacity.Rate(replicas(v))
	}
	return sum
}

// total is how many replicas the model is to have.
func (m *model) total() int { return m.count(func(v *variant) int { return v.target }) }

// ready is the number of replicas that serve.
func (m *model) ready() int { return m.count(func(v *variant) int { return v.in.Ready }) }

// asleep reports whether no target of the model asks for a replica.
func (m *model) asleep() bool { return m.count(func(v *variant) int { return v.in.Current }) == 0 }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
