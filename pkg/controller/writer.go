package controller

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownsReplicas is all that the cache keeps of the fields that a manager owns.
var ownsReplicas = &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)}

// keepWriter drops all managed fields of a scale target but who wrote its replicas. It
// changes nothing in an object that it has seen before, as a transform must not.
func keepWriter(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(writersOfReplicas(o.GetManagedFields()))
	}
	return object, nil
}

// writersOfReplicas is the newest entry that owns spec.replicas, whether it was
// written as such or through the scale subresource. Whoever changes the number takes it
// from all others; there is more than one only where somebody applied the number that
// was there, and that one agreed last. What was written through the scale subresource
// carries no time.
func writersOfReplicas(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var newest *metav1.ManagedFieldsEntry
	for i := range entries {
		if e := &entries[i]; holdsReplicas(e.FieldsV1) && (newest == nil || newest.Time.Before(e.Time)) {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}
	kept := *newest
	kept.FieldsV1 = ownsReplicas
	return []metav1.ManagedFieldsEntry{kept}
}

func holdsReplicas(fields *metav1.FieldsV1) bool {
	if fields == nil || !bytes.Contains(fields.Raw, []byte(`"f:replicas"`)) {
		return false
	}
	var owned struct {
		Spec struct {
			Replicas json.RawMessage `json:"f:replicas"`
		} `json:"f:spec"`
	}
	return json.Unmarshal(fields.Raw, &owned) == nil && owned.Spec.Replicas != nil
}

// lastWriter is the field manager that wrote the replicas last; empty when nobody knows: a
// scale to 0 through the scale subresource takes the number from its owner, and from then on
// Kubernetes names none. Our own name is that of a second manager where the number is not what
// this one wrote.
func lastWriter(entries []metav1.ManagedFieldsEntry) string {
	if last := writersOfReplicas(entries); len(last) > 0 {
		return last[0].Manager
	}
	return ""
}
