package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// object is one whose cost may be of any type.
func object(name string, cost any) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
		"metadata": map[string]any{
			"namespace": "n", "name": name, "uid": "u", "resourceVersion": "7", "labels": map[string]any{"a": "b"},
			"annotations": map[string]any{"some": "thing"},
		},
		"spec":   map[string]any{"modelID": "m", "scaleTargetRef": map[string]any{"name": "d"}, "variantCost": cost},
		"status": map[string]any{"serviceClass": "Premium"},
	}}
}

func TestAnObjectThatDoesNotFitItsTypeHidesNoOther(t *testing.T) {
	remaining := int64(3)
	stored := &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscalingList"},
		Items:  []unstructured.Unstructured{object("good", "10"), object("bad", int64(10))},
	}
	stored.SetResourceVersion("8")
	stored.SetContinue("more")
	stored.SetRemainingItemCount(&remaining)
	list := v1alpha1.DecodeList(stored)
	assert.Equal(t, metav1.ListMeta{ResourceVersion: "8", Continue: "more", RemainingItemCount: &remaining}, list.ListMeta)
	require.Len(t, list.Items, 2)
	good, bad := list.Items[0], list.Items[1]
	assert.Equal(t, "10", good.Spec.VariantCost)
	assert.Equal(t, "Premium", good.Status.ServiceClass)
	assert.Equal(t, map[string]string{"some": "thing"}, good.Annotations)

	assert.Equal(t, "bad", bad.Name)
	assert.Equal(t, "7", bad.ResourceVersion)
	assert.Equal(t, map[string]string{"a": "b"}, bad.Labels)
	assert.Contains(t, bad.Annotations[v1alpha1.AnnotationUndecodable], "cannot unmarshal number into Go struct field")
	assert.Contains(t, bad.Annotations[v1alpha1.AnnotationUndecodable], "spec.variantCost of type string")
	assert.Empty(t, bad.Spec, "half of what a user wrote is not what he wrote")
}

func TestNobodyElseSaysThatAnObjectCannotBeRead(t *testing.T) {
	stored := object("good", "10")
	stored.SetAnnotations(map[string]string{v1alpha1.AnnotationUndecodable: "a lie", "some": "thing"})
	assert.Equal(t, map[string]string{"some": "thing"}, v1alpha1.Decode(&stored).Annotations)
}

func TestAWatchGoesOnPastAnObjectThatDoesNotFitItsType(t *testing.T) {
	from := watch.NewFakeWithChanSize(3, false)
	bad, good := object("bad", int64(10)), object("good", "10")
	from.Add(&bad)
	from.Modify(&good)
	from.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
	decoded := v1alpha1.DecodeWatch(from)
	defer decoded.Stop()
	first, second, third := <-decoded.ResultChan(), <-decoded.ResultChan(), <-decoded.ResultChan()
	assert.Equal(t, watch.Added, first.Type)
	assert.NotEmpty(t, first.Object.(*v1alpha1.VariantAutoscaling).Annotations[v1alpha1.AnnotationUndecodable])
	assert.Equal(t, watch.Modified, second.Type)
	assert.Equal(t, "10", second.Object.(*v1alpha1.VariantAutoscaling).Spec.VariantCost)
	assert.Equal(t, metav1.StatusReasonExpired, third.Object.(*metav1.Status).Reason)
}
