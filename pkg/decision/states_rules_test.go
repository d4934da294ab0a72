package decision

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// keepsTheRules holds one round of any state against what the objects and the settings promise,
// whatever the load is.
func keepsTheRules(t *testing.T, s *Snapshot, policy *Policy, plan *Plan, about string) {
	t.Helper()
	for i := range plan.Models {
		before, after, reach := 0, 0, 0
		idle := policy.IdleOf(ModelKey{Namespace: s.Models[i].Namespace, ID: s.Models[i].ID})
		for j := range plan.Models[i].Variants {
			v, in := &plan.Models[i].Variants[j], &s.Models[i].Variants[j]
			before, after, reach = before+v.Current, after+v.Current, reach+1
			if v.Desired == nil {
				require.NotEqual(t, TargetFound, in.Target, "%s %s", about, v.Key.Name)
				continue
			}
			after += *v.Desired - v.Current
			if own := policy.Variant(v.Key); own.Max == 0 {
				reach--
			}
			variantKeepsTheRules(t, in, policy, plan.Round, v, about)
		}
		if before > 0 && reach > 0 && !idle.Enabled {
			require.Positive(t, after, "%s %s: a model keeps one replica", about, plan.Models[i].ID)
		}
	}
}

func variantKeepsTheRules(t *testing.T, in *Variant, policy *Policy, kind Round, v *VariantPlan, about string) {
	t.Helper()
	own, from, to := policy.Variant(v.Key), v.Current, *v.Desired
	is := func(holds bool, rule string) { require.True(t, holds, "%s %s: %s", about, lineOf(v), rule) }
	at := from
	stages := []Stage{StageFreshness, StageSupply, StageDemand, StageRequirement, StageAllocation, StageLimits, StageZero, StageBounds, StageBehavior}
	for _, step := range v.Steps {
		is(slices.Contains(stages, step.Stage), "the steps are in the order of the stages")
		stages = stages[slices.Index(stages, step.Stage):]
		is(step.Before == at, "each step goes on where the last one ended")
		is(textOf(step.Detail) != "" && step.Reason != "", "each step has its reason")
		at = step.After
	}
	is(at == to, "the steps lead to what is desired")
	is(v.Reason != "" && textOf(v.Message) != "" || own.Actuation == ActuationOff, "a plan has a reason")
	pods := make([]string, 0, len(in.Replicas)+len(in.Starting))
	for i := range in.Replicas {
		pods = append(pods, in.Replicas[i].Name)
	}
	for i := range in.Starting {
		pods = append(pods, in.Starting[i].Name)
	}
	for i, name := range v.Victims {
		is(slices.Contains(pods, name) && !slices.Contains(v.Victims[:i], name), "only a pod of its own is chosen to go, and once")
	}
	is(len(v.Victims) <= max(0, len(pods)-to), "no more pods are chosen to go than go")
	switch {
	case to > from:
		is(own.Max < 0 || to <= own.Max, "it grows to maxReplicas")
		is(to <= own.Min || own.Up.Select != SelectDisabled, "scaleUp.selectPolicy Disabled adds none beyond minReplicas")
		is(to <= own.Min || len(own.Up.Policies) > 0 || to <= in.Ready+max(policy.Growth.Pods, in.Ready*policy.Growth.Percent/100), "it grows within the growth limit")
		is(in.Target == TargetFound, "what cannot be written does not grow")
		is(len(v.Victims) == 0, "nothing goes while it grows")
	case to < from:
		is(kind == RoundFull || own.Actuation != ActuationScale, "only a full round lowers what the target asks for")
		is(in.Target == TargetFound, "what cannot be written does not shrink")
		above := own.Max >= 0 && from > own.Max
		is(to >= own.Min || above || policy.Limited, "minReplicas stay")
		is(own.Down.Select != SelectDisabled || above || v.Has(ReasonNoSlots, ReasonStartupOverdue), "scaleDown.selectPolicy Disabled takes none that serves")
		is(to >= in.Ready || !in.Rolling || above || v.Has(ReasonNoSlots, ReasonStartupOverdue), "nothing that serves goes during a rolling update that moves on")
	}
}
