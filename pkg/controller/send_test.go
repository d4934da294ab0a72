package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/settings"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// known is a controller whose cache has some objects, and whose API server has others
// too.
func known(t *testing.T, cached, live []client.Object) *Controller {
	t.Helper()
	build := func(objects []client.Object) client.Reader {
		builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(objects...)
		require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
		return builder.Build()
	}
	c := &Controller{
		follower: &settings.Follower{Names: &inventory.Names{}, Settings: settings.Of(config.Dynamic{})},
		access:   Access{Capacity: true}, cached: build(cached), live: build(append(live, cached...)),
	}
	c.config.ControllerInstance, c.config.Webhook.Scheduler = "blue", "packer"
	return c
}

// on is an object of the controller on a target.
func on(name, apiVersion, kind, target string, age int) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: name, Labels: map[string]string{v1alpha1.LabelControllerInstance: "blue"},
			CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(age) * time.Hour)),
		},
		Spec: v1alpha1.VariantAutoscalingSpec{ModelID: "m", ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: apiVersion, Kind: kind, Name: target}},
	}
}

// made is what an object that another one made says of itself. Its UID is its name.
func made(name, byAPI, byKind, by string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}
	if by != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: byAPI, Kind: byKind, Name: by, UID: types.UID(by), Controller: ptr.To(true)}}
	}
	return meta
}

func TestThePodsOfAVariant(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: made("set", "apps/v1", "Deployment", "d")}
	again := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "set", UID: "another"}}
	deployment := &appsv1.Deployment{ObjectMeta: made("d", "llamastack.io/v1alpha2", "LlamaStackDistribution", "stack")}
	pod := made("pod", "apps/v1", "ReplicaSet", "set")
	onDeployment := on("v", "apps/v1", "Deployment", "d", 1)
	theirs := on("theirs", "apps/v1", "Deployment", "d", 9)
	theirs.Labels = nil
	elsewhere := on("v", "apps/v1", "Deployment", "d", 1)
	elsewhere.Namespace = "other"
	groups := []client.Object{
		&appsv1.StatefulSet{ObjectMeta: made("workers", "v1", "Pod", "leader")},
		&corev1.Pod{ObjectMeta: made("leader", "apps/v1", "StatefulSet", "leaders")},
		&appsv1.StatefulSet{ObjectMeta: made("leaders", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "group")},
	}
	for name, c := range map[string]struct {
		pod          metav1.ObjectMeta
		cached, live []client.Object
		want         string
	}{
		"of a Deployment":                        {pod, []client.Object{set, deployment, onDeployment}, nil, "v"},
		"of a ReplicaSet that was made just now": {pod, []client.Object{deployment, onDeployment}, []client.Object{set}, "v"},
		"of a ReplicaSet that was made again":    {pod, []client.Object{again, deployment, onDeployment}, nil, ""},
		"of a ReplicaSet that is gone":           {pod, []client.Object{deployment, onDeployment}, nil, ""},
		"of a ReplicaSet itself":                 {pod, []client.Object{set, on("v", "apps/v1", "ReplicaSet", "set", 1)}, nil, "v"},
		"of what made the Deployment":            {pod, []client.Object{set, deployment, on("v", "llamastack.io/v1alpha1", "LlamaStackDistribution", "stack", 1)}, nil, "v"},
		"of a worker of a group":                 {made("pod", "apps/v1", "StatefulSet", "workers"), append(groups, on("v", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "group", 1)), nil, "v"},
		"the oldest of several":                  {pod, []client.Object{set, deployment, on("young", "apps/v1", "Deployment", "d", 0), onDeployment}, nil, "v"},
		"not of another controller's":            {pod, []client.Object{set, deployment, theirs}, nil, ""},
		"not of another namespace's":             {pod, []client.Object{set, deployment, elsewhere}, nil, ""},
		"of nobody":                              {made("pod", "", "", ""), []client.Object{onDeployment}, nil, ""},
		"of a Job":                               {made("pod", "batch/v1", "Job", "d"), []client.Object{onDeployment}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := known(t, c.cached, c.live).variantOf(t.Context(), &corev1.Pod{ObjectMeta: c.pod})
			require.NoError(t, err)
			got := ""
			if v != nil {
				got = v.Name
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A pod goes to the nodes of its variant's accelerator; one whose object and template
// contradict themselves is left alone.
func TestSend(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: made("set", "apps/v1", "Deployment", "d")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "h100", Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
	}
	v := on("v", "apps/v1", "Deployment", "d", 1)
	v.Spec.Accelerator = "H100"
	pod := &corev1.Pod{ObjectMeta: made("pod", "apps/v1", "ReplicaSet", "set"), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
	}}}}
	c := known(t, []client.Object{set, node, v}, nil)
	sent, why, err := c.Send(t.Context(), pod)
	require.NoError(t, err)
	require.NotNil(t, sent, why)
	assert.Equal(t, "packer", sent.SchedulerName)
	assert.Equal(t, []string{"NVIDIA-H100-80GB-HBM3"},
		sent.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values)

	pod.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-L40S"}
	sent, why, err = c.Send(t.Context(), pod)
	require.NoError(t, err)
	assert.Nil(t, sent)
	assert.Equal(t, "it selects L40S nodes", why)

	c.config.WatchNamespace = "other"
	sent, why, err = c.Send(t.Context(), pod)
	require.NoError(t, err)
	assert.Nil(t, sent)
	assert.Empty(t, why, "it is no affair of this manager")
}

// What the cache has of an object that is gone, or held by a finalizer, refuses nobody.
func TestAround(t *testing.T) {
	first, gone := on("first", "apps/v1", "Deployment", "d", 1), on("gone", "apps/v1", "Deployment", "d", 1)
	held := on("held", "apps/v1", "Deployment", "d", 1)
	c := known(t, []client.Object{first, gone, held, on("other", "apps/v1", "Deployment", "e", 1)}, nil)
	held.DeletionTimestamp, held.Finalizers = ptr.To(metav1.NewTime(noon)), []string{"example.com/waits"}
	builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(first, held)
	c.live = builder.Build()
	around, err := c.Around(t.Context(), on("new", "", "", "d", 0))
	require.NoError(t, err)
	require.Len(t, around.Variants, 1)
	assert.Equal(t, "first", around.Variants[0].Name)
}
