package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// server is a pod of this age in seconds at noon.
func server(name string, age int, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(age) * time.Second))}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// readyAfter makes a pod ready so many seconds after its creation.
func readyAfter(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = "node"
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(pod.CreationTimestamp.Add(time.Duration(seconds) * time.Second)),
		})
	}
}

func restartedOnce(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
}

func scheduledCondition(status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: status, Reason: reason})
	}
}

func TestStatesOfPods(t *testing.T) {
	serving, starting := statesOf([]*corev1.Pod{
		server("b-ready", 90, readyAfter(30)),
		server("a-ready", 50, readyAfter(40)),
		server("young", 5, func(p *corev1.Pod) { p.Spec.NodeName = "node" }),
		server("homeless", 60, scheduledCondition(corev1.ConditionFalse, corev1.PodReasonUnschedulable)),
		server("nominated", 65, scheduledCondition(corev1.ConditionFalse, corev1.PodReasonUnschedulable), func(p *corev1.Pod) {
			p.Status.NominatedNodeName = "node"
		}),
		server("marked", 64, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "node", corev1.PodPending
			p.Annotations = map[string]string{v1alpha1.AnnotationVictim: ""}
		}),
		server("gated", 70, scheduledCondition(corev1.ConditionFalse, corev1.PodReasonSchedulingGated)),
		server("was-ready", 80, func(p *corev1.Pod) {
			p.Spec.NodeName = "node"
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}),
		server("leaving", 10, readyAfter(1), func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }),
		server("evicted", 10, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		server("done", 10, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
	})
	var ready []string
	for _, pod := range serving {
		ready = append(ready, pod.Name)
	}
	assert.Equal(t, []string{"a-ready", "b-ready"}, ready)
	at := func(age int) time.Time { return noon.Add(-time.Duration(age) * time.Second) }
	assert.Equal(t, []decision.Starting{
		{Name: "was-ready", Since: at(80), Placed: true, Node: "node", Held: true},
		{Name: "gated", Since: at(70)},
		{Name: "nominated", Since: at(65), Held: true, Unschedulable: true},
		{Name: "marked", Since: at(64), Placed: true, Node: "node", Held: true, Pending: true, Marked: true},
		{Name: "homeless", Since: at(60), Unschedulable: true},
		{Name: "young", Since: at(5), Placed: true, Node: "node", Held: true},
	}, starting)
}

// Whoever makes a pod may name any owner in it, also one that is in another namespace.
func TestAnOwnerOwnsNothingInAnotherNamespace(t *testing.T) {
	of := func(namespace string) *corev1.Pod {
		pod := server("of-"+namespace, 60)
		pod.Namespace = namespace
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "set", UID: "set", Controller: ptr.To(true)}}
		return pod
	}
	v := &variant{key: decision.Key{Namespace: "victim", Name: "v"}, target: target{scale: &autoscalingv1.Scale{}, owners: []types.UID{"set"}}}
	own := of("victim")
	givePods([]*corev1.Pod{of("theirs"), own}, []*variant{v})
	assert.Equal(t, []*corev1.Pod{own}, v.pods)
}

func TestReplicasThatCannotComeUp(t *testing.T) {
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "long"}}}
	}
	cases := []struct {
		name             string
		init, containers []corev1.ContainerStatus
		want             bool
	}{
		{"nothing is known yet", nil, nil, false},
		{"containers are being made", nil, []corev1.ContainerStatus{waiting("ContainerCreating")}, false},
		{"an init container is at work", nil, []corev1.ContainerStatus{waiting("PodInitializing")}, false},
		{"it keeps crashing", nil, []corev1.ContainerStatus{{}, waiting("CrashLoopBackOff")}, true},
		{"it was restarted", nil, []corev1.ContainerStatus{{RestartCount: 1}}, true},
		{"no such image", nil, []corev1.ContainerStatus{waiting("ErrImagePull")}, true},
		{"no such image for long", nil, []corev1.ContainerStatus{waiting("ImagePullBackOff")}, true},
		{"a ConfigMap is missing", nil, []corev1.ContainerStatus{waiting("CreateContainerConfigError")}, true},
		{"an init container keeps crashing", []corev1.ContainerStatus{waiting("CrashLoopBackOff")}, nil, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := server("p", 60, func(p *corev1.Pod) { p.Status.InitContainerStatuses, p.Status.ContainerStatuses = c.init, c.containers })
			slim, err := stripPod(pod)
			require.NoError(t, err)
			for _, pod := range []any{pod, slim} {
				_, starting := statesOf([]*corev1.Pod{pod.(*corev1.Pod)})
				require.Len(t, starting, 1)
				assert.Equal(t, c.want, starting[0].Failing)
			}
		})
	}
}
