package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

func amounts(cpu, memory, devices string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(devices),
	}
}

// whole is a pod as the API server has it.
func whole() *corev1.Pod {
	asked := amounts("4", "8Gi", "2")
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "server", Namespace: "n", UID: "u", Labels: map[string]string{"app": "server"},
			Annotations:     map[string]string{"long": "text", corev1.PodDeletionCost: "3", v1alpha1.AnnotationVictim: "", "prometheus.io/port": "9000"},
			OwnerReferences: []metav1.OwnerReference{{Name: "other"}, {Name: "set", UID: "s", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node",
			Containers: []corev1.Container{{
				Name: "server", Image: "x", Args: []string{"--many", "arguments"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
				Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8000}},
				Resources: corev1.ResourceRequirements{Requests: asked},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Message: "text", PodIP: "10.0.0.7",
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "server", Image: "x", ImageID: "sha256:long", AllocatedResources: asked,
				Resources: &corev1.ResourceRequirements{Requests: asked},
			}},
		},
	}
}

// What the cache keeps of a pod counts as the pod does, whatever makes it special.
func TestAPodInTheCacheHoldsWhatItHeld(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
		Status:     corev1.NodeStatus{Allocatable: amounts("96", "1Ti", "8")},
	}
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: map[string]string{"app": "other"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("4", "8Gi", "1")}}}},
	}
	low := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "low", UID: "low"}, Spec: corev1.PodSpec{NodeName: "node", Priority: ptr.To[int32](-10)}}
	quota := func(name string, counts corev1.ResourceName, scope corev1.ScopedResourceSelectorRequirement) *corev1.ResourceQuota {
		hard := corev1.ResourceList{counts: resource.MustParse("100")}
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
			Spec:       corev1.ResourceQuotaSpec{Hard: hard, ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{scope}}},
			Status:     corev1.ResourceQuotaStatus{Hard: hard},
		}
	}
	quotas := []*corev1.ResourceQuota{
		quota("counted", corev1.ResourcePods, corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"counted"}}),
		quota("ending", corev1.ResourcePods, corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopeTerminating, Operator: corev1.ScopeSelectorOpExists}),
		quota("limits", corev1.ResourceLimitsCPU, corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopeNotBestEffort, Operator: corev1.ScopeSelectorOpExists}),
	}
	resized := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: amounts("8", "16Gi", "2")}
	}
	cases := []struct {
		name   string
		change func(*corev1.Pod)
	}{
		{"plain", func(*corev1.Pod) {}},
		{"overhead, init containers and sidecars", func(p *corev1.Pod) {
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
			p.Spec.InitContainers = []corev1.Container{
				{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: amounts("1", "1Gi", "0")}},
				{Name: "init", Resources: corev1.ResourceRequirements{Requests: amounts("16", "1Gi", "0")}},
			}
		}},
		{"a resize under way", resized},
		{"a resize that is not possible", func(p *corev1.Pod) {
			resized(p)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
		}},
		{"resources of the pod as a whole", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("12")}}
			p.Status.Resources, p.Status.AllocatedResources = p.Spec.Resources, p.Spec.Resources.Requests
		}},
		{"nominated", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.NominatedNodeName = "", "node" }},
		{"terminating", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }},
		{"ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		{"resource claims", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }},
		{"an extended resource that resource claims serve", func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "claim"}
		}},
		{"it keeps others away", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			}}}}
		}},
	}
	for name, change := range shows {
		cases = append(cases, struct {
			name   string
			change func(*corev1.Pod)
		}{name, change})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			full := whole()
			c.change(full)
			stripped, err := stripPod(full.DeepCopy())
			require.NoError(t, err)
			slim, ok := stripped.(*corev1.Pod)
			require.True(t, ok)
			read := func(pod *corev1.Pod) *inventory.Inventory {
				return new(inventory.Names).Read(inventory.Objects{Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{low, pod}, Quotas: quotas})
			}
			want, got := read(full), read(slim)
			assert.Equal(t, want.Cluster, got.Cluster)
			assert.Equal(t, want.Reason(0), got.Reason(0))
			for _, like := range [][2]*corev1.Pod{{}, {full, slim}} {
				asked, wantErr := want.Request(template, like[0], inventory.Normalize("H100"))
				answered, err := got.Request(template, like[1], inventory.Normalize("H100"))
				assert.Equal(t, wantErr, err)
				assert.Equal(t, asked, answered)
			}
			assert.Less(t, slim.Size(), full.Size())
		})
	}
}

// shows are what a pod shows of the next one of its template.
var shows = map[string]func(*corev1.Pod){
	"tolerations": func(p *corev1.Pod) {
		p.Spec.Tolerations = append(defaultTolerations[:2:2], corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists})
	},
	"the default tolerations": func(p *corev1.Pod) { p.Spec.Tolerations = slices.Clone(defaultTolerations) },
	"a node selector":         func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "gpu"} },
	"node affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}},
			}}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
		}}
	},
	"pod affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}},
		}}
	},
	"what is only preferred": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}}},
		}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
		p.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
	},
	"topology spread": func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}, {WhenUnsatisfiable: corev1.DoNotSchedule}}
	},
	"volumes": func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "d"}}}}
	},
	"the node's network":  func(p *corev1.Pod) { p.Spec.HostNetwork = true },
	"host ports":          func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 8000 },
	"an operating system": func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
	"a pod group": func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	},
	"a queue":            func(p *corev1.Pod) { p.Labels["kueue.x-k8s.io/queue-name"] = "q" },
	"a gate":             func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} },
	"extended resources": func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["rdma/hca"] = resource.MustParse("1") },
	"priority":           func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](1000) },
	"a lower priority":   func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](-1000) },
	"patience": func(p *corev1.Pod) {
		p.Spec.Priority, p.Spec.PreemptionPolicy = ptr.To[int32](1000), ptr.To(corev1.PreemptNever)
	},
	"a class that a quota counts": func(p *corev1.Pod) { p.Spec.PriorityClassName = "counted" },
	"an end":                      func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) },
	"limits":                      func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = amounts("8", "9Gi", "2") },
}

func TestWhatTheCacheLeavesOut(t *testing.T) {
	stripped, err := stripPod(whole())
	require.NoError(t, err)
	slim, ok := stripped.(*corev1.Pod)
	require.True(t, ok)
	assert.Equal(t, "s", string(metav1.GetControllerOf(slim).UID))
	assert.Equal(t, map[string]string{corev1.PodDeletionCost: "3", v1alpha1.AnnotationVictim: "", "prometheus.io/port": "9000"}, slim.Annotations)
	assert.Empty(t, slim.Spec.Containers[0].Args)
	assert.Equal(t, "10.0.0.7", slim.Status.PodIP)
	assert.Equal(t, []corev1.ContainerPort{{Name: "http", ContainerPort: 8000}}, slim.Spec.Containers[0].Ports)
	assert.Empty(t, slim.Status.ContainerStatuses, "a container that holds what it asks for needs no status")
}

// A tenant fills no memory with annotations that nobody here reads, however they are called.
func TestTheAnnotationsThatAreKept(t *testing.T) {
	const revision, topology = "deployment.kubernetes.io/revision", "leaderworkerset.sigs.k8s.io/exclusive-topology"
	options := CacheOptions("", "", Access{LeaderWorkerSets: true, ScaledObjects: true, Capacity: true})
	for kind, by := range options.ByObject {
		switch kind.(type) {
		case *corev1.Pod, *corev1.Node, *corev1.ConfigMap:
			continue // they have tables of their own, or are the administrator's
		}
		for name, c := range map[string]struct{ has, want map[string]string }{
			"none":          {nil, nil},
			"others":        {map[string]string{"note": strings.Repeat("x", 1000), "kubectl.kubernetes.io/last-applied-configuration": "{}"}, nil},
			"a revision":    {map[string]string{revision: "7", "note": "x"}, map[string]string{revision: "7"}},
			"a topology":    {map[string]string{topology: "rack", "note": "x"}, map[string]string{topology: "rack"}},
			"what pretends": {map[string]string{revision: strings.Repeat("7", 1000), topology: strings.Repeat("x", 1000)}, nil},
		} {
			object := kind.DeepCopyObject().(client.Object)
			object.SetAnnotations(c.has)
			for range 2 {
				kept, err := by.Transform(object)
				require.NoError(t, err, "%T", kind)
				assert.Equal(t, c.want, kept.(client.Object).GetAnnotations(), "%T, %s", kind, name)
			}
		}
	}
	undecodable := map[string]string{v1alpha1.AnnotationUndecodable: "why"}
	v := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Annotations: undecodable}}
	_, err := stripObject(v)
	require.NoError(t, err)
	assert.Equal(t, undecodable, v.Annotations)
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	assert.Empty(t, missing(nil, nil))
	assert.Equal(t, `the permission to list and watch nodes in API group "" is missing: grant it as manifests/rbac/observe.yaml does`, missing([]string{"list", "watch"}, nil))
	assert.Equal(t, `the permission to watch nodes, and to list pods in all namespaces in API group "" is missing: grant it as manifests/rbac/observe.yaml does`, missing([]string{"watch"}, []string{"list"}))
}

// The annotation in which HAMi lists the devices of a node is read; others may be long.
func TestTheAnnotationsOfNodesThatAreRead(t *testing.T) {
	const listed = "hami.io/node-nvidia-register"
	stripped, err := stripNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{listed: "[]", "other": "long"}}})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{listed: "[]"}, stripped.(*corev1.Node).Annotations)
}
