package decision

import (
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
	plan := Plan{Time: snapshot.Time, Round: kind, Models: make([]ModelPlan, 0, len(snapshot.Models))}
	for i := range snapshot.Models {
		m := r.begin(&snapshot.Models[i])
		for _, stage := range stages {
			stage(r, m)
		}
		models = append(models, m)
	}
	r.victims(models)
	for _, m := range models {
		plan.Models = append(plan.Models, m.finish())
	}
	return plan, r.next
}

// stages are the stages of a decision in their order. Each one appends a step to
// every variant that it looked at.
var stages = []func(*round, *model){
	freshness,
	demand,
	supply,
	requirement,
	allocate,
	limits,
	zero,
	bounds,
	behavior,
}

// round is the working state of one Decide.
type round struct {
	snapshot *Snapshot
	policy   *Policy
	kind     Round
	old      *Memory
	next     Memory
	// cluster is where placements are tried out; nil means unknown.
	cluster *placement.Cluster
	// unplaced is how many replicas of a variant that are asked for fit nowhere now.
	unplaced map[*Variant]int
	// rooms is what was counted since the cluster last changed.
	rooms map[asked]room
	// nodes are the indexes of the cluster's nodes by name, once they are needed.
	nodes map[string]int
}

func newRound(snapshot *Snapshot, policy *Policy, memory *Memory, kind Round) *round {
	return &round{
		snapshot: snapshot, policy: policy, kind: kind, old: memory,
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
	// wants is what the requirement stage found; the allocation answers it.
	wants want
	// missing is the rate that the supply falls short of, when wants is wantMore.
	missing capacity.Rate
	// tokens is the shape of the requests that is reckoned with.
	tokens capacity.TokenShape
	// caution is the share of serves that is reckoned with when replicas are added.
	caution capacity.Rate
	// atLeast is what the supply must still serve after a scale-down.
	atLeast capacity.Rate
	load    pressure
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
	// serves is the rate of one replica at the load that the triggers allow.
	serves capacity.Rate
	// supply is how many replicas serve or will in time.
	supply int
	// saturated is set when one of its replicas is at or above a threshold.
	saturated bool
	// lost is the number of replicas that wait in vain for a node, or of which there
	// is no pod, which absent counts alone.
	lost, absent int
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
	if err := v.in.Request.Countable(); v.managed && err != nil && !r.guesses(v) {
		v.managed = false
		v.settle(ReasonShapeUnknown, "the replicas are held: "+err.Error())
	}
	if v.managed || v.exists() && v.policy.Actuation == ActuationOff {
		r.look(v)
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

func (m *model) finish() ModelPlan {
	for _, v := range m.variants {
		v.plan.ServesEach = v.serves
		v.plan.Binds, v.plan.Alternative = m.binds(v), m.alternative(v)
		if v.exists() {
			desired := v.target
			v.plan.Desired = &desired
		}
		m.plan.Variants = append(m.plan.Variants, v.plan)
	}
	return m.plan
}

// binds says what keeps the variant's replicas from being one fewer or one more.
func (m *model) binds(v *variant) string {
	for i := len(v.plan.Steps) - 1; i >= 0; i-- {
		s := v.plan.Steps[i]
		if s.Before != s.After && s.Stage != StageAllocation || s.Reason == ReasonNoSlots {
			return fmt.Sprintf("%s: %s", s.Stage, s.Detail)
		}
	}
	if !v.managed || m.plan.Demand == nil || v.serves == 0 {
		return ""
	}
	return fmt.Sprintf("demand: %.2f requests/s are asked of the model; a replica serves %.2f", m.required, v.serves)
}

// alternative names the variant that would have served the same for the least cost
// after this one.
func (m *model) alternative(v *variant) string {
	var next *variant
	m.each(func(o *variant) {
		if o != v && o.serves > 0 && (next == nil || o.unitCost() < next.unitCost()) {
			next = o
		}
	})
	if next == nil || v.serves == 0 {
		return ""
	}
	return fmt.Sprintf("%s at %.3f an hour per request/s, against %.3f here", next.in.Name, next.unitCost(), v.unitCost())
}
