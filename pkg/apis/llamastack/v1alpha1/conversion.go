package v1alpha1

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// ConvertToHub writes the object as one of v1alpha2 into the hub, which is empty. What
// v1alpha2 has no field for goes into an annotation; what an annotation carries of
// v1alpha2 comes back, unless a field that was edited since says otherwise.
func ConvertToHub(source *LlamaStackDistribution, hub *v1alpha2.LlamaStackDistribution) {
	source = source.DeepCopy()
	hub.ObjectMeta = source.ObjectMeta
	carried, understood := readHubExtras(source.Annotations)
	if understood {
		delete(hub.Annotations, v1alpha2.AnnotationV1alpha2Extras)
	}

	var extras v1alpha2.V1alpha1Extras
	hub.Spec, extras = hubSpecOf(&source.Spec)
	hub.Status = hubStatusOf(&source.Status)
	carried.applyTo(hub, source)
	annotate(&hub.ObjectMeta, v1alpha2.AnnotationV1alpha1Extras, extras, extras.IsEmpty())
}

// ConvertFromHub writes the object of v1alpha2 as one of v1alpha1 into the view, which is
// empty; the reverse of ConvertToHub.
func ConvertFromHub(hub *v1alpha2.LlamaStackDistribution, view *LlamaStackDistribution) {
	hub = hub.DeepCopy()
	view.ObjectMeta = hub.ObjectMeta
	carried, understood := v1alpha2.ReadV1alpha1Extras(hub.Annotations)
	if understood {
		v1alpha2.DropV1alpha1Extras(view.Annotations)
	}

	view.Spec = specOf(&hub.Spec, &carried)
	view.Status = statusOf(&hub.Status)
	extras := hubExtrasOf(hub, view)
	annotate(&view.ObjectMeta, v1alpha2.AnnotationV1alpha2Extras, extras, extras.isEmpty())
}

// annotate writes a value as an annotation, or nothing where it is empty. An object
// without annotations stays one.
func annotate(meta *metav1.ObjectMeta, key string, value any, empty bool) {
	if !empty {
		// Both types hold nothing that has no JSON form but raw JSON, which came out of
		// a document that was read.
		if text, err := json.Marshal(value); err == nil {
			metav1.SetMetaDataAnnotation(meta, key, string(text))
		}
	}
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
}

// present says whether a parent that would not be made for its fields was there.
func present(names []string, name string) bool { return slices.Contains(names, name) }
