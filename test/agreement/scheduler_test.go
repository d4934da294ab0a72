package agreement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/variantstest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulerv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	configv1 "llmd.ai/workload-variant-autoscaler/pkg/apis/config/v1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/plugins/acceleratorplacement"
)

const (
	profileName = "variant-scheduler"
	namespace   = "llm"
)

// register makes the plugin's arguments known to the scheduler's schemes, which all tests
// of a process share.
var register = sync.OnceValue(func() error {
	var err error
	for _, s := range []*runtime.Scheme{scheme.Scheme, schedulerv1.GetPluginArgConversionScheme()} {
		err = errors.Join(err, config.AddToScheme(s), configv1.AddToScheme(s))
	}
	return err
})

// shippedProfile is the profile that a cluster installs.
func shippedProfile(t testing.TB) schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	require.NoError(t, register())
	content, err := os.ReadFile("../../manifests/scheduler/config.yaml")
	require.NoError(t, err)
	var configMap corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(content, &configMap))
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configMap.Data["config.yaml"]), 0o600))
	cfg, err := options.LoadConfigFromFile(klog.Background(), file)
	require.NoError(t, err)
	require.Len(t, cfg.Profiles, 1)
	require.Equal(t, profileName, cfg.Profiles[0].SchedulerName)
	return cfg.Profiles[0]
}

// overrides are names of accelerators that a cluster gives itself.
var overrides = map[string]string{"our-card": "A100-80GB", "NVIDIA-L40": "H100"}

// namesOf is the ConfigMap that the profile looks for names in.
func namesOf(t testing.TB, profile schedulerconfig.KubeSchedulerProfile) *corev1.ConfigMap {
	t.Helper()
	i := slices.IndexFunc(profile.PluginConfig, func(c schedulerconfig.PluginConfig) bool { return c.Name == acceleratorplacement.Name })
	require.GreaterOrEqual(t, i, 0, "the profile has arguments for the plugin")
	args, ok := profile.PluginConfig[i].Args.(*config.AcceleratorPlacementArgs)
	require.True(t, ok)
	require.NotNil(t, args.AcceleratorNames)
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: args.AcceleratorNames.Namespace, Name: args.AcceleratorNames.Name}, Data: overrides}
}

// realScheduler is Kubernetes' scheduler with the shipped profile, on caches that the
// test fills as the informers would.
type realScheduler struct {
	*scheduler.Scheduler
	profile framework.Framework
	plugin  *acceleratorplacement.Plugin
	factory informers.SharedInformerFactory
	// preemption is the shipped profile's, which asks nobody to delete victims but tells
	// them.
	preemption *defaultpreemption.DefaultPreemption
	victims    struct {
		sync.Mutex
		pods []*corev1.Pod
	}
	// usualAdmits and generousAdmits are the admission of two kinds of clusters.
	usualAdmits, generousAdmits admission.MutationInterface
	// names and keep are the autoscaler's.
	names inventory.Names
	keep  keep
}

// newRealScheduler starts one, with or without names of the cluster's own.
func newRealScheduler(t testing.TB, named bool) *realScheduler {
	t.Helper()
	metrics.Register()
	ctx := t.Context()
	var objects []runtime.Object
	var served []v1alpha1.VariantAutoscaling
	for i := range variants {
		objects = append(objects, variants[i].owner())
		served = append(served, variants[i].object())
	}
	shipped := shippedProfile(t)
	if named {
		objects = append(objects, namesOf(t, shipped))
	}
	clientset := fake.NewClientset(objects...)
	s := &realScheduler{keep: keptByTheManager(t), factory: scheduler.NewInformerFactory(clientset, 0)}
	registry := frameworkruntime.Registry{acceleratorplacement.Name: func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := acceleratorplacement.New(ctx, args, handle)
		s.plugin, _ = plugin.(*acceleratorplacement.Plugin)
		return plugin, err
	}}
	recorder := profile.RecorderFactory(func(string) events.EventRecorderLogger { return discard{} })
	var err error
	s.Scheduler, err = scheduler.New(ctx, clientset, s.factory, nil, recorder,
		scheduler.WithKubeConfig(variantstest.Serve(t, served...)),
		scheduler.WithProfiles(shipped),
		scheduler.WithFrameworkOutOfTreeRegistry(registry))
	require.NoError(t, err)
	s.factory.Start(ctx.Done())
	s.factory.WaitForCacheSync(ctx.Done())
	require.NoError(t, s.WaitForHandlersSync(ctx))
	s.profile = s.Profiles[profileName]
	require.NotNil(t, s.plugin)
	s.usualAdmits, s.generousAdmits = newAdmission(t, usualAdmission), newAdmission(t, generousAdmission)
	s.preemption, err = defaultpreemption.New(ctx, argsOf(t, shipped, names.DefaultPreemption), s.profile, feature.Features{})
	require.NoError(t, err)
	s.preemption.Executor.PreemptPod = func(_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *corev1.Pod, _ string) error {
		s.victims.Lock()
		defer s.victims.Unlock()
		s.victims.pods = append(s.victims.pods, victim)
		return nil
	}
	if named {
		s.takeNames(t)
	}
	return s
}

// takeNames gives the autoscaler its names and waits until the plugin has read them.
func (s *realScheduler) takeNames(t testing.TB) {
	t.Helper()
	parsed, err := inventory.ParseOverrides(overrides)
	require.NoError(t, err)
	s.names.SetOverrides(parsed)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{productLabel: "NVIDIA-L40"}}}
	node.Status.Allocatable = corev1.ResourceList{nvidia: resource.MustParse("1")}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	h100 := &variants[slices.IndexFunc(variants, func(v served) bool { return v.name == "h100" })]
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server"}}}}
	ask(&template.Spec.Containers[0].Resources, nvidia, 1)
	require.Eventually(t, func() bool {
		narrowed, status := s.plugin.PreFilter(t.Context(), framework.NewCycleState(), h100.replica(0, template), []fwk.NodeInfo{info})
		return status.IsSuccess() && narrowed.NodeNames.Has("n")
	}, 10*time.Second, 10*time.Millisecond, "the plugin reads the names")
}

// discard takes events that nobody looks at.
type discard struct{}

func (discard) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

func (d discard) WithLogger(klog.Logger) events.EventRecorderLogger { return d }

// place takes the pod through the queue and a scheduling cycle, and assumes it on its
// node, as the scheduler does before it binds. An error is a rejection.
func (s *realScheduler) place(t testing.TB, pod *corev1.Pod) (node string, state fwk.CycleState, rejected error) {
	t.Helper()
	logger := klog.Background()
	s.SchedulingQueue.Add(t.Context(), pod)
	next, err := s.NextPod(logger)
	require.NoError(t, err)
	require.Equal(t, pod.UID, next.Pod.UID)
	defer s.SchedulingQueue.Done(pod.UID)
	state = framework.NewCycleState()
	// A cycle begins with what the cache holds now.
	snapshot, ok := s.profile.SnapshotSharedLister().(*schedulercache.Snapshot)
	require.True(t, ok)
	require.NoError(t, s.Cache.UpdateSnapshot(logger, snapshot))
	result, err := s.SchedulePod(context.Background(), s.profile, state, next)
	if err != nil {
		// Only a node that is too small or taken is a rejection; anything else, such
		// as a plugin's error, would hide a disagreement.
		var fit *framework.FitError
		require.ErrorAs(t, err, &fit)
		return "", state, err
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.SuggestedHost
	require.NoError(t, s.Cache.AssumePod(logger, assumed))
	status := s.profile.RunReservePluginsReserve(context.Background(), state, assumed, result.SuggestedHost)
	require.True(t, status.IsSuccess(), status.Message())
	return result.SuggestedHost, state, nil
}

// argsOf are the arguments of a plugin of the profile.
func argsOf(t testing.TB, profile schedulerconfig.KubeSchedulerProfile, plugin string) runtime.Object {
	t.Helper()
	i := slices.IndexFunc(profile.PluginConfig, func(c schedulerconfig.PluginConfig) bool { return c.Name == plugin })
	require.GreaterOrEqual(t, i, 0)
	return profile.PluginConfig[i].Args
}

// preempt has the scheduler make room for a pod that it rejected in a cycle with that
// state. It returns the node, or none, and the pods that have to go.
func (s *realScheduler) preempt(t testing.TB, pod *corev1.Pod, state fwk.CycleState, rejected error) (node string, victims []*corev1.Pod) {
	t.Helper()
	var fit *framework.FitError
	require.ErrorAs(t, rejected, &fit)
	store := s.factory.Core().V1().Pods().Informer().GetStore()
	require.NoError(t, store.Add(pod))
	defer func() { require.NoError(t, store.Delete(pod)) }()
	s.victims.pods = nil
	result, status := s.preemption.PostFilter(t.Context(), state, pod, fit.Diagnosis.NodeToStatus)
	if !status.IsSuccess() {
		require.True(t, status.IsRejected(), "%v", status)
		return "", nil
	}
	return result.NominatedNodeName, s.victims.pods
}

// budgetStore is what the scheduler's informer has of disruption budgets.
func (s *realScheduler) budgetStore() cache.Store {
	return s.factory.Policy().V1().PodDisruptionBudgets().Informer().GetStore()
}

// nominate lets a pod wait for a node that makes room for it, as after a preemption.
func (s *realScheduler) nominate(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	logger := klog.Background()
	require.NoError(t, s.factory.Core().V1().Pods().Informer().GetStore().Add(pod))
	s.SchedulingQueue.Add(t.Context(), pod)
	waiting, err := s.NextPod(logger)
	require.NoError(t, err)
	waiting.UnschedulablePlugins.Insert("NodeResourcesFit")
	require.NoError(t, s.SchedulingQueue.AddUnschedulableIfNotPresent(logger, waiting, s.SchedulingQueue.SchedulingCycle()))
	s.SchedulingQueue.AddNominatedPod(logger, waiting.PodInfo, &fwk.NominatingInfo{
		NominatingMode: fwk.ModeOverride, NominatedNodeName: pod.Status.NominatedNodeName,
	})
}

// forget ends the wait of a nominated pod.
func (s *realScheduler) forget(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	s.SchedulingQueue.Delete(pod)
	require.NoError(t, s.factory.Core().V1().Pods().Informer().GetStore().Delete(pod))
}

// nodeInfos are the nodes as the framework shows them to plugins, as of the last
// scheduling cycle: with the pods for which they make room.
func (s *realScheduler) nodeInfos(t testing.TB) []fwk.NodeInfo {
	t.Helper()
	infos, err := s.profile.SnapshotSharedLister().NodeInfos().List()
	require.NoError(t, err)
	shown := make([]fwk.NodeInfo, len(infos))
	for i, info := range infos {
		shown[i] = info
		if nominated := s.SchedulingQueue.NominatedPodsForNode(info.Node().Name); len(nominated) > 0 {
			shown[i] = info.Snapshot()
			for _, pod := range nominated {
				shown[i].AddPodInfo(pod)
			}
		}
	}
	return shown
}

// served is one VariantAutoscaling object of the cluster, with its replica set.
type served struct {
	name string
	// accelerator is spec.accelerator; without it, selector is in the pod template, or
	// the autoscaler has found the type resolved, by the nodes of earlier pods.
	accelerator string
	selector    map[string]string
	resolved    string
	// outdated is a type that the autoscaler found for an earlier generation.
	outdated string
	// resource counts its devices.
	resource corev1.ResourceName
	// inSet says that a StatefulSet makes its pods.
	inSet bool
}

// variants are what is asked for: types, narrower forms, slices, and names that
// nobody knows.
var variants = []served{
	{name: "h100", accelerator: "H100", resource: nvidia},
	{name: "h100-80gb", accelerator: "H100-80GB", inSet: true, resource: nvidia},
	{name: "h100-nvl", accelerator: "NVIDIA-H100-NVL", resource: nvidia},
	{name: "a100", accelerator: "A100", resource: nvidia},
	{name: "a100-80gb", accelerator: "A100-80GB", resource: nvidia},
	{name: "a100-40gb", accelerator: "a100-40gb", inSet: true, resource: nvidia},
	{name: "a100-sxm", accelerator: "NVIDIA-A100-SXM4-80GB", resource: nvidia},
	{name: "l40s", accelerator: "L40S", inSet: true, resource: nvidia},
	{name: "selected", selector: map[string]string{productLabel: "NVIDIA-A100-SXM4-80GB"}, resource: nvidia},
	{name: "resolved", resolved: "H100", inSet: true, resource: nvidia},
	{name: "resolved-80gb", resolved: "A100-80GB", resource: nvidia},
	{name: "outdated", accelerator: "A100", outdated: "H100", resource: nvidia},
	{name: "renamed", accelerator: "our-card", resource: nvidia},
	{name: "renamed-selected", selector: map[string]string{productLabel: "Our-Card"}, resource: nvidia},
	{name: "mi300x", accelerator: "MI300X", inSet: true, resource: "amd.com/gpu"},
	{name: "gaudi2", accelerator: "G2", resource: "habana.ai/gaudi"},
	{name: "unlisted", accelerator: "Acme Q1", resource: nvidia},
	{name: "whole-slice", accelerator: "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", resource: nvidia},
	{name: "slice", accelerator: "A100-MIG-1g.10gb", resource: "nvidia.com/mig-1g.10gb"},
	{name: "large-slice", accelerator: "A100-MIG-3g.40gb", resource: "nvidia.com/mig-3g.40gb"},
	{name: "neuron", accelerator: "Trainium2", resource: "aws.amazon.com/neuron"},
	{name: "neuron-core", accelerator: "Trainium2", resource: "aws.amazon.com/neuroncore"},
	{name: "neuron-device", accelerator: "Trainium2", resource: "aws.amazon.com/neurondevice"},
	{name: "xe", accelerator: "MAX1550", resource: "gpu.intel.com/xe"},
	{name: "i915", accelerator: "MAX1550", resource: "gpu.intel.com/i915"},
	{name: "shared", accelerator: "L40S-SHARED", resource: "nvidia.com/gpu.shared"},
}

func (v *served) object() v1alpha1.VariantAutoscaling {
	object := v1alpha1.VariantAutoscaling{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name, UID: types.UID("variant-" + v.name), Generation: 2},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", Accelerator: v.accelerator, ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: v.name}},
	}
	found := func(text string, generation int64) {
		device := inventory.Normalize(text).Device()
		object.Status.Placement = &v1alpha1.Placement{ObservedGeneration: generation, Shape: &v1alpha1.Shape{
			Accelerator: string(device.Accelerator), DeviceMemoryGiB: int32(device.MemoryGiB), Form: device.Form,
		}}
	}
	if v.inSet {
		object.Spec.ScaleTargetRef.APIVersion, object.Spec.ScaleTargetRef.Kind = "apps/v1", "StatefulSet"
	}
	if v.resolved != "" {
		found(v.resolved, 2)
	}
	if v.outdated != "" {
		found(v.outdated, 1)
	}
	return object
}

// owner is what makes the variant's pods: a ReplicaSet of its Deployment, or a StatefulSet.
func (v *served) owner() client.Object {
	if v.inSet {
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name, UID: types.UID("set-" + v.name)},
			Status:     appsv1.StatefulSetStatus{UpdateRevision: v.name + "-7d9"},
		}
	}
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: v.name + "-1", UID: types.UID("replicas-" + v.name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: v.name, UID: "d", Controller: ptr.To(true)}},
	}}
}

// revision is that of the variant's pods.
func (v *served) revision() inventory.Revision {
	if set, is := v.owner().(*appsv1.StatefulSet); is {
		return inventory.RevisionOfStatefulSet(set)
	}
	return inventory.RevisionBy(v.owner().GetUID())
}

// replica is the pod that the owner makes of the template. Those of a StatefulSet come in
// their order, each with its place in it, which is how all replicas are asked for here.
func (v *served) replica(serial int, template *corev1.PodTemplateSpec) *corev1.Pod {
	owner, kind := v.owner(), "ReplicaSet"
	pod := newPod(fmt.Sprintf("%s-%d", v.name, serial), template)
	if v.inSet {
		kind = "StatefulSet"
		pod.Labels = maps.Clone(pod.Labels)
		pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
		pod.Labels[appsv1.PodIndexLabel] = fmt.Sprint(serial)
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = v.name + "-7d9"
		pod.Spec.Hostname = pod.Name
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}}
	return pod
}
