package cluster

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// An answer that cannot be read is no missing answer.
func TestAnObjectOfAnotherForm(t *testing.T) {
	err := json.Unmarshal([]byte(`{"spec":{"maxReplicas":"6"}}`), &v1alpha1.VariantAutoscaling{})
	advised := Advise(err, "list", v1alpha1.Resource, "")
	assert.ErrorContains(t, advised, "stored in a form that the present kind does not have")
	assert.ErrorContains(t, advised, "spec.maxReplicas")
	assert.NotContains(t, advised.Error(), "no answer from the cluster")
}
