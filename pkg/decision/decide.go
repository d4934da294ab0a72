package decision

import (
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Decide answers one round. It changes neither the snapshot nor the memory that it
// is given.
func Decide(snapshot Snapshot, policy Policy, memory Memory, kind Round) (Plan, Memory) {
	r := newRound(&snapshot, &policy, &memory, kind)
	r.answer()
	return r.finish()
}

// answer runs the stages.
func (r *round) answer() {
	r.reserve()
	r.scarce()
	for _, m := range r.models {
		r.see(m)
		m.need = r.requirement(m)
		m.next.Active, m.next.Gateway = r.activity(m), r.gateway(m)
	}
	r.fit()
	found := r.allocate()
	for _, m := range r.models {
		giveBack := r.limits(m, found.lacks[m].short, found.ideal)
		idle := r.zero(m, found.lacks[m].any)
		r.bounds(m)
		r.behavior(m, found.ideal, giveBack, idle)
		r.lower(m, found.giving)
	}
	r.victims(found.giving)
}

// see finds what is known of the model, stage by stage: each takes what the ones before
// it found.
func (r *round) see(m *model) {
	r.disbelieve(m)
	for _, v := range m.variants {
		r.admit(v)
		v.next.Stuck = r.stuckOf(m, v)
		v.odd = r.judgeOdd(m, v)
		v.fleet, v.load = r.fleetOf(v, v.in.Startup), r.loadOf(m, v)
	}
	r.askedAgain(m)
	r.trustAlone(m)
	m.load = m.loadOfAll()
	r.disbelieveGateway(m)
	m.evidence = r.freshness(m)
	m.demand = r.demandOf(m)
	m.tellPart()
	m.sized, m.rated = r.rates(m)
	m.lead = r.lead(r.growing(m))
	m.ahead = m.demand.expected(m.demand.risk, m.lead)
	m.tellDemand()
	m.sizeFor = r.sizedFor(m, m.ahead)
	m.next.Attained = r.attained(m)
	r.tellSupply(m)
}

// round is the working state of one Decide.
type round struct {
	snapshot *Snapshot
	policy   *Policy
	kind     Round
	models   []*model
	// trial is where placements are tried out; nil means that the nodes are unknown.
	trial *placement.Trial
	// keeping is the variant for which most room is kept, by accelerator.
	keeping map[capacity.Accelerator]*variant
	// placed are the replicas that were tried out for growth.
	placed []placed
	// sized is how many variants had a rate within a promise before this round, and
	// firstSizes how many got their first one in it.
	sized, firstSizes int
	// down are the names of the nodes that are not ready, and nodesByName the indexes of all.
	down        map[string]bool
	nodesByName map[string]int
	// queued are the namespaces in which a gateway shows the queue of a model.
	queued map[string]bool
}

func newRound(snapshot *Snapshot, policy *Policy, memory *Memory, kind Round) *round {
	r := &round{snapshot: snapshot, policy: policy, kind: kind, models: make([]*model, len(snapshot.Models))}
	r.down = snapshot.down()
	old := memory.upTo(snapshot.Time)
	for i := range snapshot.Models {
		r.models[i] = r.begin(snapshot.Models[i].caughtUp(snapshot.Time, policy.Freshness), old)
	}
	r.queued = r.queues()
	return r
}

// each calls f for every variant.
func (r *round) each(f func(*variant)) {
	for _, m := range r.models {
		for _, v := range m.variants {
			f(v)
		}
	}
}

// finish makes the plan and the next memory of what was found.
func (r *round) finish() (Plan, Memory) {
	now := r.snapshot.Time
	plan := Plan{Time: now, Round: r.kind, Models: make([]ModelPlan, 0, len(r.models))}
	variants := 0
	r.each(func(*variant) { variants++ })
	memory := Memory{Time: now, Variants: make(map[Key]*VariantMemory, variants), Models: make(map[ModelKey]*ModelMemory, len(r.models))}
	for _, m := range r.models {
		next := r.alternative(m, workExplained)
		p := ModelPlan{
			Namespace: m.in.Namespace, ID: m.in.ID, Promise: m.promise, Demand: m.told(), Sized: m.sized,
			Triggered: m.need.triggered, Variants: make([]VariantPlan, 0, len(m.variants)),
		}
		for _, v := range m.variants {
			if m.rated {
				v.plan.ServesEach = v.rate.serves()
			}
			v.plan.Binds = m.binds(v)
			if v.managed {
				v.plan.Alternative = next
			}
			if v.in.exists() {
				desired := v.target
				v.plan.Desired, v.plan.Fallback = &desired, m.fallback(v)
				v.next.History = r.history(v)
			}
			p.Variants = append(p.Variants, v.plan)
			for _, made := range v.nominated {
				v.next.Nominated = append(v.next.Nominated, made.Nomination)
			}
			memory.Variants[v.key] = v.next
		}
		plan.Models = append(plan.Models, p)
		memory.Models[m.key] = m.next
	}
	return plan, memory
}

// fallback is what is shown while there are no data to decide by. It is never less than
// what is there: whoever follows the gauge would remove replicas because data are missing.
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
	return FallbackTo(v.bounded(last.Desired), known, max(v.bounded(v.in.Current), v.target), why)
}

// FallbackTo is the fallback to what was wanted before, where that is known, and at least
// to what there is now.
func FallbackTo(wanted int, known bool, least int, why string) *Fallback {
	if known && wanted >= least {
		return &Fallback{Replicas: wanted, Source: FallbackPrevious, Why: why}
	}
	return &Fallback{Replicas: least, Source: FallbackCurrent, Why: why}
}

// binds says what keeps the variant's replicas from being one fewer or one more.
func (m *model) binds(v *variant) string {
	for _, s := range slices.Backward(v.plan.Steps) {
		obstacle := s.Stage == StageLimits && (s.Reason == ReasonMaxReplicas || s.Reason == ReasonBackingOff)
		if s.Before != s.After && s.Stage != StageAllocation || s.Reason == ReasonNoSlots || obstacle {
			return string(s.Stage) + ": " + s.Detail
		}
	}
	if !v.managed || !m.demand.seen || !m.rated || v.rate.serves() == 0 {
		return ""
	}
	each := perSecond(v.rate.serves())
	switch {
	case m.sized || m.need.want == wantMore:
		return fmt.Sprintf("demand: %s req/s are required; a replica serves %s", perSecond(m.need.required), each)
	case m.need.want == wantLess && m.need.least >= oneMore:
		return fmt.Sprintf("demand: %s req/s of capacity must stay; a replica serves %s", perSecond(m.need.least), each)
	}
	return string(StageRequirement) + ": " + m.need.detail
}
