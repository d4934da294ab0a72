package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// Decode is an object as the API server holds it. One that does not fit the Go type, as one that
// was stored before its schema was tightened, has its metadata alone, and AnnotationUndecodable
// says why: a list that fails as a whole would hide all others.
func Decode(stored *unstructured.Unstructured) *VariantAutoscaling {
	if at := LongExponent(stored.Object); at != "" {
		return undecoded(stored, at+" is a number with an exponent that takes too long to read")
	}
	v := &VariantAutoscaling{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, v) == nil {
		// Whoever wrote the object may not say so.
		delete(v.Annotations, AnnotationUndecodable)
		return v
	}
	// This error names the field.
	text, err := stored.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &VariantAutoscaling{})
	}
	if err != nil {
		return undecoded(stored, err.Error())
	}
	return undecoded(stored, "the object does not fit its schema")
}

// undecoded is the metadata of an object, and why there is no more of it.
func undecoded(stored *unstructured.Unstructured, why string) *VariantAutoscaling {
	return &VariantAutoscaling{
		TypeMeta: metav1.TypeMeta{APIVersion: stored.GetAPIVersion(), Kind: stored.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: stored.GetNamespace(), Name: stored.GetName(), UID: stored.GetUID(),
			ResourceVersion: stored.GetResourceVersion(), Generation: stored.GetGeneration(),
			CreationTimestamp: stored.GetCreationTimestamp(), DeletionTimestamp: stored.GetDeletionTimestamp(),
			Labels: stored.GetLabels(), Annotations: map[string]string{AnnotationUndecodable: why},
		},
	}
}

// DecodeList decodes each object of a list.
func DecodeList(stored *unstructured.UnstructuredList) *VariantAutoscalingList {
	list := &VariantAutoscalingList{
		TypeMeta: metav1.TypeMeta{APIVersion: stored.GetAPIVersion(), Kind: stored.GetKind()},
		ListMeta: metav1.ListMeta{
			ResourceVersion: stored.GetResourceVersion(), Continue: stored.GetContinue(), RemainingItemCount: stored.GetRemainingItemCount(),
		},
		Items: make([]VariantAutoscaling, len(stored.Items)),
	}
	for i := range stored.Items {
		list.Items[i] = *Decode(&stored.Items[i])
	}
	return list
}

// DecodeWatch decodes each object of a watch.
func DecodeWatch(stored watch.Interface) watch.Interface {
	return watch.Filter(stored, func(e watch.Event) (watch.Event, bool) {
		if object, ok := e.Object.(*unstructured.Unstructured); ok {
			e.Object = Decode(object)
		}
		return e, true
	})
}
