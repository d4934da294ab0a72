package controller

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// statesOf sorts pods by state: those that are ready by name, and those that start by age, the
// oldest first. Pods that end, or have ended, are no replicas.
func statesOf(pods []*corev1.Pod) (ready []*corev1.Pod, starting []decision.Starting) {
	for _, pod := range slices.SortedFunc(slices.Values(pods), byAge) {
		switch serves := condition(pod, corev1.PodReady); {
		case !counts(pod):
		case serves != nil && serves.Status == corev1.ConditionTrue:
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
				Unschedulable: scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable,
			})
		}
	}
	slices.SortFunc(ready, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return ready, starting
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// begun is since when a pod starts: its creation, when a node was found for it, or when it
// stopped being ready. One that lost its readiness for a moment is not overdue for it, nor
// one for which a node had to come first.
func begun(pod *corev1.Pod) time.Time {
	times := []time.Time{pod.CreationTimestamp.Time}
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionTrue {
		times = append(times, scheduled.LastTransitionTime.Time)
	}
	if ready := condition(pod, corev1.PodReady); ready != nil {
		times = append(times, ready.LastTransitionTime.Time)
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

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
