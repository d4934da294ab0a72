package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// requests is how many requests to the API server are on their way at once.
const requests = 16

// writeTimeout bounds one write of a scale, for which the round and all other targets wait, and
// writePause is how long a target is left alone whose write took longer: a few fast rounds.
const (
	writeTimeout = 5 * time.Second
	writePause   = 3 * decision.FastInterval
)

var errLate = fmt.Errorf("no answer within %s from the API server or an admission webhook of its scale; tried again after %s", writeTimeout, writePause)

// lateWrite is a write that took too long. Whether it came true is seen by the next rounds.
type lateWrite struct {
	until time.Time
	err   error
}

// sideBySide does so many things, some at a time, and returns when all are done.
func sideBySide(count int, do func(i int)) {
	workqueue.ParallelizeUntil(context.Background(), requests, count, do)
}

// actor writes scale subresources, and before it lowers one marks the pods that are to
// go.
type actor struct {
	scaler  Scaler
	marker  *marker
	overlay *overlay
	// late are the writes that took too long, by the UID of the target.
	late map[types.UID]lateWrite
	// access is what is permitted in this round.
	access Access
}

// outcome is what became of a plan that asked for a change.
type outcome struct {
	// scale is the target's since; err is nil when it asks for the planned replicas.
	scale *autoscalingv1.Scale
	err   error
	// unmarked says which of the chosen pods could not be marked, so that Kubernetes
	// chose in their place.
	unmarked error
}

// act makes the targets ask for what the plan wants, where the user left that to us, in turns between their
// namespaces.
// A target that already asks for it is not written. What went wrong is put into the
// plan.
func (a *actor) act(ctx context.Context, plan *decision.Plan, seen *observation) map[decision.Key]outcome {
	var asked []*decision.VariantPlan
	plan.Each(func(p *decision.VariantPlan) {
		if changes(p, seen.variants[p.Key], seen.policy.Variant(p.Key)) {
			asked = append(asked, p)
		}
	})
	inTurns(asked, func(p *decision.VariantPlan) string { return p.Key.Namespace })
	maps.DeleteFunc(a.late, func(_ types.UID, l lateWrite) bool { return !plan.Time.Before(l.until) })
	results := make([]outcome, len(asked))
	sideBySide(len(asked), func(i int) { results[i] = a.scale(ctx, asked[i], seen.variants[asked[i].Key]) })
	outcomes := make(map[decision.Key]outcome, len(asked))
	for i, p := range asked {
		outcomes[p.Key] = results[i]
		a.record(ctx, p, results[i])
		if uid, err := seen.variants[p.Key].target.scale.UID, results[i].err; errors.Is(err, errLate) && a.late[uid].err == nil {
			a.late[uid] = lateWrite{plan.Time.Add(writeTimeout + writePause), err}
		}
	}
	a.tidy(ctx, plan, seen, outcomes)
	return outcomes
}

// scale writes one scale. The pods that are to go are marked first, because their
// controller looks at the marks when the scale is lowered and never again. A mark that
// fails delays nothing: too many replicas cost more than the wrong ones. Marks without
// the lower scale are taken back by tidy.
func (a *actor) scale(ctx context.Context, p *decision.VariantPlan, v *variant) outcome {
	t := &v.target
	if l, late := a.late[t.scale.UID]; late {
		return outcome{err: l.err}
	}
	var o outcome
	if *p.Desired < p.Current {
		// The plan names victims when the choice is ours.
		victims := only(v.pods, func(pod *corev1.Pod) bool { return counts(pod) && slices.Contains(p.Victims, pod.Name) })
		o.unmarked = a.marker.write(ctx, victims, withMark)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	o.scale, o.err = a.scaler.Write(ctx, p.Key.Namespace, t.ref, t.scale, *status.Number(*p.Desired))
	if o.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.err = fmt.Errorf("%w: %w", errLate, o.err)
	}
	return o
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
		log.Info("Scaled", "reason", p.Reason, "message", sentence.Of(p.Message), "victims", p.Victims)
		if o.unmarked != nil {
			log.Error(o.unmarked, "Some pods could not be marked for removal, so Kubernetes chose others in their place")
		}
		return
	}
	log.Error(err, "Scaling failed")
	reason := decision.Reason(v1alpha1.ReasonOptimizationFailed)
	switch {
	case apierrors.IsForbidden(err):
		reason = decision.ReasonTargetForbidden
	case apierrors.IsNotFound(err):
		reason, p.Desired = decision.ReasonTargetMissing, nil
	}
	p.Facts = append(p.Facts, decision.Fact{Reason: reason, Detail: decision.Words(err.Error())})
}

// overlay remembers what was written until the cache has seen it, so that a round
// that follows a write at once does not decide on, nor write over, what was before.
type overlay struct {
	scales   written[*autoscalingv1.Scale]
	variants written[*v1alpha1.VariantAutoscaling]
}

func newOverlay() *overlay {
	return &overlay{scales: written[*autoscalingv1.Scale]{}, variants: written[*v1alpha1.VariantAutoscaling]{}}
}

// written are objects as they were written last.
type written[T metav1.Object] map[types.UID]T

// over is what was written when that is newer than what was read. Versions that cannot be
// compared leave the cache in its right.
func (w written[T]) over(read T) T {
	ours, ok := w[read.GetUID()]
	if !ok {
		return read
	}
	order, err := resourceversion.CompareResourceVersion(ours.GetResourceVersion(), read.GetResourceVersion())
	if err == nil && order > 0 {
		return ours
	}
	delete(w, read.GetUID())
	return read
}

// forget drops what was written to objects that are gone, and returns those that are there.
func (o *overlay) forget(seen *observation) (there map[types.UID]bool) {
	there = map[types.UID]bool{}
	for _, v := range seen.variants {
		there[v.object.UID] = true
		if v.target.scale != nil {
			there[v.target.scale.UID] = true
		}
	}
	maps.DeleteFunc(o.scales, func(uid types.UID, _ *autoscalingv1.Scale) bool { return !there[uid] })
	maps.DeleteFunc(o.variants, func(uid types.UID, _ *v1alpha1.VariantAutoscaling) bool { return !there[uid] })
	return there
}
