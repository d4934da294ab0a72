package controller

import (
	"context"

	"golang.org/x/sync/errgroup"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// writes is how many scales are written side by side.
const writes = 16

// actor writes scale subresources.
type actor struct {
	scaler  Scaler
	overlay *overlay
}

// outcome is what became of a plan that asked for a change.
type outcome struct {
	// scale is the target's since; err is nil when it asks for the planned replicas.
	scale *autoscalingv1.Scale
	err   error
}

// act makes the targets ask for what the plan wants, where the user left that to us.
// A target that already asks for it is not written. What went wrong is put into the
// plan.
func (a *actor) act(ctx context.Context, plan *decision.Plan, seen *observation) map[decision.Key]outcome {
	var asked []*decision.VariantPlan
	each(plan, func(p *decision.VariantPlan) {
		if changes(p, seen.variants[p.Key], seen.policy.Variant(p.Key)) {
			asked = append(asked, p)
		}
	})
	results := make([]outcome, len(asked))
	var group errgroup.Group
	group.SetLimit(writes)
	for i, p := range asked {
		group.Go(func() error {
			t := &seen.variants[p.Key].target
			results[i].scale, results[i].err = a.scaler.Write(ctx, p.Key.Namespace, t.ref, t.scale, int32(*p.Desired))
			return nil
		})
	}
	_ = group.Wait()
	outcomes := make(map[decision.Key]outcome, len(asked))
	for i, p := range asked {
		outcomes[p.Key] = results[i]
		a.record(ctx, p, results[i])
	}
	return outcomes
}

// changes reports whether the plan asks for a write.
func changes(p *decision.VariantPlan, v *variant, policy decision.VariantPolicy) bool {
	return v.target.state == decision.TargetFound && v.target.scale != nil &&
		policy.Actuation == decision.ActuationScale &&
		p.Desired != nil && *p.Desired != p.Current
}

func (a *actor) record(ctx context.Context, p *decision.VariantPlan, o outcome) {
	err := o.err
	log := klog.FromContext(ctx).WithValues("variant", klog.KRef(p.Key.Namespace, p.Key.Name), "from", p.Current, "to", *p.Desired)
	if err == nil {
		a.overlay.scales[o.scale.UID] = o.scale
		log.Info("Scaled", "reason", p.Reason, "message", p.Message)
		return
	}
	log.Error(err, "Scaling failed")
	switch {
	case apierrors.IsForbidden(err):
		p.Facts = append(p.Facts, decision.Fact{Reason: decision.ReasonTargetForbidden, Detail: err.Error()})
	case apierrors.IsNotFound(err):
		p.Facts = append(p.Facts, decision.Fact{Reason: decision.ReasonTargetMissing, Detail: err.Error()})
		p.Desired = nil
	default:
		p.Facts = append(p.Facts, decision.Fact{Reason: v1alpha1.ReasonOptimizationFailed, Detail: err.Error()})
	}
}
