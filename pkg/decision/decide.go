package decision

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/preempt"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/settle"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Decide answers one round. It changes neither the snapshot nor the memory that it
// is given.
func Decide(snapshot contract.Snapshot, policy contract.Policy, memory contract.Memory, kind contract.Round) (contract.Plan, contract.Memory) {
	r := newRound(&snapshot, &policy, &memory, kind)
	answer(r)
	plan, next := finish(r)
	showBeside(&plan, &next, &snapshot, &policy, &memory, kind)
	return plan, next
}

// answer runs the stages.
func answer(r *limit.Round) {
	r.Reserve()
	allocate.FindScarce(r)
	for _, m := range r.Models {
		see(r, m)
		m.Need = m.Requirement()
		m.Next.Active, m.Next.Gateway = settle.ActivityOf(r, m), settle.GatewayOf(r, m)
	}
	rate.Fit(&r.Round, signal.Views(r.All(), func(v *limit.Variant) *rate.Variant { return &v.Variant }))
	found := allocateAll(r)
	for _, m := range r.Models {
		giveBack := r.Limits(m, found.Lacks[m].Short, found.Ideal)
		idle := settle.ToZero(r, m, found.Lacks[m].Any)
		r.Bounds(m)
		settle.ApplyBehavior(r, m, found.Ideal, giveBack, idle)
		settle.NoteLowered(m, found.Giving)
	}
	settle.ChooseVictims(r, found.Giving)
}

// see finds what is known of the model: each stage takes what the ones before it found.
func see(r *limit.Round, m *limit.Model) {
	m.Disbelieve()
	for _, v := range m.Variants {
		if v.Admit() {
			r.Look(v)
		}
		v.Crowded = r.Full(v)
	}
	m.JudgeReplicas()
	m.AskedAgain()
	m.TrustAlone()
	m.Load = m.LoadOfAll()
	m.DisbelieveGateway()
	m.Evidence = m.Freshness()
	m.Demand = m.DemandOf()
	m.Sized, m.Rated = m.Rates()
	m.TellSupply()
	m.Lead = allocate.LeadOf(r, allocate.Growing(r, m))
	m.Ahead = m.Demand.Expected(m.Demand.Risk, m.Lead)
	m.TellDemand()
	m.SizeFor = m.SizedFor(m.Ahead)
	m.Next.Attained = m.Attained()
}

func newRound(snapshot *contract.Snapshot, policy *contract.Policy, memory *contract.Memory, kind contract.Round) *limit.Round {
	r := &limit.Round{Round: signal.Round{Snapshot: snapshot, Policy: policy, Kind: kind}, Models: make([]*limit.Model, len(snapshot.Models))}
	r.Down = signal.NodesDown(snapshot)
	old := memory.UpTo(snapshot.Time)
	for i := range snapshot.Models {
		r.Models[i] = beginModel(r, signal.CaughtUp(&snapshot.Models[i], snapshot.Time, policy.Freshness), old)
	}
	r.Queued = settle.QueuesOf(r)
	return r
}

// finish makes the plan and the next memory of what was found.
func finish(r *limit.Round) (contract.Plan, contract.Memory) {
	now := r.Snapshot.Time
	plan := contract.Plan{Time: now, Round: r.Kind, Models: make([]contract.ModelPlan, 0, len(r.Models))}
	variants := 0
	r.Each(func(*limit.Variant) { variants++ })
	memory := contract.Memory{Time: now, Variants: make(map[contract.Key]*contract.VariantMemory, variants), Models: make(map[contract.ModelKey]*contract.ModelMemory, len(r.Models))}
	for _, m := range r.Models {
		next := alternativeOf(r, m, allocate.WorkExplained)
		p := contract.ModelPlan{
			Namespace: m.In.Namespace, ID: m.In.ID, Promise: m.Promise, Demand: toldDemand(m), Sized: m.Sized,
			Triggered: m.Need.Triggered, Variants: make([]contract.VariantPlan, 0, len(m.Variants)),
		}
		for _, v := range m.Variants {
			if m.Rated {
				v.Plan.ServesEach = v.Rate.Serves()
			}
			v.Plan.BoundBy = bindsOf(m, v)
			if v.Managed {
				v.Plan.Alternative = next
			}
			if v.In.Exists() {
				desired := v.Target
				v.Plan.Desired, v.Plan.Fallback = &desired, fallbackOf(m, v)
				v.Next.History = settle.HistoryOf(r, v)
			}
			p.Variants = append(p.Variants, v.Plan)
			for _, made := range v.Nominated {
				v.Next.Nominated = append(v.Next.Nominated, made.ReservedRoom)
			}
			memory.Variants[v.Key] = v.Next
		}
		plan.Models = append(plan.Models, p)
		memory.Models[m.Key] = m.Next
	}
	return plan, memory
}

// fallbackOf is what is shown while there are no data to decide by. It is never less than
// what is there: whoever follows the gauge would remove replicas because data are missing.
func fallbackOf(m *limit.Model, v *limit.Variant) *contract.Fallback {
	if m.Evidence != signal.EvidenceMissing && m.Evidence != signal.EvidenceStale {
		return nil
	}
	why := contract.SaysMetricsMissing
	if m.Evidence == signal.EvidenceStale {
		why = contract.SaysMetricsAged
	}
	last, known := v.Old.Before()
	if !known && v.In.Before != nil {
		last.Desired, known = *v.In.Before, true
	}
	least := max(v.Bounded(v.In.Current), v.Target)
	if m.Advisory {
		// Nobody follows it, and what is there is not what it asked for.
		least = v.Target
	}
	return FallbackTo(v.Bounded(last.Desired), known, least, why.With())
}

// FallbackTo is the fallback to what was wanted before, where that is known, and at least
// to what there is now.
func FallbackTo(wanted int, known bool, least int, why contract.Finding) *contract.Fallback {
	if known && wanted >= least {
		return &contract.Fallback{Replicas: wanted, Source: contract.FallbackPrevious, Why: why}
	}
	return &contract.Fallback{Replicas: least, Source: contract.FallbackCurrent, Why: why}
}

// bindsOf says what keeps the variant's replicas from being one fewer or one more.
func bindsOf(m *limit.Model, v *limit.Variant) contract.Finding {
	for _, s := range slices.Backward(v.Plan.Steps) {
		if binds(&s) {
			return contract.SaysBinds.With(s.Stage, s.Detail)
		}
	}
	if !v.Managed || !m.Demand.Seen || !m.Rated || v.Rate.Serves() == 0 {
		return contract.Finding{}
	}
	switch {
	case m.Sized || m.Need.Want == need.WantMore:
		return contract.SaysDemandBinds.With(m.Need.Required, v.Rate.Serves())
	case m.Need.Want == need.WantLess && m.Need.Least >= rate.OneMore:
		return contract.SaysCapacityBinds.With(m.Need.Least, v.Rate.Serves())
	}
	return contract.SaysBinds.With(contract.StageRequirement, m.Need.Detail)
}

// binds reports whether a step keeps the replicas from being what the demand alone makes them.
func binds(s *contract.Step) bool {
	switch {
	case s.Reason == contract.ReasonNoSlots:
		return true
	case s.Stage == contract.StageLimits && (s.Reason == contract.ReasonMaxReplicas || s.Reason == contract.ReasonBackingOff):
		return true
	case s.Stage != contract.StageAllocation:
		return s.Before != s.After
	case s.Reason == contract.ReasonMinReplicas:
		return s.Before == s.After
	}
	// What else it changes is bought, or kept for want of any.
	return s.Before != s.After && (s.Reason == contract.ReasonKeepOne || s.Reason == contract.ReasonWake)
}

// toldDemand is the demand for people; nil means unknown.
func toldDemand(m *limit.Model) *contract.Demand {
	d := &m.Demand
	if !d.Seen {
		return nil
	}
	return &contract.Demand{Arrival: d.Now, Forecast: m.Ahead, Backlog: d.Backlog, BacklogAtReady: m.Need.Backlog, Tokens: d.Tokens}
}

// allocateAll turns what the models want into replicas of their variants. Minima come
// before anybody's growth, more important models before others, and what only saves
// comes last.
func allocateAll(r *limit.Round) allocate.Answer {
	found := allocate.Answer{Lacks: map[*limit.Model]allocate.Lack{}, Ideal: map[*limit.Variant]int{}, Giving: map[*limit.Variant][]string{}}
	ordered := slices.Clone(r.Models)
	slices.SortStableFunc(ordered, func(a, b *limit.Model) int { return cmp.Compare(a.Promise.Priority, b.Promise.Priority) })
	acting := slices.DeleteFunc(slices.Clone(ordered), func(m *limit.Model) bool { return m.Advisory })
	shown := slices.DeleteFunc(ordered, func(m *limit.Model) bool { return !m.Advisory })
	allocate.To(r, acting, found)
	preempt.All(r, acting, found)
	// Who is only shown what it would get is given what they leave, and nobody gives way to it.
	allocate.To(r, shown, found)
	return found
}
