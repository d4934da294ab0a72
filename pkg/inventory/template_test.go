package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestResolveBelievesInOrder(t *testing.T) {
	selector := template()
	selector.Spec.NodeSelector = map[string]string{"pool": "x", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
	affinity := func(values ...string) *corev1.PodTemplateSpec {
		tmpl := template()
		tmpl.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "cloud.google.com/gke-accelerator", Operator: corev1.NodeSelectorOpIn, Values: values},
			}}},
		}}}
		return tmpl
	}
	both := func(selected string, values ...string) *corev1.PodTemplateSpec {
		tmpl := affinity(values...)
		tmpl.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": selected}
		return tmpl
	}
	terms := func(values ...string) *corev1.PodTemplateSpec {
		tmpl := template()
		required := &corev1.NodeSelector{}
		for _, v := range values {
			term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}}}
			if v != "" {
				term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: []string{v}})
			}
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
		}
		tmpl.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		return tmpl
	}
	l4 := h100("l4")
	l4.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"}
	cases := []struct {
		name        string
		spec, label string
		template    *corev1.PodTemplateSpec
		nodes       []*corev1.Node
		want        string
		source      Source
		wantErr     string
	}{
		{name: "the spec", spec: "h200", label: "H100", template: selector, want: "H200", source: SourceSpec},
		{name: "the label", label: "H100", template: selector, want: "H100", source: SourceLabel},
		{name: "the node selector", template: selector, nodes: []*corev1.Node{h100("a")}, want: "A100-80GB-SXM4", source: SourceTemplate},
		{name: "the affinity", template: affinity("nvidia-tesla-a100", "nvidia-a100-80gb"), want: "A100", source: SourceTemplate},
		{name: "several types in the affinity", template: affinity("nvidia-l4", "nvidia-tesla-t4"), wantErr: "the pod template selects both L4 and T4", source: SourceTemplate},
		{name: "a selector, and an affinity that allows more", template: both("NVIDIA-A100-SXM4-80GB", "nvidia-tesla-a100", "nvidia-h100-80gb"), want: "A100-80GB-SXM4", source: SourceTemplate},
		{name: "a selector, and an affinity with narrower forms", template: both("A100", "nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-l4"), want: "A100", source: SourceTemplate},
		{name: "a selector, and an affinity with the same form", template: both("NVIDIA-A100-SXM4-80GB", "nvidia-a100-80gb", "a100-pcie-40gb"), want: "A100-80GB-SXM4", source: SourceTemplate},
		{name: "a selector, and an affinity that contradicts it", template: both("NVIDIA-L4", "nvidia-tesla-a100", "nvidia-h100-80gb"), wantErr: "the pod template selects both L4 and A100, which no node is", source: SourceTemplate},
		{name: "alternatives of one type", template: terms("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB"), want: "A100", source: SourceTemplate},
		{name: "alternatives of several types", template: terms("NVIDIA-L4", "Tesla-T4"), wantErr: "the pod template selects both L4 and T4", source: SourceTemplate},
		{name: "an alternative of any type", template: terms("NVIDIA-L4", ""), nodes: []*corev1.Node{h100("a")}, want: "H100", source: SourceNodes},
		{name: "the nodes", template: template(), nodes: []*corev1.Node{h100("a"), h100("b")}, want: "H100", source: SourceNodes},
		{name: "several types of nodes", nodes: []*corev1.Node{h100("a"), l4}, wantErr: "both H100 and L4: set spec.accelerator", source: SourceNodes},
		{name: "nothing says", template: template()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, source, err := Resolve(c.spec, c.label, c.template, c.nodes)
			assert.Equal(t, c.source, source)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got.String())
		})
	}
}
