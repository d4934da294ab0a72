package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// statesOf sorts pods by state: those that are ready by name, and those that start by age, the
// oldest first. Pods that end, or have ended, are no replicas.
func statesOf(pods []*corev1.Pod) (ready []*corev1.Pod, starting []decision.Starting) {
	byAge := func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	for _, pod := range slices.SortedFunc(slices.Values(pods), byAge) {
		switch serves := condition(pod, corev1.PodReady); {
		case !counts(pod):
		case serves.Status == corev1.ConditionTrue:
			ready = append(ready, pod)
		default:
			scheduled := condition(pod, corev1.PodScheduled)
			starting = append(starting, decision.Starting{
				Name:          pod.Name,
				Since:         begun(pod),
				Placed:        pod.Spec.NodeName != "",
				Node:          pod.Spec.NodeName,
				Held:          inventory.HeldBy(pod) != "",
				Pending:       pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending,
				Marked:        isMarked(pod),
				Failing:       cannotStart(pod),
				Unschedulable: scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable,
			})
		}
	}
	slices.SortFunc(ready, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return ready, starting
}

// begun is since when a pod starts: its creation, when a node was found for it, or when it
// stopped being ready. One that lost its readiness for a moment is not overdue for it, nor
// one for which a node had to come first.
func begun(pod *corev1.Pod) time.Time {
	times := []time.Time{pod.CreationTimestamp.Time, condition(pod, corev1.PodReady).LastTransitionTime.Time}
	if scheduled := condition(pod, corev1.PodScheduled); scheduled.Status == corev1.ConditionTrue {
		times = append(times, scheduled.LastTransitionTime.Time)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// failing are the reasons for which a container waits that time alone does not mend.
var failing = map[string]bool{
	"CrashLoopBackOff":           true,
	"CreateContainerConfigError": true,
	"CreateContainerError":       true,
	"ErrImageNeverPull":          true,
	"ErrImagePull":               true,
	"ImageInspectError":          true,
	"ImagePullBackOff":           true,
	"InvalidImageName":           true,
	"RunContainerError":          true,
}

// cannotStart reports whether a pod that does not serve cannot come up by itself: a
// container of it was restarted, or is kept from starting.
func cannotStart(pod *corev1.Pod) bool {
	return anyContainer(pod, func(s corev1.ContainerStatus) bool {
		return s.RestartCount > 0 || s.State.Waiting != nil && failing[s.State.Waiting.Reason]
	})
}

func anyContainer(pod *corev1.Pod, is func(corev1.ContainerStatus) bool) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, is) || slices.ContainsFunc(pod.Status.ContainerStatuses, is)
}

// condition is one of a pod's conditions, or the zero value.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) (c corev1.PodCondition) {
	if i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind }); i >= 0 {
		c = pod.Status.Conditions[i]
	}
	return c
}

// bySelector says that the target's pods are found by the selector of its scale.
// One that demands no value of any label is not followed: it could take in the pods
// of others.
func (t *target) bySelector(text string) {
	selector, err := labels.Parse(text)
	switch {
	case err != nil:
		t.selectorProblem = fmt.Sprintf("the pods of %s cannot be found: its selector %q: %v", t, text, err)
	case demanded(selector) == "":
		t.selectorProblem = fmt.Sprintf("the pods of %s cannot be found: its selector %q demands no value of any label", t, text)
	default:
		t.selector = selector
	}
}

// demanded is one label that every pod of the selector carries, or empty.
func demanded(selector labels.Selector) string {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if r.Values().Len() == 1 {
				return r.Key() + "=" + r.Values().List()[0]
			}
		}
	}
	return ""
}

// givePods gives the variants the pods of their targets, sorted by name, in one pass
// over all pods. A pod of a kind whose owners are not known meets only the selectors
// that demand one of its labels.
func givePods(pods []*corev1.Pod, variants []*variant) {
	// Whoever makes a pod names its owner, which the API server does not look for. One of another namespace
	// owns nothing here.
	type owned struct {
		namespace string
		owner     types.UID
	}
	owners := map[owned]*variant{}
	wanted := map[string]map[string][]*variant{}
	for _, v := range variants {
		if v.target.scale == nil || v.target.lent {
			continue
		}
		for _, owner := range v.target.owners {
			owners[owned{v.key.Namespace, owner}] = v
		}
		if v.target.selector == nil {
			continue
		}
		here := wanted[v.key.Namespace]
		if here == nil {
			here = map[string][]*variant{}
			wanted[v.key.Namespace] = here
		}
		label := demanded(v.target.selector)
		here[label] = append(here[label], v)
	}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			if v := owners[owned{pod.Namespace, owner.UID}]; v != nil {
				v.pods = append(v.pods, pod)
			}
		}
		here := wanted[pod.Namespace]
		if here == nil {
			continue
		}
		for name, value := range pod.Labels {
			for _, v := range here[name+"="+value] {
				if v.target.selector.Matches(labels.Set(pod.Labels)) {
					v.pods = append(v.pods, pod)
				}
			}
		}
	}
	for _, v := range variants {
		slices.SortFunc(v.pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// mostOwners is one more than the longest known chain: a worker pod, its StatefulSet, the
// leader pod, its StatefulSet, the LeaderWorkerSet.
const mostOwners = 6

// variantsAbove are the objects on the nearest owner of a pod that has some which matter. An
// owner that a reader does not have is looked for in the next: the first one, a cache, may not
// have one that was made a moment ago, with its first pods.
func variantsAbove(
	ctx context.Context, pod *corev1.Pod, matters func(*v1alpha1.VariantAutoscaling) bool, readers ...client.Reader,
) ([]*v1alpha1.VariantAutoscaling, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	for range mostOwners {
		if owner == nil {
			break
		}
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
		all, err := variantsOn(ctx, readers[0], pod.Namespace, targetKey(kind, owner.Name))
		if found := only(all, matters); err != nil || len(found) > 0 {
			return found, err
		}
		if owner, err = ownerOf(ctx, kind, pod.Namespace, owner, readers); err != nil {
			return nil, fmt.Errorf("looking for the owner of a pod: %w", err)
		}
	}
	return nil, nil
}

// ownerOf is the owner of an owner of pods; nil where there is none, or nobody knows.
func ownerOf(ctx context.Context, kind schema.GroupKind, namespace string, of *metav1.OwnerReference, readers []client.Reader) (*metav1.OwnerReference, error) {
	object, followed := map[schema.GroupKind]client.Object{
		appsKind("ReplicaSet"):  &appsv1.ReplicaSet{},
		appsKind("Deployment"):  &appsv1.Deployment{},
		appsKind("StatefulSet"): &appsv1.StatefulSet{},
		{Kind: "Pod"}:           &corev1.Pod{},
	}[kind]
	if !followed {
		return nil, nil //nolint:nilnil // nobody knows its owner, which is no error
	}
	for _, reader := range readers {
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.Name}, object)
		if err == nil && object.GetUID() == of.UID {
			return metav1.GetControllerOf(object), nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // it is gone, which is no error
}

// startsOf are the target's pods as their start-ups tell of them.
func startsOf(pods []*corev1.Pod) []round.Replica {
	replicas := make([]round.Replica, len(pods))
	for i, pod := range pods {
		replicas[i] = round.Replica{
			ID: string(pod.UID), Created: pod.CreationTimestamp.Time, Ends: !counts(pod),
			Restarted: anyContainer(pod, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }),
		}
		if ready := condition(pod, corev1.PodReady); ready.Status == corev1.ConditionTrue {
			replicas[i].Ready = ready.LastTransitionTime.Time
		}
	}
	return replicas
}
