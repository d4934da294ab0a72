package migrate

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// beside is a document with the metadata that its object has in the cluster: a CRD drops fields of a
// spec, but none of those. What a run before this one has set already is as in the document.
func beside(d, made *migration.Document, live *unstructured.Unstructured) (migration.Document, error) {
	object, err := migration.Clone(d.Object)
	if err != nil {
		return migration.Document{}, err
	}
	was := &unstructured.Unstructured{Object: object}
	labels := maps.Clone(live.GetLabels())
	if made != nil {
		written := was.GetLabels()
		for name, value := range labelsOf(made) {
			if labels[name] != value {
				continue
			}
			delete(labels, name)
			if before, ok := written[name]; ok {
				labels[name] = before
			}
		}
	}
	was.SetLabels(labels)
	was.SetAnnotations(live.GetAnnotations())
	if owners := live.GetOwnerReferences(); len(owners) > 0 {
		was.SetOwnerReferences(owners)
	}
	one := *d
	one.Object = object
	one.Text, err = migration.Marshal(object)
	return one, err
}

func labelsOf(d *migration.Document) map[string]string {
	return (&unstructured.Unstructured{Object: d.Object}).GetLabels()
}

// labelsFor are the labels of an object that is changed to a document. Those that came after the
// document was written stay, as one that says who handles the object. Those that the change
// added go when it is undone, unless somebody has set them to another value since.
func (c *change) labelsFor(live *unstructured.Unstructured, d *migration.Document) map[string]string {
	labels, wanted := live.GetLabels(), labelsOf(d)
	if added, ok := c.undone[d.Kind+" "+d.Key()]; ok {
		for name, value := range labelsOf(added) {
			if _, stays := wanted[name]; !stays && labels[name] == value {
				delete(labels, name)
			}
		}
	}
	for name, value := range wanted {
		labels = with(labels, name, value)
	}
	return labels
}

// ownersFor are the owners of an object that is changed to a document: none in the present form, so
// that it stays when its Deployment is deleted. On the way back they are those of before that are
// still there: an object whose owner is gone would be deleted at once.
func (c *change) ownersFor(ctx context.Context, d *migration.Document) (owners []metav1.OwnerReference) {
	if c.undone == nil {
		return nil
	}
	for _, owner := range (&unstructured.Unstructured{Object: d.Object}).GetOwnerReferences() {
		live := &unstructured.Unstructured{}
		live.SetAPIVersion(owner.APIVersion)
		live.SetKind(owner.Kind)
		switch err := c.api.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: owner.Name}, live); {
		case err == nil && live.GetUID() == owner.UID:
			owners = append(owners, owner)
		default:
			output.Note(c.out, fmt.Sprintf("%s %s no longer belongs to %s %s, which is not there or cannot be read", d.Kind, d.Key(), owner.Kind, owner.Name))
		}
	}
	return owners
}
