package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/carrying"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// ConvertToHub writes the object as one of v1alpha2 into the hub, which is empty. What
// v1alpha2 has no field for goes into annotations; what annotations carry of
// v1alpha2 comes back, unless a field that was edited since says otherwise.
func ConvertToHub(source *LlamaStackDistribution, hub *v1alpha2.LlamaStackDistribution) {
	source = source.DeepCopy()
	hub.ObjectMeta = source.ObjectMeta
	carried, keys := readHubExtras(source.Annotations)
	drop(hub.Annotations, keys)

	var extras v1alpha2.V1alpha1Extras
	hub.Spec, extras = hubSpecOf(&source.Spec)
	hub.Status = hubStatusOf(&source.Status)
	carried.applyTo(hub, source)
	annotate(&hub.ObjectMeta, v1alpha2.PrefixV1alpha1, extras)
}

// ConvertFromHub writes the object of v1alpha2 as one of v1alpha1 into the view, which is
// empty; the reverse of ConvertToHub.
func ConvertFromHub(hub *v1alpha2.LlamaStackDistribution, view *LlamaStackDistribution) {
	hub = hub.DeepCopy()
	view.ObjectMeta = hub.ObjectMeta
	carried, keys := v1alpha2.ReadV1alpha1Extras(hub)
	drop(view.Annotations, keys)

	view.Spec = specOf(&hub.Spec, &carried)
	view.Status = statusOf(&hub.Status)
	annotate(&view.ObjectMeta, v1alpha2.PrefixV1alpha2, hubExtrasOf(hub, view))
}

func drop(annotations map[string]string, keys []string) {
	for _, key := range keys {
		delete(annotations, key)
	}
}

// annotate writes the fields of a value as annotations. An object without annotations stays one.
func annotate(meta *metav1.ObjectMeta, prefix string, value any) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	// Both types hold nothing that has no JSON form but raw JSON, which came out of a document
	// that was read.
	_ = carrying.Write(meta.Annotations, prefix, value)
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
}
