package controller

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// indexed reads from client-go's own indexers, as the cache of a manager does.
type indexed map[reflect.Type]toolscache.Indexer

// collect gathers the indexes that the controller asks for.
func (x indexed) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	return x.of(object).AddIndexers(toolscache.Indexers{field: func(o any) ([]string, error) {
		one := o.(client.Object)
		var keys []string
		for _, value := range values(one) {
			keys = append(keys, "/"+value, one.GetNamespace()+"/"+value)
		}
		return keys, nil
	}})
}

func (x indexed) of(object any) toolscache.Indexer {
	kind := reflect.TypeOf(object)
	if x[kind] == nil {
		x[kind] = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	}
	return x[kind]
}

func (x indexed) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	found, exists, err := x.of(out).GetByKey(key.String())
	if err != nil || !exists {
		return apierrors.NewNotFound(schema.GroupResource{}, key.String())
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

func (x indexed) List(_ context.Context, out client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	items := reflect.ValueOf(out).Elem().FieldByName("Items")
	indexer := x.of(reflect.New(items.Type().Elem()).Interface())
	var found []any
	switch {
	case o.FieldSelector != nil:
		one := o.FieldSelector.Requirements()[0]
		var err error
		if found, err = indexer.ByIndex(one.Field, o.Namespace+"/"+one.Value); err != nil {
			return err
		}
	case o.Namespace != "":
		found, _ = indexer.ByIndex(toolscache.NamespaceIndex, o.Namespace)
	default:
		found = indexer.List()
	}
	objects := make([]apiruntime.Object, len(found))
	for i := range found {
		objects[i] = found[i].(apiruntime.Object)
	}
	return apimeta.SetList(out, objects)
}

// A large installation: nodes of sixteen H100 each, and variants with ten ready pods
// of one device.
const (
	manyVariants, manyNodes, podsEach = 5000, 5000, 10
	product                           = "NVIDIA-H100-80GB-HBM3"
)

func large(tb testing.TB) (*observer, readings) {
	tb.Helper()
	x := indexed{}
	require.NoError(tb, addIndexes(context.Background(), x, Access{}))
	for i := range manyNodes {
		require.NoError(tb, x.of(&corev1.Node{}).Add(bigNode(i)))
	}
	r := readings{at: noon, pods: map[types.NamespacedName]decision.Replica{}}
	for i := range manyVariants {
		name, namespace := fmt.Sprint("v", i), fmt.Sprint("team-", i%50)
		d, set := bigTarget(namespace, name)
		require.NoError(tb, x.of(d).Add(d))
		require.NoError(tb, x.of(set).Add(set))
		v := &v1alpha1.VariantAutoscaling{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("va-" + name), Generation: 1},
			Spec:       v1alpha1.VariantAutoscalingSpec{ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}, ModelID: name},
		}
		require.NoError(tb, x.of(v).Add(v))
		for j := range podsEach {
			pod := bigPod(d, set, j, (i*podsEach+j)%manyNodes)
			slim, err := stripPod(pod)
			require.NoError(tb, err)
			require.NoError(tb, x.of(pod).Add(slim))
			r.pods[types.NamespacedName{Namespace: namespace, Name: pod.Name}] = decision.Replica{Name: pod.Name, KVUse: sample(0.5, noon), Running: sample(9, noon)}
		}
	}
	x.of(&autoscalingv2.HorizontalPodAutoscaler{})
	access := Access{Capacity: true, Victims: true}
	return &observer{
		reader: x, targets: &targetFinder{reader: x, access: access, overlay: newOverlay()}, access: access,
		names: &inventory.Names{}, startups: &round.Startups{},
	}, r
}

func bigNode(i int) *corev1.Node {
	allocatable := corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse("16"), corev1.ResourceCPU: resource.MustParse("192"),
		corev1.ResourceMemory: resource.MustParse("2Ti"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i), Labels: map[string]string{
			"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "81559", corev1.LabelHostname: fmt.Sprint("node-", i), corev1.LabelOSStable: "linux",
		}},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: allocatable, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func bigTarget(namespace, name string) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("d-" + name), ResourceVersion: "1"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](podsEach), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"nvidia.com/gpu.product": product},
				Tolerations:  []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
				Containers:   []corev1.Container{{Name: "server", Args: []string{"--max-num-seqs=128"}, Resources: bigResources()}},
			},
		}},
		Status: appsv1.DeploymentStatus{Replicas: podsEach, UpdatedReplicas: podsEach},
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-1", UID: types.UID("s-" + name), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
	}}
	return d, set
}

func bigResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("1")},
		Limits:   corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
	}
}

func bigPod(d *appsv1.Deployment, set *appsv1.ReplicaSet, i, node int) *corev1.Pod {
	name := fmt.Sprint(set.Name, "-", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
			Labels:          map[string]string{"app": d.Name, "pod-template-hash": "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", node), Containers: []corev1.Container{{Name: "server", Resources: bigResources()}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour + time.Minute))},
		}},
	}
}

// BenchmarkObserve is one look at 5,000 variants, 5,000 nodes and 50,000 pods. The
// metric cache-MB is what the cache keeps of them.
func BenchmarkObserve(b *testing.B) {
	o, r := large(b)
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	defer func() { b.ReportMetric(float64(memory.HeapAlloc)/1e6, "cache-MB") }()
	settings := &config.Dynamic{Interval: time.Minute}
	var seen *observation
	for b.Loop() {
		var err error
		seen, err = o.observe(b.Context(), noon, settings, r)
		require.NoError(b, err)
	}
	require.Len(b, seen.variants, manyVariants)
	require.Equal(b, podsEach, seen.snapshot.Models[0].Variants[0].Ready)
	slots, err := seen.snapshot.Cluster.Slots(seen.snapshot.Models[0].Variants[0].Request)
	require.NoError(b, err)
	require.Equal(b, 16*manyNodes-podsEach*manyVariants, slots)
}
