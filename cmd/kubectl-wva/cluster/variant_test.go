package cluster

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// storedBefore is a cluster that holds one good object and one of an earlier schema.
type storedBefore struct{ client.WithWatch }

const bad = `{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"namespace":"llm","name":"bad"},"spec":{"maxReplicas":"6"}}`

func (storedBefore) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	text := `{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscalingList","items":[
		{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"namespace":"llm","name":"good"},"spec":{"maxReplicas":6}},` + bad + `]}`
	return json.Unmarshal([]byte(text), list)
}

func (storedBefore) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return json.Unmarshal([]byte(bad), object)
}

// One object that does not fit the present kind hides no other, and is named.
func TestAnObjectOfAnotherFormHidesNoOther(t *testing.T) {
	list, err := Variants(t.Context(), each{storedBefore{}}, "")
	require.NoError(t, err)
	readable, unreadable := Readable(list)
	require.Len(t, readable, 1)
	assert.Equal(t, "good", readable[0].Name)
	assert.Equal(t, int32(6), *readable[0].Spec.MaxReplicas)
	const why = "VariantAutoscaling llm/bad cannot be read, so the autoscaler leaves it out: json: cannot unmarshal string into Go struct field VariantAutoscalingSpec.spec.maxReplicas of type int32; " +
		"correct it with `kubectl -n llm edit variantautoscalings bad`"
	assert.Equal(t, []string{why}, unreadable)

	_, err = NewFlags().Variant(t.Context(), each{storedBefore{}}, "bad")
	require.EqualError(t, err, why)
}
