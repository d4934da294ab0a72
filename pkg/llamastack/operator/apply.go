package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

// fieldManager owns what the operator writes, and handover holds the replicas of a
// Deployment for the moment in which an autoscaler takes them over.
const (
	fieldManager = "llama-stack-operator"
	handover     = "llama-stack-operator-handover"
)

// annotationApplied is on every child: the hash of what was applied. A field that is no
// longer wanted is missed by no comparison of fields.
const annotationApplied = "llamastack.io/applied-hash"

// apply writes the children that are not what they should be, and says whether the
// Deployment was among them. The Deployment, which is the last, is tried before anything is
// written: what its pods cannot have must not change a Service or an Ingress either.
func (o *operator) apply(ctx context.Context, p *plan) (deploymentChanged bool, err error) {
	objects := child.Objects(p.Input)
	if _, err := o.applyOne(ctx, p.Object, objects[len(objects)-1], client.DryRunAll); err != nil {
		return false, err
	}
	for _, object := range objects {
		changed, err := o.applyOne(ctx, p.Object, object)
		if err != nil {
			return deploymentChanged, err
		}
		if _, ok := object.(*appsv1.Deployment); ok {
			deploymentChanged = changed
		}
	}
	return deploymentChanged, nil
}

func (o *operator) applyOne(ctx context.Context, owner *v1alpha2.LlamaStackDistribution, object child.Object, try ...client.ApplyOption) (changed bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("applying %s %s/%s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName(), err)
		}
	}()
	wanted, err := unstructuredOf(object)
	if err != nil {
		return false, err
	}
	live, err := o.live(ctx, wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted))
	if err != nil {
		return false, err
	}
	options := append([]client.ApplyOption{client.FieldOwner(fieldManager)}, try...)
	if live != nil {
		if err := mine(owner, live); err != nil {
			return false, err
		}
		if same, err := isSame(wanted, live); same || err != nil {
			return false, err
		}
		if wanted.GetKind() == "PersistentVolumeClaim" || isImmutable(live) {
			return false, nil // neither can be changed
		}
		if len(try) == 0 {
			if err := o.handOver(ctx, wanted, live); err != nil {
				return false, err
			}
		}
		// Not one that was made anew under this name a moment ago.
		wanted.SetUID(live.GetUID())
		options = append(options, client.ForceOwnership)
	}
	if err := o.api.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), options...); err != nil {
		return false, err
	}
	// The API server, or a webhook of somebody, may write a value in a way of its own again.
	return live == nil || wanted.GetResourceVersion() != live.GetResourceVersion(), nil
}

// unstructuredOf is what is applied: the fields that were set, and a hash of them.
func unstructuredOf(object child.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	// encoding/json sorts the keys.
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationApplied] = configuration.Hash(text)
	u.SetAnnotations(annotations)
	return u, nil
}

// live is a child as it is, or nil. What is not in the cache may still be there: somebody
// else's has none of our labels.
func (o *operator) live(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	if found, err := o.ours(ctx, kind, key); found != nil || err != nil || !isFollowed(kind) {
		return found, err
	}
	return o.read(ctx, o.api, kind, key)
}

// ours is a child with our labels, or nil.
func (o *operator) ours(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	if isFollowed(kind) {
		return o.read(ctx, o.cached, kind, key)
	}
	return o.read(ctx, o.api, kind, key)
}

// isFollowed says whether children of a kind are in the cache.
func isFollowed(kind schema.GroupVersionKind) bool {
	return kind.Kind != "Secret" && kind.Kind != "RoleBinding"
}

func (o *operator) read(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	empty, err := o.api.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	object := empty.(client.Object)
	if err := from.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return object, nil
}

// mine is an error where a child belongs to somebody else.
func mine(owner, live client.Object) error {
	if metav1.IsControlledBy(live, owner) {
		return nil
	}
	return fmt.Errorf("it exists and does not belong to this LlamaStackDistribution: delete it, or give the distribution another name")
}

// isSame says whether a child has all that is wanted, and nothing that was applied
// earlier and no longer is.
func isSame(wanted *unstructured.Unstructured, live client.Object) (bool, error) {
	if live.GetAnnotations()[annotationApplied] != wanted.GetAnnotations()[annotationApplied] {
		return false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, err
	}
	if !covers(content["metadata"], wanted.Object["metadata"], false) {
		return false, nil
	}
	want := wanted.DeepCopy().Object
	delete(want, "metadata")
	delete(want, "apiVersion") // an object out of a cache has lost them
	delete(want, "kind")
	return covers(content, want, slices.Contains(wholeLists, wanted.GetKind())), nil
}

// wholeLists are the kinds whose lists have one owner each: others may add nothing to them.
var wholeLists = []string{"HorizontalPodAutoscaler", "Ingress", "NetworkPolicy", "RoleBinding"}

// covers says whether a value has all that is wanted of it. Of a list of objects others
// may have added some, unless lists are to be whole: then an empty object, which admits
// everybody to a network, must be there too.
func covers(live, wanted any, whole bool) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		if !ok {
			return len(wanted) == 0 && live == nil && !whole
		}
		if whole && len(wanted) == 0 && len(fields) > 0 {
			return false
		}
		for key, value := range wanted {
			if !covers(fields[key], value, whole) {
				return false
			}
		}
		return true
	case []any:
		list, ok := live.([]any)
		if !ok {
			return len(wanted) == 0 && live == nil
		}
		return coversList(list, wanted, whole)
	default:
		return live == wanted || wanted == nil
	}
}

func coversList(live, wanted []any, whole bool) bool {
	if len(live) < len(wanted) {
		return false
	}
	for i, value := range wanted {
		if _, isObject := value.(map[string]any); whole || !isObject {
			if len(live) != len(wanted) || !covers(live[i], value, whole) {
				return false
			}
		} else if !anyCovers(live, value) {
			return false
		}
	}
	return true
}

func anyCovers(list []any, wanted any) bool {
	for _, one := range list {
		if covers(one, wanted, false) {
			return true
		}
	}
	return false
}

func isImmutable(live client.Object) bool {
	configMap, ok := live.(*corev1.ConfigMap)
	return ok && configMap.Immutable != nil && *configMap.Immutable
}

// handOver lets a second manager own the replicas of a Deployment that an autoscaler is to
// scale from now on. Without it they would fall back to one with our last claim on them. An
// autoscaler leaves a Deployment of no replicas alone, so that it gets one.
func (o *operator) handOver(ctx context.Context, wanted *unstructured.Unstructured, live client.Object) error {
	deployment, ok := live.(*appsv1.Deployment)
	if _, stays, _ := unstructured.NestedInt64(wanted.Object, "spec", "replicas"); !ok || stays || !ownsReplicas(live) {
		return nil
	}
	options := []client.ApplyOption{client.FieldOwner(handover)}
	replicas := int64(*deployment.Spec.Replicas)
	if replicas == 0 {
		replicas = 1
		options = append(options, client.ForceOwnership)
	}
	keep := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": live.GetNamespace(), "name": live.GetName(), "uid": string(live.GetUID())},
		"spec":     map[string]any{"replicas": replicas},
	}}
	return o.api.Apply(ctx, client.ApplyConfigurationFromUnstructured(keep), options...)
}

func ownsReplicas(live client.Object) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == fieldManager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas"`) {
			return true
		}
	}
	return false
}

// revoke deletes the children of the object that the plan has no more.
func (o *operator) revoke(ctx context.Context, p *plan) error {
	wanted := map[child.Name]bool{}
	for _, object := range child.Objects(p.Input) {
		wanted[child.Name{GroupVersionKind: object.GetObjectKind().GroupVersionKind(), Name: object.GetName()}] = true
	}
	for _, name := range child.Revocable(p.Object.Name) {
		if wanted[name] {
			continue
		}
		key := client.ObjectKey{Namespace: p.Object.Namespace, Name: name.Name}
		live, err := o.ours(ctx, name.GroupVersionKind, key)
		if err != nil {
			return fmt.Errorf("looking for %s %s: %w", name.Kind, key, err)
		}
		if live == nil || mine(p.Object, live) != nil {
			continue
		}
		uid := live.GetUID()
		if err := o.api.Delete(ctx, live, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", name.Kind, key, err)
		}
	}
	return nil
}
