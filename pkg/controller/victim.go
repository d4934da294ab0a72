package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// markTimeout bounds the marking for one scale-down: which replicas go is worth
	// less than that some do.
	markTimeout = 5 * time.Second
	// markAttempts is how often a mark is tried while only the pod's status moves.
	markAttempts = 5
)

// leftToUs reports whether which replicas of the variant go is our choice: the
// controller of its pods heeds their deletion cost, and nobody said otherwise. While a
// rolling update is under way its own rules decide.
func (v *variant) leftToUs(policy decision.VariantPolicy, access Access) bool {
	t := &v.target
	return access.Victims && t.costed && !t.rollout.UnderWay && t.state == decision.TargetFound &&
		policy.Actuation == decision.ActuationScale && v.object.Spec.Victims != v1alpha1.VictimsKubernetes
}

// victimCost is the deletion cost of a pod that is to go: the least that there is, so
// that it beats what users gave other pods.
var victimCost = strconv.Itoa(math.MinInt32)

// marker writes and takes back the marks on pods that are to go: their deletion cost,
// and in an annotation of ours the cost that they had before.
type marker struct {
	writer client.Writer
	// live reads pods from the API server.
	live client.Reader
}

// write edits the annotations of all of the pods, withMark or withoutMark, or says of which it
// could not. A pod that is gone needs no edit, and neither does one that is as it should be.
func (m *marker) write(ctx context.Context, pods []*corev1.Pod, edit func(map[string]string) map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	errs := make([]error, len(pods))
	sideBySide(len(pods), func(i int) { errs[i] = m.change(ctx, pods[i], edit) })
	return errors.Join(errs...)
}

// change edits a pod's annotations under the version on which the edit rests.
func (m *marker) change(ctx context.Context, pod *corev1.Pod, edit func(map[string]string) map[string]any) error {
	seen := &pod.ObjectMeta
	for range markAttempts {
		annotations := edit(seen.Annotations)
		if annotations == nil || seen.DeletionTimestamp != nil {
			return nil
		}
		err := m.patch(ctx, seen, annotations)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("writing %s of pod %s/%s: %w", corev1.PodDeletionCost, pod.Namespace, pod.Name, err)
		}
		read := &corev1.Pod{}
		err = m.live.Get(ctx, client.ObjectKeyFromObject(pod), read)
		if apierrors.IsNotFound(err) || err == nil && read.UID != pod.UID {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		seen = &read.ObjectMeta
	}
	return fmt.Errorf("writing %s of pod %s/%s: it changes faster than it can be written", corev1.PodDeletionCost, pod.Namespace, pod.Name)
}

// patch writes annotations, of which a nil value is none, and leaves all others: the cache does
// not keep them.
func (m *marker) patch(ctx context.Context, seen *metav1.ObjectMeta, annotations map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": seen.UID, "resourceVersion": seen.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
	return m.writer.Patch(ctx, pod, client.RawPatch(types.MergePatchType, body), client.FieldOwner(component))
}

// withMark is what has to be written so that the pod goes first; nil means nothing.
func withMark(now map[string]string) map[string]any {
	_, ours := now[v1alpha1.AnnotationVictim]
	if ours && now[corev1.PodDeletionCost] == victimCost {
		return nil
	}
	return map[string]any{
		corev1.PodDeletionCost:    victimCost,
		v1alpha1.AnnotationVictim: now[corev1.PodDeletionCost],
	}
}

// withoutMark is what has to be written so that the pod is as it was before; nil means
// nothing. A cost that somebody gave it since stays.
func withoutMark(now map[string]string) map[string]any {
	before, ours := now[v1alpha1.AnnotationVictim]
	if !ours {
		return nil
	}
	change := map[string]any{v1alpha1.AnnotationVictim: nil}
	switch {
	case now[corev1.PodDeletionCost] != victimCost:
	case before == "":
		change[corev1.PodDeletionCost] = nil
	default:
		change[corev1.PodDeletionCost] = before
	}
	return change
}

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

// strays are the marked ones of all pods whose target no object scales any more, ours or that of
// another instance.
func (o *observer) strays(ctx context.Context, seen *observation, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	with := only(pods, func(pod *corev1.Pod) bool {
		return isMarked(pod) && counts(pod) && (o.namespace == "" || pod.Namespace == o.namespace)
	})
	if len(with) == 0 {
		return nil, nil
	}
	known := map[types.UID]bool{}
	for _, v := range seen.variants {
		for _, pod := range v.pods {
			known[pod.UID] = true
		}
	}
	var strays []*corev1.Pod
	for _, pod := range with {
		if known[pod.UID] {
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
