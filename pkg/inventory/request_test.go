package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestRequestReadsTheTemplate(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a"), h100("b")}, nil)
	limits := template(corev1.Container{Name: "server", Resources: corev1.ResourceRequirements{
		Limits: list("nvidia.com/gpu", "4", "memory", "64Gi"), Requests: list("cpu", "16", "memory", "32Gi"),
	}})

	r, err := inv.Request(limits, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 1, MilliCPU: 16_000, MemoryBytes: 32 << 30}, r.Shape)
	assert.Nil(t, r.Refused)
	assert.Empty(t, r.Bound)
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 4, slots)
	assert.Empty(t, limits.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"], "the template is not changed")
}

func TestRequestKnowsWhichNodesRefuse(t *testing.T) {
	tainted, spread, narrow, other := h100("tainted"), h100("labelled"), h100("narrow"), h100("zone")
	tainted.Spec.Taints = []corev1.Taint{
		{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "accelerator-scheduler", Value: "owned", Effect: corev1.TaintEffectNoSchedule},
	}
	spread.Labels["pool"] = "inference"
	narrow.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}
	inv := Read([]*corev1.Node{tainted, spread, narrow, other}, nil)
	refusedBy := func(change func(*corev1.PodSpec), accelerator string, candidates int) map[string]string {
		tmpl := template(container("nvidia.com/gpu", "8"))
		change(&tmpl.Spec)
		r, err := inv.Request(tmpl, Normalize(accelerator))
		require.NoError(t, err)
		got := map[string]string{}
		for i, why := range r.Refused {
			if why != "" {
				got[inv.Nodes[i].Name] = why
			}
		}
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, candidates-len(got), slots)
		return got
	}

	assert.Equal(t, map[string]string{"tainted": "taint accelerator-scheduler"}, refusedBy(func(*corev1.PodSpec) {}, "H100", 4))
	tolerate := func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "accelerator-scheduler", Operator: corev1.TolerationOpExists}}
	}
	assert.Empty(t, refusedBy(tolerate, "H100", 4))
	assert.Empty(t, refusedBy(tolerate, "H100-80GB", 3), "the model knows that H100-NVL of unknown memory is another type")
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "inference"} }, "H100", 4), 3)
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) {
		tolerate(s)
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}
	}, "H100", 4), 1)
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) { s.NodeName = "zone" }, "H100", 4), 3)
}

func TestRequestNamesWhatItDoesNotModel(t *testing.T) {
	anti := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
	together := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
	cases := []struct {
		want   string
		change func(*corev1.PodSpec)
	}{
		{"", func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
		}},
		{"pod anti-affinity", func(s *corev1.PodSpec) { s.Affinity = anti }},
		{"pod affinity", func(s *corev1.PodSpec) { s.Affinity = together }},
		{"topology spread", func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
		}},
		{"volumes", func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		}},
		{"host ports", func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }},
		{"runtime class", func(s *corev1.PodSpec) { s.RuntimeClassName = ptr.To("kata") }},
		{"ephemeral-storage, hugepages-2Mi, rdma/hca", func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, container("rdma/hca", "1", "hugepages-2Mi", "4Mi", "ephemeral-storage", "1Gi"))
		}},
	}
	for _, c := range cases {
		t.Run(c.want, func(t *testing.T) {
			tmpl := template(container("nvidia.com/gpu", "1"))
			c.change(&tmpl.Spec)
			r, err := Read(nil, nil).Request(tmpl, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.want, r.Bound)
		})
	}
}

func TestRequestRefusesWhatItCannotCount(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a")}, nil)
	claims := template(container())
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		wanted   string
		want     string
	}{
		{"no template", nil, "H100", "the shape of a replica is unknown"},
		{"claims", claims, "H100", "resource claims"},
		{"no accelerator", template(container("nvidia.com/gpu", "1")), "", "set spec.accelerator"},
		{"two kinds of devices", template(container("nvidia.com/gpu", "1"), container("amd.com/gpu", "1")), "H100", "both amd.com/gpu and nvidia.com/gpu"},
		{"a slice of another size", template(container("nvidia.com/mig-1g.10gb", "1")), "H100-MIG-3g.40gb", "H100-MIG-3g.40gb is no nvidia.com/mig-1g.10gb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := inv.Request(c.template, Normalize(c.wanted))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestASliceIsNoWholeDevice(t *testing.T) {
	sliced, shared := h100("sliced"), h100("shared")
	sliced.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"
	shared.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-SHARED"
	inv := Read([]*corev1.Node{sliced, shared}, nil)
	for accelerator, want := range map[string]int{"H100": 0, "H100-MIG-3g.40gb": 8, "H100-SHARED": 8} {
		r, err := inv.Request(template(container("nvidia.com/gpu", "1")), Normalize(accelerator))
		require.NoError(t, err)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots, accelerator)
	}
}
