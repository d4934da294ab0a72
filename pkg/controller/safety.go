package controller

import (
	"cmp"
	"context"

	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// The safety net is what is shown while there is nothing to decide by: nothing is
// written, and whoever follows the metric sees the number that was wanted before, or
// what is there when that is more or nothing was wanted before. So a failure of the
// analysis never takes a replica away.

// safetyNet knows which variants it holds, so that each beginning is told of once.
type safetyNet map[decision.Key]bool

// follow tells of a variant that the net begins to hold, or lets go.
func (n safetyNet) follow(ctx context.Context, p *decision.VariantPlan) {
	switch {
	case p.Desired != nil && p.Fallback != nil:
		n.hold(ctx, p, p.Fallback)
	case n[p.Key]:
		delete(n, p.Key)
		klog.FromContext(ctx).Info("Safety net deactivated", "variant", klog.KRef(p.Key.Namespace, p.Key.Name))
	}
}

func (n safetyNet) hold(ctx context.Context, p *decision.VariantPlan, f *decision.Fallback) {
	if n[p.Key] {
		return
	}
	n[p.Key] = true
	klog.FromContext(ctx).Info("Safety net activated: emitted fallback metrics", "variant", klog.KRef(p.Key.Namespace, p.Key.Name),
		"currentReplicas", p.Current, "desiredReplicas", f.Replicas, "accelerator", p.Accelerator, "fallbackSource", f.Source, "reason", sentence.Of(f.Why))
}

// unobserved tells that a round could not look at the cluster. The gauges keep the last
// plan, which is all that is known.
func (r *reporter) unobserved(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "The cluster could not be observed; nothing is changed")
	last := r.metrics.Last()
	if last == nil {
		return
	}
	last.Each(func(p *decision.VariantPlan) {
		if p.Desired != nil {
			r.net.hold(ctx, p, &decision.Fallback{
				Replicas: p.Shown(), Source: decision.FallbackPrevious, Why: decision.Words("the cluster could not be observed"),
			})
		}
	})
}

// stopgap is the plan in the place of the one that could not be made.
func (r *reporter) stopgap(seen *observation, round decision.Round, why string) decision.Plan {
	before := map[decision.Key]*int{}
	if last := r.metrics.Last(); last != nil {
		last.Each(func(p *decision.VariantPlan) {
			if p.Desired != nil {
				before[p.Key] = ptr.To(p.Shown())
			}
		})
	}
	plan := decision.Plan{Time: seen.snapshot.Time, Round: round}
	for _, m := range seen.snapshot.Models {
		held := decision.ModelPlan{Namespace: m.Namespace, ID: m.ID}
		for i := range m.Variants {
			key := decision.Key{Namespace: m.Namespace, Name: m.Variants[i].Name}
			wanted := cmp.Or(before[key], m.Variants[i].Before) // a new leader knows it from the status
			held.Variants = append(held.Variants, hold(key, &m.Variants[i], wanted, decision.Words(why)))
		}
		plan.Models = append(plan.Models, held)
	}
	return plan
}

// hold is the plan of a variant that stays as it is, given what was wanted of it before; nil
// where nobody knows.
func hold(key decision.Key, v *decision.Variant, wanted *int, why decision.Finding) decision.VariantPlan {
	p := decision.VariantPlan{
		Key: key, Current: v.Current, Ready: v.Ready, Starting: len(v.Starting), Cost: v.Cost,
		Reason: v1alpha1.ReasonOptimizationFailed, Message: why,
		Facts: []decision.Fact{{Reason: v1alpha1.ReasonOptimizationFailed, Detail: why}},
	}
	if v.Request != nil {
		p.Accelerator = v.Request.Shape.Accelerator
	}
	if v.Target != decision.TargetFound && v.Target != decision.TargetConflict {
		return p
	}
	current := v.Current
	p.Desired, p.Fallback = &current, decision.FallbackTo(ptr.Deref(wanted, 0), wanted != nil, current, why)
	return p
}

// held is the plan of a variant whose target could not be read yet: its status shows what was
// wanted.
func (v *variant) held() decision.VariantPlan {
	as := decision.Variant{Target: v.target.state}
	before := v.before()
	if before != nil {
		as.Target, as.Current = decision.TargetFound, *before
	}
	p := hold(v.key, &as, before, v.target.fact.Detail)
	p.Accelerator = v.Accelerator
	return p
}
