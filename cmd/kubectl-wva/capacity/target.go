package capacity

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// readers is how many targets are read side by side.
const readers = 16

// target is a scale target as it was found.
type target struct {
	kind string
	// template is nil when it is not known.
	template *corev1.PodTemplateSpec
	// podsPerReplica is 1 unless a replica spans nodes.
	podsPerReplica int
	// owners are the controllers of the pods, and selector finds the pods of a kind
	// whose owners are not known; nil when it is not known either.
	owners   []types.UID
	selector labels.Selector
	// revision tells the pods of the present template.
	revision inventory.Revision
	// replicas are those that are asked for, and rollout is the rolling update.
	replicas int
	rollout  inventory.Rollout
	// problem says why the target is not known; empty when it is.
	problem string
}

// targets finds scale targets.
type targets struct{ api client.Client }

// find fills in the targets of all variants.
func (t targets) find(ctx context.Context, variants []variant) {
	var group errgroup.Group
	group.SetLimit(readers)
	for i := range variants {
		v := &variants[i]
		group.Go(func() error {
			v.target = t.read(ctx, v)
			return nil
		})
	}
	_ = group.Wait()
}

func (t targets) read(ctx context.Context, v *variant) target {
	ref := v.object.Spec.ScaleTargetRef
	kind, err := ref.GroupVersionKind()
	if err != nil {
		return target{kind: ref.Kind, problem: err.Error()}
	}
	found := target{kind: kind.Kind, podsPerReplica: 1}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err = t.api.Get(ctx, client.ObjectKey{Namespace: v.object.Namespace, Name: ref.Name}, object)
	if err == nil {
		err = t.fill(ctx, &found, kind.GroupKind(), object)
	}
	if err != nil {
		found.problem = explain(err, kind, v.object.Namespace, ref.Name)
	}
	return found
}

// explain says why a target is not known, and what to do.
func explain(err error, kind schema.GroupVersionKind, namespace, name string) string {
	switch {
	case apimeta.IsNoMatchError(err):
		return fmt.Sprintf("the cluster serves no kind %s in %s: correct spec.scaleTargetRef", kind.Kind, kind.GroupVersion())
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s %s does not exist in namespace %s", kind.Kind, name, namespace)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%s %s may not be read, so what a replica takes is not known: ask for the permission to get it (%v)", kind.Kind, name, err)
	default:
		return fmt.Sprintf("reading %s %s: %v", kind.Kind, name, err)
	}
}

var leaderWorkerSet = schema.GroupKind{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}

// fill takes from the target what its pods are like and by what they are found.
func (t targets) fill(ctx context.Context, found *target, kind schema.GroupKind, object *unstructured.Unstructured) error {
	switch {
	case kind.Group == appsv1.GroupName && kind.Kind == "Deployment":
		return t.deployment(ctx, found, object)
	case kind.Group == appsv1.GroupName:
		return found.workload(object)
	case kind == leaderWorkerSet:
		return t.leaderWorkerSet(ctx, found, object)
	}
	// A kind with a scale subresource, of which nothing else is known.
	scale, err := cluster.Scale(ctx, t.api, object)
	if err != nil {
		return err
	}
	if below := t.below(ctx, object); below != nil {
		err = t.fill(ctx, found, below.GroupVersionKind().GroupKind(), below)
	} else {
		err = found.selectBy(scale.Status.Selector)
	}
	found.replicas = int(scale.Spec.Replicas)
	return err
}

// below is the one Deployment or StatefulSet that an operator made of the target, whose pods
// are the target's, as they are for the manager; nil without one, or where it may not be read.
func (t targets) below(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	var made []*unstructured.Unstructured
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))
		err := pages(ctx, t.api, list, func() {
			for i := range list.Items {
				if !metav1.IsControlledBy(&list.Items[i], object) {
					continue
				}
				child := &unstructured.Unstructured{}
				child.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))
				child.SetNamespace(object.GetNamespace())
				child.SetName(list.Items[i].Name)
				made = append(made, child)
			}
		}, client.InNamespace(object.GetNamespace()))
		if err != nil {
			return nil
		}
	}
	if len(made) != 1 || t.api.Get(ctx, client.ObjectKeyFromObject(made[0]), made[0]) != nil {
		return nil
	}
	return made[0]
}

// has reports whether a pod is the target's.
func (t *target) has(pod *corev1.Pod) bool {
	if t.owners == nil {
		return t.selector.Matches(labels.Set(pod.Labels))
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && slices.Contains(t.owners, owner.UID)
}

// deployment reads a Deployment, whose pods are those of its ReplicaSets. Where those
// may not be listed, its selector finds the pods, which somebody else's may meet too.
func (t targets) deployment(ctx context.Context, found *target, object *unstructured.Unstructured) error {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
		return err
	}
	found.template, found.replicas = &d.Spec.Template, int(ptr.Deref(d.Spec.Replicas, 1))
	found.rollout = inventory.RolloutOf(&d, found.replicas)
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return err
	}
	sets := &metav1.PartialObjectMetadataList{}
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	found.owners = []types.UID{}
	var own []*appsv1.ReplicaSet
	err = pages(ctx, t.api, sets, func() {
		for i := range sets.Items {
			if metav1.IsControlledBy(&sets.Items[i], &d) {
				found.owners = append(found.owners, sets.Items[i].UID)
				own = append(own, &appsv1.ReplicaSet{ObjectMeta: sets.Items[i].ObjectMeta})
			}
		}
		found.revision = inventory.RevisionOf(&d, own)
	}, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsForbidden(err) {
		found.owners = nil
		return found.selectBy(selector.String())
	}
	return err
}

// workload reads a ReplicaSet or StatefulSet, which owns its pods. The template of a
// ReplicaSet may have changed since its pods were made.
func (t *target) workload(object *unstructured.Unstructured) error {
	var set appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return err
	}
	t.template, t.replicas = &set.Spec.Template, int(ptr.Deref(set.Spec.Replicas, 1))
	t.owners = []types.UID{set.UID}
	if object.GetKind() == "StatefulSet" {
		t.template = inventory.TemplateOfStatefulSet(&set)
		t.revision = inventory.RevisionOfStatefulSet(&set)
	}
	return nil
}

// leaderWorkerSet reads groups of pods, all of which hold devices. The leaders'
// StatefulSet has the name of the set; without it nobody knows the revision.
func (t targets) leaderWorkerSet(ctx context.Context, found *target, object *unstructured.Unstructured) error {
	set, err := inventory.LeaderWorkerSetOf(object)
	if err != nil {
		return err
	}
	found.template, found.replicas, found.podsPerReplica, found.rollout = set.Template, set.Replicas, set.PodsPerReplica, set.Rollout
	var leaders appsv1.StatefulSet
	if err := t.api.Get(ctx, client.ObjectKeyFromObject(object), &leaders); err == nil {
		found.revision = inventory.RevisionOfLeaderWorkerSet(&set, &leaders)
	}
	return found.selectBy(set.Selector)
}

// selectBy finds pods by a selector, unless it could take in the pods of others.
func (t *target) selectBy(text string) error {
	selector, err := labels.Parse(text)
	if err != nil {
		return fmt.Errorf("the selector %q: %w", text, err)
	}
	if !selector.Empty() {
		t.selector = selector
	}
	return nil
}
