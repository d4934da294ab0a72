package controller

import (
	"context"
	"sync"

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
	// err is nil when the target now asks for the planned replicas.
	err error
}

// act makes the targets ask for what the plan wants, where the user left that to us.
// A target that already asks for it is not written. What went wrong is put into the
// plan.
func (a *actor) act(ctx context.Context, plan *decision.Plan, seen *observation) map[decision.Key]outcome {
	outcomes := map[decision.Key]outcome{}
	var lock sync.Mutex
	var group errgroup.Group
	group.SetLimit(writes)
	each(plan, func(p *decision.VariantPlan) {
		v := seen.variants[p.Key]
		if !changes(p, v, seen.policy.Variant(p.Key)) {
			return
		}
		group.Go(func() error {
			scale, err := a.scaler.Write(ctx, p.Key.Namespace, v.target.ref, v.target.scale, int32(*p.Desired))
			lock.Lock()
			defer lock.Unlock()
			outcomes[p.Key] = outcome{err: err}
			a.record(ctx, p, scale, err)
			return nil
		})
	})
	_ = group.Wait()
	return outcomes
}

// changes reports whether the plan asks for a write.
func changes(p *decision.VariantPlan, v *variant, policy decision.VariantPolicy) bool {
	return v.target.state == decision.TargetFound && v.target.scale != nil &&
		policy.Actuation == decision.ActuationScale &&
		p.Desired != nil && *p.Desired != p.Current
}

func (a *actor) record(ctx context.Context, p *decision.VariantPlan, scale *autoscalingv1.Scale, err error) {
	log := klog.FromContext(ctx).WithValues("variant", klog.KRef(p.Key.Namespace, p.Key.Name), "from", p.Current, "to", *p.Desired)
	if err == nil {
		a.overlay.scales[scale.UID] = scale
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
