package decision

import (
	"errors"
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Decide answers one round. It changes neither the snapshot nor the memory that it
// is given.
func Decide(snapshot Snapshot, policy Policy, memory Memory, kind Round) (Plan, Memory) {
	r := newRound(&snapshot, &policy, &memory, kind)
	r.reserve()
	models := make([]*model, 0, len(snapshot.Models))
	for i := range snapshot.Models {
		m := r.begin(&snapshot.Models[i])
		for _, stage := range seeing {
			stage(r, m)
		}
		r.watchWork(m)
		models = append(models, m)
	}
	r.fit()
	r.allocate(models)
	for _, m := range models {
		for _, stage := range bounding {
			stage(r, m)
		}
	}
	r.victims(models)
	plan := Plan{Time: snapshot.Time, Round: kind, Models: make([]ModelPlan, 0, len(snapshot.Models))}
	for _, m := range models {
		plan.Models = append(plan.Models, r.finish(m))
	}
	return plan, r.next
}

// seeing and bounding are the stages of each model's decision in their order, before
// and after the allocation, which looks at all models together. Each one appends a
// step to every variant that it looked at.
var (
	seeing   = []func(*round, *model){freshness, demand, supply, requirement}
	bounding = []func(*round, *model){limits, zero, bounds, behavior}
)

// round is the working state of one Decide.
type round struct {
	snapshot *Snapshot
	policy   *Policy
	kind     Round
	old      *Memory
	next     Memory
	// trial is where placements are tried out; nil means that the nodes are unknown.
	trial *placement.Trial
	// unplaced is how many replicas of a variant that are asked for fit nowhere now.
	unplaced map[*Variant]int
	// firstSizes is how many rates within a promise were found of variants without one.
	firstSizes int
	// switches is how many models switched variants.
	switches int
	// placed are the replicas that were tried out for growth.
	placed []placed
	// unfitted are the variants whose latency model may be fitted anew.
	unfitted []*variant
	// queued are the namespaces in which a gateway shows queues, once they are needed.
	queued map[string]bool
	// nodes are the indexes of the cluster's nodes by name, once they are needed.
	nodes map[string]int
}

func newRound(snapshot *Snapshot, policy *Policy, memory *Memory, kind Round) *round {
	return &round{
		snapshot: snapshot, policy: policy, kind: kind, old: memory.upTo(snapshot.Time, policy.Freshness.Stale),
		next: Memory{}.withMaps(), unplaced: map[*Variant]int{},
	}
}

// model is the working state of one model.
type model struct {
	in       *Model
	key      ModelKey
	plan     ModelPlan
	variants []*variant
	// advisory is set when every variant is in mode Off: then they are planned for
	// as if they were not, to be looked at.
	advisory bool

	evidence   evidence
	saturation Saturation
	// required is the rate that is asked for, including the backlog's share.
	required capacity.Rate
	// queued is the part of required that serves the backlog, and total what serves or
	// will in time.
	queued, total capacity.Rate
	// why is the reason of the requirement stage.
	why Reason
	// sized is set when sizing for the promised latency takes part.
	sized bool
	// keep is the variant that is to keep the model's only replica, once chosen.
	keep *variant
	// chosen is set once keep was looked for.
	chosen bool
	// wants is what the requirement stage found; the allocation answers it.
	wants want
	// missing is the rate that the supply falls short of, when wants is wantMore.
	missing capacity.Rate
	// dispersion is the index of dispersion of the arrivals, at least 1.
	dispersion float64
	// tokens is the shape of the requests that is reckoned with.
	tokens capacity.TokenShape
	// caution is the share of serves that is reckoned with when replicas are added.
	caution capacity.Rate
	// atLeast is what the supply must still serve after a scale-down.
	atLeast capacity.Rate
	load    pressure
	// full is what its saturated replicas mean for a scale-down.
	full fullness
	// short is the rate that could not be bought within the limits.
	short capacity.Rate
}

// variant is the working state of one variant.
type variant struct {
	in     *Variant
	key    Key
	policy VariantPolicy
	plan   VariantPlan
	// managed is set when the decision may change this variant.
	managed bool
	target  int
	// serves is the rate of one replica at the load that the triggers allow and, where
	// sizing takes part, within the promised latency; most is that of a full one, and
	// triggers that of the triggers alone.
	serves, most, triggers capacity.Rate
	// supply is how many replicas serve or will in time.
	supply int
	// unfit is set when no load is so small that it keeps the promised latency.
	unfit bool
	// minimum is its lower bound as far as it may be asked for.
	minimum minimum
	// idle is set when it goes because nothing is asked of its model.
	idle bool
	// saturated is set when one of its replicas is at or above a threshold.
	saturated bool
	// hot is how many of them are or may be, where that is asked for.
	hot int
	// lost is the number of replicas that wait in vain for a node, or of which there
	// is no pod, which absent counts alone.
	lost, absent int
	// failed is the number of replicas that hold a node and do not come up: their
	// containers keep failing, or others of the variant took a third of the time.
	failed int
	// back is how many of them are given back.
	back int
	// paused is how long the variant is still left alone, because its replicas found
	// no node.
	paused time.Duration
	// least is what a minimum demands, and why; no behaviour slows it down.
	least       int
	leastReason Reason
	// foreign is set when somebody else changed the replicas.
	foreign bool
	// barren is set when its replicas come to nothing: they fit nowhere, have no pod, or
	// passed their start-up deadline.
	barren bool
	// stuck is set when replicas passed their start-up deadline or fit nowhere.
	stuck bool
}

func (r *round) begin(in *Model) *model {
	m := &model{
		in:   in,
		key:  ModelKey{Namespace: in.Namespace, ID: in.ID},
		plan: ModelPlan{Namespace: in.Namespace, ID: in.ID},
	}
	m.saturation = r.policy.SaturationOf(m.key)
	m.plan.Promise = r.policy.PromiseTo(m.key)
	m.advisory = true
	for i := range in.Variants {
		v := &in.Variants[i]
		key := Key{Namespace: in.Namespace, Name: v.Name}
		w := &variant{in: v, key: key, policy: r.policy.Variant(key), target: v.Current}
		w.plan = VariantPlan{Key: key, Current: v.Current, Ready: v.Ready, Starting: len(v.Starting), Cost: v.Cost}
		for _, s := range v.Starting {
			if s.Unschedulable {
				w.plan.Unschedulable++
			}
		}
		if v.Request != nil {
			w.plan.Accelerator = v.Request.Shape.Accelerator
		}
		m.variants = append(m.variants, w)
		m.advisory = m.advisory && w.policy.Actuation == ActuationOff
	}
	for _, w := range m.variants {
		r.admit(m, w)
	}
	return m
}

// admit decides whether the variant takes part, and says why when it does not.
func (r *round) admit(m *model, v *variant) {
	switch v.in.Target {
	case TargetMissing:
		v.settle(ReasonTargetMissing, "the scale target does not exist")
	case TargetForbidden:
		v.settle(ReasonTargetForbidden, "the scale target may not be read or scaled")
	case TargetShared:
		v.settle(ReasonConflict, "another object counts the replicas of the scale target")
	case TargetConflict:
		v.settle(ReasonConflict, "something else decides the replicas of the scale target")
	default:
		v.managed = m.advisory || v.policy.Actuation != ActuationOff
	}
	if err := r.unknown(v); v.managed && err != nil && !r.guesses(v) {
		r.freeze(v, err)
	}
	r.watchOverwriting(v)
	if v.managed || v.exists() && v.policy.Actuation == ActuationOff {
		r.look(v)
	}
}

// freeze keeps the replicas as they are, within the upper bound, while nobody knows how
// many fit: those that went could not come back. What the bound takes goes when replicas
// may go: in a full round, and not while they are replaced.
func (r *round) freeze(v *variant, unknown error) {
	reason := ReasonShapeUnknown
	if errors.Is(unknown, errNodesUnknown) {
		reason = ReasonCapacityUnknown
	}
	v.managed = false
	v.settle(reason, "the replicas are held: "+unknown.Error())
	if most := v.bounded(v.target); most < v.target && r.kind == RoundFull && !v.in.Rolling {
		v.step(StageBounds, most, ReasonMaxReplicas, "maxReplicas is %d", most)
	}
}

// exists reports whether the target is there, so that its replicas count.
func (v *variant) exists() bool {
	return v.in.Target == TargetFound || v.in.Target == TargetConflict
}

// settle records a fact that is also the reason of the plan as it stands.
func (v *variant) settle(reason Reason, detail string) {
	v.plan.Facts = append(v.plan.Facts, Fact{Reason: reason, Detail: detail})
	v.plan.Reason, v.plan.Message = reason, detail
}

// step records what a stage made of the variant's replicas. A stage that changes
// the number also gives the plan its reason, unless it only shortens a change that
// it lets pass: then the reason for the change stands, and the message says both.
func (v *variant) step(stage Stage, after int, reason Reason, format string, args ...any) {
	s := Step{Stage: stage, Before: v.target, After: after, Reason: reason, Detail: fmt.Sprintf(format, args...)}
	current := v.in.Current
	shortened := v.plan.Reason != "" && after != current && v.target != current && (after > current) == (v.target > current)
	switch {
	case after == v.target && v.plan.Reason != "":
	case shortened:
		v.plan.Message += "; " + s.Detail
	default:
		v.plan.Reason, v.plan.Message = s.Reason, s.Detail
	}
	v.plan.Steps = append(v.plan.Steps, s)
	v.target = after
}

// note records a step that changes nothing and gives no reason.
func (v *variant) note(stage Stage, reason Reason, format string, args ...any) {
	v.plan.Steps = append(v.plan.Steps, Step{Stage: stage, Before: v.target, After: v.target, Reason: reason, Detail: fmt.Sprintf(format, args...)})
}

// each calls f for every variant that the decision may change.
func (m *model) each(f func(*variant)) {
	for _, v := range m.variants {
		if v.managed {
			f(v)
		}
	}
}

func (r *round) finish(m *model) ModelPlan {
	next := r.alternative(m)
	for _, v := range m.variants {
		v.plan.ServesEach = v.serves
		v.plan.Binds = m.binds(v)
		if v.managed {
			v.plan.Alternative = next
		}
		if v.exists() {
			desired := v.target
			v.plan.Desired, v.plan.Fallback = &desired, r.fallback(m, v)
		}
		m.plan.Variants = append(m.plan.Variants, v.plan)
	}
	return m.plan
}

// fallback is what is shown in the place of a decision while there are no data to
// decide by. Nobody is told less than is there: a gauge that falls because data are
// missing would take replicas away.
func (r *round) fallback(m *model, v *variant) *Fallback {
	if m.evidence != evidenceMissing && m.evidence != evidenceStale {
		r.next.Wanted[v.key] = v.target
		return nil
	}
	why := "the metrics of the serving replicas are missing"
	if m.evidence == evidenceStale {
		why = "the metrics of the serving replicas are old"
	}
	wanted, known := r.old.Wanted[v.key]
	if known {
		r.next.Wanted[v.key] = wanted
	}
	least := max(v.bounded(v.in.Current), v.target)
	if known && v.bounded(wanted) >= least {
		return &Fallback{Replicas: v.bounded(wanted), Source: FallbackPrevious, Why: why}
	}
	return &Fallback{Replicas: least, Source: FallbackCurrent, Why: why}
}

// binds says what keeps the variant's replicas from being one fewer or one more.
func (m *model) binds(v *variant) string {
	for i := len(v.plan.Steps) - 1; i >= 0; i-- {
		s := v.plan.Steps[i]
		obstacle := s.Stage == StageLimits && (s.Reason == ReasonMaxReplicas || s.Reason == ReasonBackingOff)
		if s.Before != s.After && s.Stage != StageAllocation || s.Reason == ReasonNoSlots || obstacle {
			return fmt.Sprintf("%s: %s", s.Stage, s.Detail)
		}
	}
	if !v.managed || m.plan.Demand == nil || v.serves == 0 {
		return ""
	}
	return fmt.Sprintf("demand: %.2f requests/s are asked of the model; a replica serves %.2f", m.required, v.serves)
}
