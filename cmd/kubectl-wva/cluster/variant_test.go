package cluster

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// storedBefore is a cluster that holds one good object and one of an earlier schema.
type storedBefore struct{ client.Reader }

func (storedBefore) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	text := `{"items":[
		{"metadata":{"namespace":"llm","name":"good"},"spec":{"maxReplicas":6}},
		{"metadata":{"namespace":"llm","name":"bad"},"spec":{"maxReplicas":"6"}}]}`
	return json.Unmarshal([]byte(text), list)
}

// Whoever has a hundred of them is told which one to correct.
func TestAnObjectOfAnotherFormIsNamed(t *testing.T) {
	_, err := Variants(t.Context(), storedBefore{}, "")
	assert.ErrorContains(t, err, "VariantAutoscaling llm/bad cannot be read, so the autoscaler leaves it out: json: cannot unmarshal string")
	assert.ErrorContains(t, err, "spec.maxReplicas")
	assert.ErrorContains(t, err, "kubectl -n llm edit variantautoscalings bad")
	assert.NotContains(t, err.Error(), "llm/good")
	assert.NotContains(t, err.Error(), "no answer from the cluster")
}
