package modelserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestEngineOf(t *testing.T) {
	for _, tc := range []struct {
		name      string
		container corev1.Container
		want      Engine
	}{
		{"an image of vLLM", corev1.Container{Image: "docker.io/vllm/vllm-openai:v0.19.0", Args: []string{"--model=m"}}, VLLM},
		{"its program", corev1.Container{Image: "ghcr.io/llm-d/llm-d-cuda", Command: []string{"vllm", "serve", "m"}}, VLLM},
		{"its module, for a shell", corev1.Container{Command: []string{"sh", "-c", "exec python3 -m vllm.entrypoints.openai.api_server --model m"}}, VLLM},
		{"by its path", corev1.Container{Command: []string{"/opt/bin/vllm"}, Args: []string{"serve", "m"}}, VLLM},
		{"an image of SGLang", corev1.Container{Image: "lmsysorg/sglang:latest"}, SGLang},
		{"its module", corev1.Container{Command: []string{"python3", "-m", "sglang.launch_server"}}, SGLang},
		{"what it runs, not what it was built on", corev1.Container{Image: "acme/vllm-and-more", Args: []string{"sglang", "serve"}}, SGLang},
		{"a name that is like it", corev1.Container{Image: "acme/server", Args: []string{"--served-model-name=vllm-model", "--vllm-port=8000"}}, EngineUnknown},
		{"a proxy", corev1.Container{Image: "envoyproxy/envoy"}, EngineUnknown},
		{"nothing", corev1.Container{}, EngineUnknown},
	} {
		assert.Equal(t, tc.want, EngineOf(&tc.container), tc.name)
	}
	assert.Equal(t, VLLM, EngineIn([]string{"sh", "-c", "exec vllm serve m"}))
	assert.Equal(t, EngineUnknown, EngineIn([]string{"bash", "/scripts/start.sh"}), "a script shows nothing")
}
