package inventory

import (
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// defaultBatchLimit is the batch limit of a vLLM server that was given none.
const defaultBatchLimit = 256

// DefaultBatchLimit is the largest number of requests that the container's server takes
// into service at once when nothing says how many: vLLM's default; 0 means unknown.
func DefaultBatchLimit(c *corev1.Container) int {
	if modelserver.EngineOf(c) == modelserver.VLLM {
		return defaultBatchLimit
	}
	return 0
}
