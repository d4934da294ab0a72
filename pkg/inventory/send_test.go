package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const gpuProduct = "nvidia.com/gpu.product"

// in is a requirement that a label has one of the values.
func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// affine is a pod's affinity for the nodes of one of the terms.
func affine(terms ...[]corev1.NodeSelectorRequirement) *corev1.Affinity {
	selector := &corev1.NodeSelector{}
	for _, t := range terms {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: t})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
}

type terms = []corev1.NodeSelectorRequirement

func TestSend(t *testing.T) {
	product, cloud := in(gpuProduct, "NVIDIA-H100-80GB-HBM3"), in("cloud.google.com/gke-accelerator", "nvidia-h100-80gb")
	zone, other := in("zone", "a"), in("zone", "b")
	to := Destination{Scheduler: "packer", Accelerator: Normalize("H100"), Labels: terms{product}}
	ours := corev1.Toleration{Key: v1alpha1.TaintScheduler, Operator: corev1.TolerationOpEqual, Value: "packer"}
	every := corev1.Toleration{Operator: corev1.TolerationOpExists}
	device := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}
	// pod asks for a GPU by its limit.
	pod := func(change ...func(*corev1.PodSpec)) *corev1.PodSpec {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}}}
		for _, c := range change {
			c(spec)
		}
		return spec
	}
	scheduled := func(name string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.SchedulerName = name }
	}
	tolerates := func(list ...corev1.Toleration) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Tolerations = list }
	}
	affinity := func(a *corev1.Affinity) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Affinity = a }
	}
	selects := func(key, value string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{key: value} }
	}
	with := func(change func(*Destination)) Destination {
		d := to
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		spec *corev1.PodSpec
		to   Destination
		want *corev1.PodSpec
		why  string
	}{
		"a pod that says nothing":        {pod(), to, pod(scheduled("packer"), tolerates(ours), affinity(affine(terms{product}))), ""},
		"the cluster's own scheduler":    {pod(scheduled(corev1.DefaultSchedulerName)), to, pod(scheduled("packer"), tolerates(ours), affinity(affine(terms{product}))), ""},
		"other tolerations stay":         {pod(tolerates(device)), to, pod(scheduled("packer"), tolerates(device, ours), affinity(affine(terms{product}))), ""},
		"all taints are tolerated":       {pod(tolerates(every)), to, pod(scheduled("packer"), tolerates(every), affinity(affine(terms{product}))), ""},
		"the same nodes by a selector":   {pod(selects(gpuProduct, "NVIDIA-H100-PCIe")), to, pod(selects(gpuProduct, "NVIDIA-H100-PCIe"), scheduled("packer"), tolerates(ours)), ""},
		"the same nodes by affinity":     {pod(affinity(affine(terms{cloud}))), to, pod(affinity(affine(terms{cloud})), scheduled("packer"), tolerates(ours)), ""},
		"each term is narrowed":          {pod(affinity(affine(terms{zone}, terms{other}))), to, pod(affinity(affine(terms{zone, product}, terms{other, product})), scheduled("packer"), tolerates(ours)), ""},
		"a term that no node matches":    {pod(affinity(affine(terms{}, terms{zone}))), to, pod(affinity(affine(terms{zone, product})), scheduled("packer"), tolerates(ours)), ""},
		"one label of several suffices":  {pod(affinity(affine(terms{zone}))), with(func(d *Destination) { d.Labels = terms{product, cloud} }), pod(affinity(affine(terms{zone, product}, terms{zone, cloud})), scheduled("packer"), tolerates(ours)), ""},
		"an accelerator without a label": {pod(), with(func(d *Destination) { d.Labels = nil }), pod(scheduled("packer"), tolerates(ours)), ""},
		"an accelerator nobody knows":    {pod(selects(gpuProduct, "NVIDIA-L40S")), Destination{Scheduler: "packer"}, pod(selects(gpuProduct, "NVIDIA-L40S"), scheduled("packer"), tolerates(ours)), ""},

		"it says all of it":           {pod(scheduled("packer"), tolerates(ours), affinity(affine(terms{product}))), to, nil, "it says so already"},
		"no node has it, it says all": {pod(scheduled("packer"), tolerates(ours)), with(func(d *Destination) { d.Labels = nil }), nil, "it says so already"},
		"another scheduler":           {pod(scheduled("kueue")), to, nil, "it asks for the scheduler kueue"},
		"the nodes of another one":    {pod(tolerates(corev1.Toleration{Key: v1alpha1.TaintScheduler, Value: "other"})), to, nil, "it tolerates the nodes of the scheduler other"},
		"other nodes by a selector":   {pod(selects(gpuProduct, "NVIDIA-A100-SXM4-80GB")), to, nil, "it selects A100-80GB-SXM4 nodes"},
		"other nodes by affinity":     {pod(affinity(affine(terms{in(gpuProduct, "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S")}))), to, nil, "it selects L40S nodes"},
		"nodes that nobody is":        {pod(selects(gpuProduct, "NVIDIA-L40S"), affinity(affine(terms{product}))), to, nil, "it selects both L40S and H100, which no node is"},
		"it has its node":             {pod(func(s *corev1.PodSpec) { s.NodeName = "n" }), to, nil, "it is on the node n already"},
		"no devices":                  {&corev1.PodSpec{Containers: []corev1.Container{{}}}, to, nil, "it asks for no devices"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.spec.DeepCopy()
			sent, why := new(Names).Send(c.spec, c.to)
			assert.Equal(t, c.want, sent)
			assert.Equal(t, c.why, why)
			assert.Equal(t, before, c.spec, "what was given is changed")
			if sent != nil {
				again, why := new(Names).Send(sent, c.to)
				assert.Nil(t, again, "once is enough")
				assert.Equal(t, "it says so already", why)
			}
		})
	}
}

func TestNodeLabels(t *testing.T) {
	node := func(name string, gpus int64, labels ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		for i := 0; i < len(labels); i += 2 {
			n.Labels[labels[i]] = labels[i+1]
		}
		if gpus > 0 {
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
		}
		return n
	}
	const gke = "cloud.google.com/gke-accelerator"
	sxm, pcie := node("sxm", 8, gpuProduct, "NVIDIA-H100-80GB-HBM3"), node("pcie", 8, gpuProduct, "NVIDIA-H100-PCIe")
	a100, custom := node("a100", 8, gpuProduct, "NVIDIA-A100-SXM4-80GB"), node("custom", 8, AcceleratorLabel, "H100", gpuProduct, "Own-Product")
	cloud, both := node("cloud", 8, gke, "nvidia-h100-80gb"), node("both", 8, gke, "nvidia-h100-80gb", gpuProduct, "NVIDIA-H100-80GB-HBM3")
	for name, c := range map[string]struct {
		nodes  []*corev1.Node
		wanted string
		want   []corev1.NodeSelectorRequirement
	}{
		"no node has it":                 {[]*corev1.Node{a100}, "H100", nil},
		"an unknown accelerator":         {[]*corev1.Node{a100}, "", nil},
		"all products of the type":       {[]*corev1.Node{sxm, a100, pcie}, "H100", terms{in(gpuProduct, "NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe")}},
		"only those that are asked for":  {[]*corev1.Node{sxm, pcie}, "H100-80GB-HBM3", terms{in(gpuProduct, "NVIDIA-H100-80GB-HBM3")}},
		"a node that offers none yet":    {[]*corev1.Node{node("new", 0, gpuProduct, "NVIDIA-H100-PCIe")}, "H100", terms{in(gpuProduct, "NVIDIA-H100-PCIe")}},
		"an override label":              {[]*corev1.Node{custom}, "H100", terms{in(AcceleratorLabel, "H100")}},
		"one label that all have":        {[]*corev1.Node{cloud, both, both}, "H100", terms{in(gke, "nvidia-h100-80gb")}},
		"as few labels as there must be": {[]*corev1.Node{cloud, both, sxm, pcie, custom}, "H100", terms{in(gpuProduct, "NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe"), in(AcceleratorLabel, "H100"), in(gke, "nvidia-h100-80gb")}},
		"the one that is believed more":  {[]*corev1.Node{both}, "H100", terms{in(gpuProduct, "NVIDIA-H100-80GB-HBM3")}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, new(Names).NodeLabels(c.nodes, Normalize(c.wanted), "nvidia.com/gpu"))
		})
	}
}

// A template is completed as its pods will be, by what names the accelerator without
// them.
func TestSendingTemplates(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{gpuProduct: "NVIDIA-L40S"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}},
	}
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}}
	template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
	sending := NewSending("packer", new(Names), []*corev1.Node{node})
	for source, labels := range map[Source]*corev1.Affinity{SourceSpec: affine(terms{in(gpuProduct, "NVIDIA-L40S")}), SourceNodes: nil} {
		for range 2 { // the second time from memory
			got := sending.Template(template, Normalize("L40S"), source)
			assert.Equal(t, template.ObjectMeta, got.ObjectMeta)
			assert.Equal(t, "packer", got.Spec.SchedulerName)
			assert.Equal(t, labels, got.Spec.Affinity, source)
			assert.Same(t, got, sending.Template(got, Normalize("L40S"), source), "it says all of it")
		}
	}
	assert.Empty(t, template.Spec.SchedulerName, "what was given is changed")
}
