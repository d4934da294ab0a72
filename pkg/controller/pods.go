package controller

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// startupSamples is how many of the latest start-ups make the median.
const startupSamples = 9

// podStates are a target's pods by what they do.
type podStates struct {
	// ready are sorted by name.
	ready []*corev1.Pod
	// starting are sorted by age, the oldest first.
	starting []decision.Starting
	// startup is the median time from creation to readiness of the pods that became
	// ready last; 0 when none shows it.
	startup time.Duration
}

// statesOf sorts pods by state. Pods that end, or have ended, are no replicas.
func statesOf(pods []*corev1.Pod) podStates {
	var s podStates
	for _, pod := range pods {
		switch ready := condition(pod, corev1.PodReady); {
		case !counts(pod):
		case ready != nil && ready.Status == corev1.ConditionTrue:
			s.ready = append(s.ready, pod)
		default:
			scheduled := condition(pod, corev1.PodScheduled)
			s.starting = append(s.starting, decision.Starting{
				Name:          pod.Name,
				Created:       pod.CreationTimestamp.Time,
				Placed:        pod.Spec.NodeName != "",
				Node:          pod.Spec.NodeName,
				Held:          inventory.HeldBy(pod) != "",
				Pending:       pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending,
				Marked:        isMarked(pod),
				Stuck:         stuck(pod),
				Unschedulable: scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable,
			})
		}
	}
	slices.SortFunc(s.ready, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.starting, func(a, b decision.Starting) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	s.startup = medianStartup(s.ready)
	return s
}

// medianStartup leaves out pods with restarts: their readiness is not their first.
func medianStartup(ready []*corev1.Pod) time.Duration {
	type start struct {
		at   time.Time
		took time.Duration
	}
	var starts []start
	for _, pod := range ready {
		at := condition(pod, corev1.PodReady).LastTransitionTime.Time
		if took := at.Sub(pod.CreationTimestamp.Time); took > 0 && !restarted(pod) {
			starts = append(starts, start{at, took})
		}
	}
	if len(starts) == 0 {
		return 0
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.took, b.took)) })
	starts = starts[:min(len(starts), startupSamples)]
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.took, b.took) })
	return starts[len(starts)/2].took
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

// stuck reports whether a pod that does not serve cannot come up by itself: a
// container of it was restarted, or is kept from starting.
func stuck(pod *corev1.Pod) bool {
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			if s.RestartCount > 0 || s.State.Waiting != nil && failing[s.State.Waiting.Reason] {
				return true
			}
		}
	}
	return false
}

func restarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
