package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/variantstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/plugins/acceleratorplacement"
)

// realScheduler is Kubernetes' scheduler with the shipped profile, on caches that
// the test fills.
type realScheduler struct {
	*scheduler.Scheduler
	profile framework.Framework
}

func newRealScheduler(t *testing.T) *realScheduler {
	t.Helper()
	return newSchedulerOf(t, "scheduler")
}

func newSchedulerOf(t *testing.T, folder string) *realScheduler {
	t.Helper()
	sched, err := tryScheduler(t, load(t, folder).Profiles)
	require.NoError(t, err)
	return &realScheduler{Scheduler: sched, profile: sched.Profiles[profileName]}
}

func tryScheduler(t *testing.T, profiles []schedulerconfig.KubeSchedulerProfile) (*scheduler.Scheduler, error) {
	t.Helper()
	metrics.Register()
	ctx := t.Context()
	client := fake.NewClientset(replicaSet("h100"), replicaSet("a100"))
	factory := newInformerFactory(client)
	registry := frameworkruntime.Registry{acceleratorplacement.Name: acceleratorplacement.New}
	recorder := profile.RecorderFactory(func(string) events.EventRecorderLogger { return events.NewFakeRecorder(1000) })
	sched, err := scheduler.New(ctx, client, factory, nil, recorder,
		scheduler.WithKubeConfig(variantstest.Serve(t, variant("h100", "H100"), variant("a100", "A100"))),
		scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return sched, sched.WaitForHandlersSync(ctx)
}

// place schedules the pod and returns its node, or the reason why there is none.
func (s *realScheduler) place(t *testing.T, pod *corev1.Pod) (string, error) {
	t.Helper()
	info, err := framework.NewPodInfo(pod)
	require.NoError(t, err)
	queued := &framework.QueuedPodInfo{PodInfo: info}
	// A cycle begins with what the cache holds now.
	snapshot, ok := s.profile.SnapshotSharedLister().(*cache.Snapshot)
	require.True(t, ok)
	require.NoError(t, s.Cache.UpdateSnapshot(klog.Background(), snapshot))
	result, err := s.SchedulePod(context.Background(), s.profile, framework.NewCycleState(), queued)
	if err != nil {
		return "", err
	}
	pod.Spec.NodeName = result.SuggestedHost
	require.NoError(t, s.Cache.AddPod(klog.Background(), pod))
	return result.SuggestedHost, nil
}

// tryBy is place by the profile that the pod names.
func (s *realScheduler) tryBy(t *testing.T, pod *corev1.Pod) (string, error) {
	t.Helper()
	profile := s.Profiles[pod.Spec.SchedulerName]
	require.NotNil(t, profile, pod.Spec.SchedulerName)
	by := *s
	by.profile = profile
	return by.place(t, pod)
}

// placeBy is tryBy for a pod that finds a node.
func (s *realScheduler) placeBy(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	host, err := s.tryBy(t, pod)
	require.NoError(t, err)
	return host
}

func replicaSet(variant string) *appsv1.ReplicaSet {
	controller := true
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "llm", Name: variant + "-1", UID: types.UID(variant + "-1"),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: variant, UID: "d", Controller: &controller}},
	}}
}

func variant(name, accelerator string) v1alpha1.VariantAutoscaling {
	return v1alpha1.VariantAutoscaling{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", Accelerator: accelerator, ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}},
	}
}

func gpuNode(name, product string, devices int64) *corev1.Node {
	quantity := func(v int64) resource.Quantity { return *resource.NewQuantity(v, resource.DecimalSI) }
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": quantity(16), "memory": quantity(64 << 30), "pods": quantity(10)},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if devices > 0 {
		n.Status.Allocatable["nvidia.com/gpu"] = quantity(devices)
	}
	if product != "" {
		n.Labels["nvidia.com/gpu.product"] = product
	}
	return n
}

// replica is one pod of a variant's template, made as its controller would.
func replica(variant string, serial int, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = "llm", fmt.Sprintf("%s-%d", variant, serial)
	pod.UID, pod.CreationTimestamp = types.UID(pod.Name), metav1.NewTime(time.Now())
	pod.Spec.SchedulerName = profileName
	if variant != "" {
		rs, controller := replicaSet(variant), true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: &controller}}
	}
	return pod
}

func template(devices, cpu, memoryGiB int64) *corev1.PodTemplateSpec {
	requests := corev1.ResourceList{}
	for name, v := range map[corev1.ResourceName]int64{"nvidia.com/gpu": devices, "cpu": cpu, "memory": memoryGiB << 30} {
		if v > 0 {
			requests[name] = *resource.NewQuantity(v, resource.DecimalSI)
		}
	}
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server", Resources: corev1.ResourceRequirements{Requests: requests}}}}}
}

var products = []string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"}

func TestTheRealSchedulerPacksOnTheRightAccelerator(t *testing.T) {
	s := newRealScheduler(t)
	for i := range 4 {
		s.Cache.AddNode(klog.Background(), gpuNode(fmt.Sprintf("h%d", i), products[0], 8))
		s.Cache.AddNode(klog.Background(), gpuNode(fmt.Sprintf("a%d", i), products[1], 8))
		s.Cache.AddNode(klog.Background(), gpuNode(fmt.Sprintf("c%d", i), "", 0))
	}
	hosts := map[string]int{}
	for i := range 8 {
		host, err := s.place(t, replica("h100", i, template(1, 1, 1)))
		require.NoError(t, err)
		assert.Equal(t, "h", host[:1])
		hosts[host]++
	}
	assert.Len(t, hosts, 1, "eight replicas of one device share a node: %v", hosts)
	for i := range 2 {
		host, err := s.place(t, replica("a100", i, template(4, 1, 1)))
		require.NoError(t, err)
		assert.Equal(t, "a", host[:1])
		hosts[host]++
	}
	assert.Len(t, hosts, 2, "so do two of four: %v", hosts)
	host, err := s.place(t, replica("", 100, template(0, 1, 1)))
	require.NoError(t, err)
	assert.Equal(t, "c", host[:1], "a pod without devices stays off accelerator nodes")
}

// One Filter or Score plugin without a signature would turn batching off for every
// pod of the profile.
func TestTheProfileKeepsBatching(t *testing.T) {
	s := newRealScheduler(t)
	sign := func(pod *corev1.Pod) string { return string(s.profile.SignPod(context.Background(), pod)) }
	first := sign(replica("h100", 1, template(8, 1, 1)))
	assert.NotEmpty(t, first)
	assert.Equal(t, first, sign(replica("h100", 2, template(8, 1, 1))))
	assert.NotEqual(t, first, sign(replica("a100", 1, template(8, 1, 1))))
}
