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
	for _, m := range r.models {
		r.see(m)
		m.need = r.requirement(m)
		m.plan.Triggered = m.need.triggered
		if m.plan.Demand != nil {
			m.plan.Demand.BacklogAtReady = m.need.backlog
		}
		m.next.Active, m.next.Gateway = r.watchWork(m)
	}
	r.fit()
	r.allocate(r.models)
	for _, m := range r.models {
		for _, stage := range postAllocation {
			stage(r, m)
		}
	}
	r.victims(r.models)
	return r.finish()
}

// see finds what is known of the model, stage by stage.
func (r *round) see(m *model) {
	for _, v := range m.variants {
		r.admit(v)
		v.fleet, v.load = r.fleetOf(v), r.loadOf(v, m.saturation)
	}
	m.trustUnseen()
	m.load = m.loadOfAll()
	m.evidence = r.freshness(m)
	m.lead = r.lead(m)
	m.demand = r.demandOf(m)
	m.plan.Demand = m.demand.told(m.lead)
	m.tellDemand()
	m.sized, m.rated = r.rates(m)
	m.plan.Sized = m.sized
	r.tellSupply(m)
}

// postAllocation are the stages of each model's decision after the allocation, which looks
// at all models together. Each one appends a step to every variant that it looked at.
var postAllocation = []func(*round, *model){limits, zero, bounds, behavior}

// round is the working state of one Decide.
type round struct {
	snapshot *Snapshot
	policy   *Policy
	kind     Round
	models   []*model
	// trial is where placements are tried out; nil means that the nodes are unknown.
	trial *placement.Trial
	// sized is how many variants had a rate within a promise before this round, and
	// firstSizes how many got their first one in it.
	sized, firstSizes int
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
	r := &round{snapshot: snapshot, policy: policy, kind: kind, models: make([]*model, len(snapshot.Models))}
	old := memory.upTo(snapshot.Time, policy.Freshness.Stale)
	for i := range snapshot.Models {
		r.models[i] = r.begin(&snapshot.Models[i], old)
	}
	return r
}

// model is the working state of one model.
type model struct {
	in  *Model
	key ModelKey
	// old is what was remembered, and next what will be.
	old, next ModelMemory
	plan      ModelPlan
	variants  []*variant
	// advisory is set when every variant is in mode Off: then they are planned for
	// as if they were not, to be looked at.
	advisory bool

	saturation Saturation
	evidence   evidence
	load       load
	demand     demand
	// lead is how long a new replica takes to serve.
	lead time.Duration
	// sized is set when sizing for the promised latency takes part, and rated when it is
	// known what a replica of any variant serves.
	sized, rated bool
	need         need
	// keep is the variant that is to keep the model's only replica, once chosen.
	keep *variant
	// chosen is set once keep was looked for.
	chosen bool
	// short is the rate that could not be bought within the limits, and late what of it no
	// replica that keeps the promise could.
	short, late capacity.Rate
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
	old, next VariantMemory
	// managed is set when the decision may change this variant.
	managed bool
	target  int
	// fleet, load and rate are what its replicas do, how loaded they are, and what one of
	// them serves.
	fleet fleet
	load  load
	rate  rate
	// price is what one replica is compared by.
	price capacity.Cost
	// minimum is its lower bound as far as it may be asked for.
	minimum minimum
	// idle is set when it goes because nothing is asked of its model.
	idle bool
	// giveBack is how many of those that do not come up are given back.
	giveBack int
	// least is what a minimum demands, and why; no behaviour slows it down.
	least       int
	leastReason Reason
	// giving are the replicas that give way to a more important model.
	giving []string
	// externallyChanged is set when somebody else changed the replicas.
	externallyChanged bool
	// wanted is its target before behavior, needed the part of it that the present load needs,
	// and ideal what wanted would be without scaleUp.
	wanted, needed, ideal int
}

func (r *round) begin(in *Model, memory *Memory) *model {
	m := &model{
		in:   in,
		key:  ModelKey{Namespace: in.Namespace, ID: in.ID},
		plan: ModelPlan{Namespace: in.Namespace, ID: in.ID},
	}
	m.old = memory.Models[m.key]
	m.saturation = r.policy.SaturationOf(m.key)
	m.plan.Promise = r.policy.PromiseTo(m.key)
	m.advisory = true
	for i := range in.Variants {
		v := &in.Variants[i]
		key := Key{Namespace: in.Namespace, Name: v.Name}
		w := &variant{in: v, key: key, policy: r.policy.Variant(key), priority: m.plan.Promise.Priority, old: memory.Variants[key], target: v.Current, wanted: v.Current}
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
		m.variants = append(m.variants, w)
		m.advisory = m.advisory && w.policy.Actuation == ActuationOff
	}
	for _, v := range m.variants {
		v.managed = m.advisory || v.policy.Actuation != ActuationOff
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
		v.refuse(ReasonConflict, "another object counts the replicas of the scale target")
	case TargetConflict:
		v.refuse(ReasonConflict, "something else decides the replicas of the scale target")
	}
	if err := r.unknown(v); v.managed && err != nil && !r.guesses(v) {
		r.freeze(v, err)
	}
	v.next.Conflict, v.externallyChanged = r.conflictOf(v)
	if v.managed || v.exists() && v.policy.Actuation == ActuationOff {
		r.look(v)
	}
}

// refuse keeps the variant as it is.
func (v *variant) refuse(reason Reason, detail string) {
	v.managed = false
	v.settle(reason, detail)
}

// freeze keeps the replicas as they are, within the upper bound, while nobody knows how
// many fit: those that went could not come back. What the bound takes goes when replicas
// may go: in a full round, and not while they are replaced.
func (r *round) freeze(v *variant, unknown error) {
	reason := ReasonShapeUnknown
	if errors.Is(unknown, errNodesUnknown) {
		reason = ReasonCapacityUnknown
	}
	v.refuse(reason, "the replicas are held: "+unknown.Error())
	if most := v.bounded(v.target); most < v.target && r.kind == RoundFull && !v.rolling() {
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

// finish makes the plan and the next memory of what was found.
func (r *round) finish() (Plan, Memory) {
	now := r.snapshot.Time
	plan := Plan{Time: now, Round: r.kind, Models: make([]ModelPlan, 0, len(r.models))}
	memory := Memory{Time: now, Variants: make(map[Key]VariantMemory, len(r.models)), Models: make(map[ModelKey]ModelMemory, len(r.models))}
	for _, m := range r.models {
		next := r.alternative(m)
		m.plan.Variants = make([]VariantPlan, 0, len(m.variants))
		for _, v := range m.variants {
			if m.rated {
				v.plan.ServesEach = v.rate.serves()
			}
			v.plan.Binds = m.binds(v)
			if v.managed {
				v.plan.Alternative = next
			}
			if v.exists() {
				desired := v.target
				v.plan.Desired, v.plan.Fallback = &desired, m.fallback(v)
				shown := desired
				if v.plan.Fallback != nil {
					shown = v.plan.Fallback.Replicas
				}
				r.remember(v, shown)
			}
			m.plan.Variants = append(m.plan.Variants, v.plan)
			memory.Variants[v.key] = v.next
		}
		plan.Models = append(plan.Models, m.plan)
		memory.Models[m.key] = m.next
	}
	return plan, memory
}

// fallback is what is shown in the place of a decision while there are no data to
// decide by. Nobody is told less than is there: a gauge that falls because data are
// missing would take replicas away.
func (m *model) fallback(v *variant) *Fallback {
	if m.evidence != evidenceMissing && m.evidence != evidenceStale {
		return nil
	}
	why := "the metrics of the serving replicas are missing"
	if m.evidence == evidenceStale {
		why = "the metrics of the serving replicas are old"
	}
	last, known := v.old.before()
	if !known && v.in.Before != nil {
		last.Desired, known = *v.in.Before, true
	}
	least := max(v.bounded(v.in.Current), v.target)
	if wanted := v.bounded(last.Desired); known && wanted >= least {
		return &Fallback{Replicas: wanted, Source: FallbackPrevious, Why: why}
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
	if !v.managed || !m.demand.seen || !m.rated || v.rate.serves() == 0 {
		return ""
	}
	return fmt.Sprintf("demand: %.2f requests/s are asked of the model; a replica serves %.2f", m.need.required, v.rate.serves())
}
