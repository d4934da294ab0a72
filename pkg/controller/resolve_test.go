package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestWhatTheArgumentsOfAServerFix(t *testing.T) {
	template := func(containers ...corev1.Container) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
	}
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		batch    int
		cache    capacity.Tokens
	}{
		{"no template", nil, 0, 0},
		{"nothing is known", template(corev1.Container{Args: []string{"--port=8000"}}), 0, 0},
		{"vLLM without words about it", template(corev1.Container{Image: "vllm/vllm-openai"}), 256, 0},
		{"vLLM", template(corev1.Container{Args: []string{"--max-num-seqs=64", "--num-gpu-blocks-override", "1000", "--block-size=32"}}), 64, 32000},
		{"SGLang", template(corev1.Container{Args: []string{"--max-running-requests=48", "--max-total-tokens=20000"}}), 48, 20000},
		{"a shell's command line behind a proxy", template(
			corev1.Container{Name: "proxy", Args: []string{"--port=1"}},
			corev1.Container{Command: []string{"sh", "-c", "vllm serve m --num-gpu-blocks-override=10"}},
		), 256, 160},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			batch, cache := serverLimits(c.template)
			assert.Equal(t, c.batch, batch)
			assert.Equal(t, c.cache, cache)
		})
	}
}
