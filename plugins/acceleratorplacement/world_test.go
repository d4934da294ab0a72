package acceleratorplacement

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// world is the plugin with what the framework would hand it: caches that the test
// fills, nodes, and a source of variants.
type world struct {
	*Plugin
	factory informers.SharedInformerFactory
	source  *fcache.FakeControllerSource
	handle  *handle
}

// handle is the part of the framework's handle that the plugin uses.
type handle struct {
	fwk.Handle
	factory   informers.SharedInformerFactory
	nodes     []fwk.NodeInfo
	recorder  *events.FakeRecorder
	mu        sync.Mutex
	activated map[string]bool
	// onActivate is called too, if it is set.
	onActivate func(pods map[string]*corev1.Pod)
}

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) ProfileName() string                                    { return "variant-scheduler" }
func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return lister{nodes: h.nodes} }
func (h *handle) EventRecorder() events.EventRecorderLogger              { return h.recorder }

func (h *handle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range pods {
		h.activated[key] = true
	}
	if h.onActivate != nil {
		h.onActivate(pods)
	}
}

func (h *handle) wasActivated(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.activated[key]
}

func (h *handle) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.activated)
}

type lister struct {
	fwk.SharedLister
	fwk.NodeInfoLister
	nodes []fwk.NodeInfo
}

func (l lister) NodeInfos() fwk.NodeInfoLister       { return l }
func (l lister) List() ([]fwk.NodeInfo, error)       { return l.nodes, nil }
func (l lister) StorageInfos() fwk.StorageInfoLister { return nil }

// nodeInfo is a node with what is taken of it.
type nodeInfo struct {
	fwk.NodeInfo
	node                   *corev1.Node
	allocatable, requested resources
	pods                   []fwk.PodInfo
}

func (n *nodeInfo) Node() *corev1.Node           { return n.node }
func (n *nodeInfo) GetAllocatable() fwk.Resource { return &n.allocatable }
func (n *nodeInfo) GetRequested() fwk.Resource   { return &n.requested }
func (n *nodeInfo) GetPods() []fwk.PodInfo       { return n.pods }

type resources struct {
	fwk.Resource
	milliCPU, memory int64
	pods             int
	scalars          map[corev1.ResourceName]int64
}

func (r *resources) GetMilliCPU() int64                                { return r.milliCPU }
func (r *resources) GetMemory() int64                                  { return r.memory }
func (r *resources) GetAllowedPodNumber() int                          { return r.pods }
func (r *resources) GetScalarResources() map[corev1.ResourceName]int64 { return r.scalars }

const gpu corev1.ResourceName = "nvidia.com/gpu"

// node has so many devices, some of them taken. An empty product is a node that no
// label describes.
func node(name, product string, devices, taken int) *nodeInfo {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("192"), corev1.ResourceMemory: resource.MustParse("2Ti"), corev1.ResourcePods: resource.MustParse("110"),
			},
		},
	}
	info := &nodeInfo{
		node:        n,
		allocatable: resources{milliCPU: 192_000, memory: 2 << 40, pods: 110, scalars: map[corev1.ResourceName]int64{"hugepages-2Mi": 0}},
		requested:   resources{milliCPU: int64(taken) * 1000, scalars: map[corev1.ResourceName]int64{gpu: int64(taken)}},
	}
	if product != "" {
		n.Labels["nvidia.com/gpu.product"] = product
	}
	if devices > 0 {
		info.allocatable.scalars[gpu] = int64(devices)
		n.Status.Allocatable[gpu] = *resource.NewQuantity(int64(devices), resource.DecimalSI)
	}
	return info
}

// memory is a cycle state that remembers.
type memory struct {
	fwk.CycleState
	data map[fwk.StateKey]fwk.StateData
}

func newState() *memory { return &memory{data: map[fwk.StateKey]fwk.StateData{}} }

func (m *memory) Write(key fwk.StateKey, data fwk.StateData) { m.data[key] = data }
func (m *memory) Read(key fwk.StateKey) (fwk.StateData, error) {
	if data, ok := m.data[key]; ok {
		return data, nil
	}
	return nil, fwk.ErrNotFound
}

// newWorld starts the plugin with the objects in its caches and the variants
// served.
func newWorld(t testing.TB, objects []runtime.Object, served ...*v1alpha1.VariantAutoscaling) *world {
	t.Helper()
	source := fcache.NewFakeControllerSource()
	for _, v := range served {
		source.Add(v)
	}
	return newWorldFrom(t, source, source, objects)
}

func newWorldFrom(t testing.TB, source *fcache.FakeControllerSource, served cache.ListerWatcher, objects []runtime.Object) *world {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	h := &handle{factory: factory, activated: map[string]bool{}, recorder: events.NewFakeRecorder(100)}
	p := newPlugin(&config.AcceleratorPlacementArgs{KeepOthersOffAcceleratorNodes: true, SpreadFirstReplicas: true}, h, fake.NewClientset())
	var err error
	p.variants, err = newVariants(served, 10*time.Millisecond, p.variantChanged, p.soon)
	require.NoError(t, err)
	p.variants.start(t.Context(), 5*time.Second, time.Hour)
	w := &world{Plugin: p, factory: factory, source: source, handle: h}
	for _, object := range objects {
		w.see(t, object)
	}
	return w
}

// ruled lets the plugin read these rules, and no others.
func (w *world) ruled(t testing.TB, objects ...runtime.Object) {
	t.Helper()
	w.rules = newRules(fake.NewClientset(objects...))
	w.rules.start(t.Context())
	w.rules.factory.WaitForCacheSync(t.Context().Done())
}

// see puts an object into the scheduler's caches.
func (w *world) see(t testing.TB, object runtime.Object) {
	t.Helper()
	require.NoError(t, w.store(t, object).Add(object))
}

// lose takes an object out of the caches.
func (w *world) lose(t testing.TB, object runtime.Object) {
	t.Helper()
	require.NoError(t, w.store(t, object).Delete(object))
}

func (w *world) store(t testing.TB, object runtime.Object) (store cache.Store) {
	t.Helper()
	switch object.(type) {
	case *appsv1.Deployment:
		store = w.factory.Apps().V1().Deployments().Informer().GetStore()
	case *appsv1.ReplicaSet:
		store = w.factory.Apps().V1().ReplicaSets().Informer().GetStore()
	case *appsv1.StatefulSet:
		store = w.factory.Apps().V1().StatefulSets().Informer().GetStore()
	case *corev1.Pod:
		store = w.factory.Core().V1().Pods().Informer().GetStore()
	case *corev1.Node:
		store = w.factory.Core().V1().Nodes().Informer().GetStore()
	default:
		t.Fatalf("no cache for %T", object)
	}
	return store
}

// schedule is one scheduling cycle of this plugin alone: the nodes that pass, and
// the best of them.
func (w *world) schedule(t *testing.T, pod *corev1.Pod, nodes ...fwk.NodeInfo) (feasible []string, best string) {
	t.Helper()
	ctx, state := context.Background(), newState()
	w.handle.nodes = nodes
	narrowed, status := w.PreFilter(ctx, state, pod, nodes)
	require.True(t, status.IsSuccess() || status.IsSkip(), status.Message())
	var list fwk.NodeScoreList
	var passed []fwk.NodeInfo
	for _, n := range nodes {
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(n.Node().Name) {
			continue
		}
		if !status.IsSkip() && !w.Filter(ctx, state, pod, n).IsSuccess() {
			continue
		}
		feasible = append(feasible, n.Node().Name)
		passed = append(passed, n)
	}
	require.True(t, w.PreScore(ctx, state, pod, passed).IsSuccess())
	for _, n := range passed {
		score, scored := w.Score(ctx, state, pod, n)
		require.True(t, scored.IsSuccess())
		list = append(list, fwk.NodeScore{Name: n.Node().Name, Score: score})
	}
	require.True(t, w.NormalizeScore(ctx, state, pod, list).IsSuccess())
	for _, s := range list {
		require.GreaterOrEqual(t, s.Score, fwk.MinScore)
		require.LessOrEqual(t, s.Score, fwk.MaxScore)
		if s.Score == fwk.MaxScore && best == "" {
			best = s.Name
		}
	}
	return feasible, best
}

func gpuPod(name string, devices int, owner metav1.Object) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now()},
		Spec: corev1.PodSpec{SchedulerName: "variant-scheduler", Containers: []corev1.Container{{Name: "server", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}
	if devices > 0 {
		p.Spec.Containers[0].Resources.Requests[gpu] = *resource.NewQuantity(int64(devices), resource.DecimalSI)
	}
	if owner != nil {
		p.OwnerReferences = []metav1.OwnerReference{ownedBy(owner)}
	}
	return p
}

// ownedBy is the controller reference to an object.
func ownedBy(owner metav1.Object) metav1.OwnerReference {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1"}
	switch owner.(type) {
	case *appsv1.ReplicaSet:
		gvk.Kind = "ReplicaSet"
	case *appsv1.Deployment:
		gvk.Kind = "Deployment"
	case *appsv1.StatefulSet:
		gvk.Kind = "StatefulSet"
	case *corev1.Pod:
		gvk = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	default:
		gvk = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}
}

func meta(name string, owner metav1.Object) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "llm", Name: name, UID: types.UID(name)}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{ownedBy(owner)}
	}
	return m
}

// deployed is a replica set of the deployment of that name.
func deployed(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: meta(name+"-1", &appsv1.Deployment{ObjectMeta: meta(name, nil)})}
}

// serverDeployment is a deployment that an object of a kind of its own owns, of that name.
func serverDeployment(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: meta(name, nil)}
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1alpha2", Kind: "Server", Name: name, UID: "above", Controller: ptr.To(true)}}
	return d
}

func variant(name, accelerator string, count int32) *v1alpha1.VariantAutoscaling {
	v := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", Accelerator: accelerator, ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}},
	}
	if count > 0 {
		v.Spec.AcceleratorCount = ptr.To(count)
	}
	return v
}

func names(prefix string, count int, each func(i int) *nodeInfo) []fwk.NodeInfo {
	var made []fwk.NodeInfo
	for i := range count {
		n := each(i)
		n.node.Name = fmt.Sprintf("%s%d", prefix, i)
		made = append(made, n)
	}
	return made
}

func infosOf(nodes ...*nodeInfo) []fwk.NodeInfo {
	infos := make([]fwk.NodeInfo, len(nodes))
	for i := range nodes {
		infos[i] = nodes[i]
	}
	return infos
}

// podInfo is a pod on a node.
type podInfo struct {
	fwk.PodInfo
	pod *corev1.Pod
}

func (p podInfo) GetPod() *corev1.Pod { return p.pod }

func podInfos(pods ...*corev1.Pod) []fwk.PodInfo {
	infos := make([]fwk.PodInfo, len(pods))
	for i := range pods {
		infos[i] = podInfo{pod: pods[i]}
	}
	return infos
}

var everything = labels.Everything()
