package cluster

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scale reads the scale subresource of an object of any kind. A client that has the object as
// it came understands a scale in no other form.
func Scale(ctx context.Context, api client.Client, object *unstructured.Unstructured) (*autoscalingv1.Scale, error) {
	raw, scale := &unstructured.Unstructured{}, &autoscalingv1.Scale{}
	raw.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	if err := api.SubResource("scale").Get(ctx, object, raw); err != nil {
		return nil, err
	}
	return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, scale)
}
