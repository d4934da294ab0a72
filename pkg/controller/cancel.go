package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// A mark is right as long as its pod is still to go: the target has more pods than
// it asks for. Whatever calls a scale-down off (a write that failed, a scale that was
// raised again by us or by others, a change of spec.victims, a manager that ended
// between the mark and the write) shows in the cluster by a mark that is not right,
// so nothing has to be remembered.

// calledOff are the marked pods of the variant that need not go any more, given the
// replicas that its target asks for and the pods that were chosen in this round. As
// many stay marked as there are pods too many: a scale-down that is under way is not
// chosen anew.
func calledOff(v *variant, replicas int, victims []string) []*corev1.Pod {
	with := only(v.pods, func(pod *corev1.Pod) bool { return counts(pod) && isMarked(pod) })
	if len(with) == 0 || !v.picks {
		return with
	}
	active := only(v.pods, counts)
	fresh := only(active, func(pod *corev1.Pod) bool { return !isMarked(pod) && slices.Contains(victims, pod.Name) })
	// The chosen of this round come first, and the others in the order of their names.
	slices.SortStableFunc(with, func(a, b *corev1.Pod) int {
		return rank(victims, a.Name) - rank(victims, b.Name)
	})
	return with[min(len(with), max(0, len(active)-replicas-len(fresh))):]
}

func rank(victims []string, name string) int {
	if i := slices.Index(victims, name); i >= 0 {
		return i
	}
	return len(victims)
}

func isMarked(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[v1alpha1.AnnotationVictim]
	return ok
}

// counts reports whether a pod is one of its controller's replicas.
func counts(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// strays are the marked pods whose target no object scales any more, ours or that of
// another instance.
func (o *observer) strays(ctx context.Context, seen *observation) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := o.reader.List(ctx, &list, client.InNamespace(o.namespace), client.MatchingFields{indexVictim: marked}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods that were chosen to go: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	known := map[types.UID]bool{}
	for _, v := range seen.variants {
		for _, pod := range v.pods {
			known[pod.UID] = true
		}
	}
	var strays []*corev1.Pod
	for _, pod := range pointers(list.Items) {
		if known[pod.UID] || !counts(pod) {
			continue
		}
		above, err := variantsAbove(ctx, pod, func(*v1alpha1.VariantAutoscaling) bool { return true }, o.reader)
		if err != nil {
			return nil, err
		}
		if len(above) == 0 {
			strays = append(strays, pod)
		}
	}
	return strays, nil
}

// tidy takes back the marks that are not right any more. What fails is tried again in
// the next round.
func (a *actor) tidy(ctx context.Context, plan *decision.Plan, seen *observation, outcomes map[decision.Key]outcome) {
	if !a.access.Victims {
		return
	}
	off := seen.strays
	plan.Each(func(p *decision.VariantPlan) {
		v := seen.variants[p.Key]
		if v.target.scale == nil {
			return
		}
		replicas, victims := v.target.scale.Spec.Replicas, []string(nil)
		if o := outcomes[p.Key]; o.err == nil && o.scale != nil {
			replicas, victims = o.scale.Spec.Replicas, p.Victims
		}
		off = append(off, calledOff(v, int(replicas), victims)...)
	})
	if len(off) == 0 {
		return
	}
	if err := a.marker.write(ctx, off, withoutMark); err != nil {
		klog.FromContext(ctx).Error(err, "The deletion cost of pods that stay could not be restored; tried again in the next round")
		return
	}
	klog.FromContext(ctx).Info("A scale-down was cancelled; the deletion cost of its pods is restored", "pods", klog.KObjSlice(off))
}
