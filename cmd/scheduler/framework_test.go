package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/plugins/acceleratorplacement"
)

const profileName = "variant-scheduler"

// load reads the configuration of a folder of manifests/ as the program does: as the
// file that the ConfigMap is mounted as.
func load(t *testing.T, folder string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../manifests", folder, "config.yaml"))
	require.NoError(t, err)
	var configMap corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(content, &configMap))
	require.Contains(t, configMap.Data, "config.yaml")
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configMap.Data["config.yaml"]), 0o600))
	addArguments()
	cfg, err := options.LoadConfigFromFile(klog.Background(), file)
	require.NoError(t, err)
	return cfg
}

func TestTheShippedConfigurationsAreRead(t *testing.T) {
	for _, folder := range []string{"scheduler", "scheduler-gang"} {
		t.Run(folder, func(t *testing.T) {
			cfg := load(t, folder)
			assert.True(t, cfg.LeaderElection.LeaderElect)
			assert.Equal(t, "variant-scheduler", cfg.LeaderElection.ResourceName, "not the lease of the cluster's own scheduler")
			assert.Equal(t, "workload-variant-autoscaler-system", cfg.LeaderElection.ResourceNamespace)
			require.Len(t, cfg.Profiles, 1)
			assert.Equal(t, profileName, cfg.Profiles[0].SchedulerName)
			found := false
			for _, c := range cfg.Profiles[0].PluginConfig {
				if c.Name == acceleratorplacement.Name {
					assert.Equal(t, &config.AcceleratorPlacementArgs{KeepOthersOffAcceleratorNodes: true}, c.Args)
					found = true
				}
			}
			assert.True(t, found)
		})
	}
}

func TestTheCommandSaysWhatItIs(t *testing.T) {
	command := newCommand()
	assert.Equal(t, "scheduler", command.Name())
	assert.Contains(t, command.Long, "AcceleratorPlacement")
}

// serveVariants is an API server that serves VariantAutoscaling objects and
// nothing else.
func serveVariants(t *testing.T, variants ...v1alpha1.VariantAutoscaling) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/llmd.ai/v1alpha1/variantautoscalings" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		if query.Get("watch") != "" && query.Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
			return
		}
		if query.Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(v1alpha1.VariantAutoscalingList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind + "List"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: variants,
		})
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL}
}

// realScheduler is Kubernetes' scheduler with the shipped profile, on caches that
// the test fills.
type realScheduler struct {
	*scheduler.Scheduler
	profile framework.Framework
}

func newRealScheduler(t *testing.T) *realScheduler {
	t.Helper()
	metrics.Register()
	ctx := t.Context()
	client := fake.NewClientset(replicaSet("h100"), replicaSet("a100"))
	factory := scheduler.NewInformerFactory(client, 0)
	registry := frameworkruntime.Registry{acceleratorplacement.Name: acceleratorplacement.New}
	recorder := profile.RecorderFactory(func(string) events.EventRecorder { return events.NewFakeRecorder(1000) })
	sched, err := scheduler.New(ctx, client, factory, nil, recorder,
		scheduler.WithKubeConfig(serveVariants(t, variant("h100", "H100"), variant("a100", "A100"))),
		scheduler.WithProfiles(load(t, "scheduler").Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry))
	require.NoError(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	require.NoError(t, sched.WaitForHandlersSync(ctx))
	return &realScheduler{Scheduler: sched, profile: sched.Profiles[profileName]}
}

// place schedules the pod and returns its node, or the reason why there is none.
func (s *realScheduler) place(t *testing.T, pod *corev1.Pod) (string, error) {
	t.Helper()
	result, err := s.SchedulePod(context.Background(), s.profile, framework.NewCycleState(), pod)
	if err != nil {
		return "", err
	}
	pod.Spec.NodeName = result.SuggestedHost
	require.NoError(t, s.Cache.AddPod(klog.Background(), pod))
	return result.SuggestedHost, nil
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

var products = []string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", ""}

// randomNodes are a few nodes of several types in every state that the model knows.
func randomNodes(rng *rand.Rand, round int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range 1 + rng.IntN(5) {
		n := gpuNode(fmt.Sprintf("r%d-n%d", round, i), products[rng.IntN(len(products))], int64(rng.IntN(3)*4))
		if rng.IntN(3) == 0 {
			n.Labels["nvidia.com/gpu.product"] = products[0]
		}
		switch rng.IntN(8) {
		case 0:
			n.Spec.Unschedulable = true
		case 1:
			n.Spec.Taints = []corev1.Taint{{Key: "accelerator-scheduler", Effect: corev1.TaintEffectNoSchedule}}
		case 2:
			n.Labels["pool"] = "inference"
		case 3:
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func randomTemplate(rng *rand.Rand) *corev1.PodTemplateSpec {
	tmpl := template([]int64{1, 2, 3, 4, 8}[rng.IntN(5)], int64(rng.IntN(6)), int64(rng.IntN(3)*10))
	if rng.IntN(2) == 0 {
		tmpl.Spec.Tolerations = []corev1.Toleration{{Key: "accelerator-scheduler", Operator: corev1.TolerationOpExists}}
	}
	if rng.IntN(4) == 0 {
		tmpl.Spec.NodeSelector = map[string]string{"pool": "inference"}
	}
	return tmpl
}

// The number of replicas that the real scheduler places is the number of slots that
// the autoscaler counts from the API objects, and the one after that is rejected.
func TestTheSchedulerPlacesAsManyReplicasAsTheAutoscalerCounts(t *testing.T) {
	s := newRealScheduler(t)
	rng := rand.New(rand.NewPCG(11, 12))
	placedSome, serial := 0, 0
	for round := range 1_000 {
		nodes := randomNodes(rng, round)
		for _, n := range nodes {
			s.Cache.AddNode(klog.Background(), n)
		}
		var pods []*corev1.Pod
		for range rng.IntN(5) {
			serial++
			other := replica("", serial, template(int64(rng.IntN(3)), int64(rng.IntN(4)), 5))
			other.Spec.NodeName = nodes[rng.IntN(len(nodes))].Name
			require.NoError(t, s.Cache.AddPod(klog.Background(), other))
			pods = append(pods, other)
		}
		name, accelerator := "h100", "H100"
		if rng.IntN(3) == 0 {
			name, accelerator = "a100", "A100"
		}
		tmpl := randomTemplate(rng)

		inv := inventory.Read(nodes, pods)
		request, err := inv.Request(tmpl, inventory.Normalize(accelerator))
		require.NoError(t, err)
		slots, err := inv.Cluster.Slots(request)
		require.NoError(t, err)
		for range slots {
			serial++
			pod := replica(name, serial, tmpl)
			_, err := s.place(t, pod)
			require.NoError(t, err, "round %d: %d slots were counted", round, slots)
			pods = append(pods, pod)
			placedSome++
		}
		serial++
		host, err := s.place(t, replica(name, serial, tmpl))
		require.Error(t, err, "round %d: %d slots were counted, and one more was placed on %s", round, slots, host)

		again := inventory.Read(nodes, pods)
		left, err := again.Cluster.Slots(request)
		require.NoError(t, err)
		require.Zero(t, left)
		for _, pod := range pods {
			require.NoError(t, s.Cache.RemovePod(klog.Background(), pod))
		}
		for _, n := range nodes {
			require.NoError(t, s.Cache.RemoveNode(klog.Background(), n))
		}
	}
	assert.Greater(t, placedSome, 500, "most clusters should hold something")
}

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
	sign := func(pod *corev1.Pod) string { return string(s.profile.SignPod(context.Background(), pod, false)) }
	first := sign(replica("h100", 1, template(8, 1, 1)))
	assert.NotEmpty(t, first)
	assert.Equal(t, first, sign(replica("h100", 2, template(8, 1, 1))))
	assert.NotEqual(t, first, sign(replica("a100", 1, template(8, 1, 1))))
}
