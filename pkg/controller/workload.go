package controller

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// shared reads without a copy: nothing here changes what it reads.
var shared = &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}

func (f *targetFinder) deployment(ctx context.Context, key client.ObjectKey, t *target) error {
	var d appsv1.Deployment
	if err := f.reader.Get(ctx, key, &d, shared); err != nil {
		return err
	}
	t.found(&d, d.Spec.Replicas, &d.Spec.Template)
	t.rollout, t.costed = inventory.RolloutOf(&d, int(t.scale.Spec.Replicas)), true
	t.told.Rolling = t.rollout.Unobserved || t.rollout.UnderWay && inventory.Progresses(&d)
	t.owners = nil
	var sets appsv1.ReplicaSetList
	err := f.reader.List(ctx, &sets, client.InNamespace(key.Namespace), client.MatchingFields{indexOwner: string(d.UID)}, client.UnsafeDisableDeepCopy)
	for i := range sets.Items {
		t.owners = append(t.owners, sets.Items[i].UID)
	}
	t.told.Paused = d.Spec.Paused && len(t.owners) == 0 // those that are there are scaled, paused or not
	t.revision = inventory.RevisionOf(&d, pointers(sets.Items))
	return err
}

func (f *targetFinder) statefulSet(ctx context.Context, key client.ObjectKey, t *target) error {
	var s appsv1.StatefulSet
	if err := f.reader.Get(ctx, key, &s, shared); err != nil {
		return err
	}
	t.found(&s, s.Spec.Replicas, inventory.TemplateOfStatefulSet(&s))
	t.told.Rolling, t.revision = inventory.Replaces(&s), inventory.RevisionOfStatefulSet(&s)
	t.told.Ordered, t.told.Settling = inventory.OrderOfStatefulSet(&s)
	t.told.Numbered, t.told.First = true, int(ptr.Deref(s.Spec.Ordinals, appsv1.StatefulSetOrdinals{}).Start)
	return nil
}

func (f *targetFinder) replicaSet(ctx context.Context, key client.ObjectKey, t *target) error {
	var s appsv1.ReplicaSet
	if err := f.reader.Get(ctx, key, &s, shared); err != nil {
		return err
	}
	if owner := metav1.GetControllerOfNoCopy(&s); owner != nil {
		t.refuse(decision.TargetConflict, v1alpha1.ReasonAutoscalerOnTarget, "%s %s decides the replicas of %s: name it in spec.scaleTargetRef instead", owner.Kind, owner.Name, t)
	}
	t.found(&s, s.Spec.Replicas, &s.Spec.Template)
	t.costed = true
	return nil
}

// found records a target whose pods it owns itself.
func (t *target) found(object metav1.Object, replicas *int32, template *corev1.PodTemplateSpec) {
	t.scale = &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		},
		Spec: autoscalingv1.ScaleSpec{Replicas: ptr.Deref(replicas, 1)},
	}
	t.template, t.podsPerReplica, t.owners, t.ends = template, 1, []types.UID{object.GetUID()}, object.GetDeletionTimestamp() != nil
	t.told.Writer = lastWriter(object.GetManagedFields())
	if maker := metav1.GetControllerOfNoCopy(object); maker != nil {
		t.above = targetKeyOf(maker.APIVersion, maker.Kind, maker.Name)
	}
}

// leaderWorkerSet reads one LeaderWorkerSet. Its scale counts groups of pods, and its
// selector finds their leaders.
func (f *targetFinder) leaderWorkerSet(ctx context.Context, key client.ObjectKey, t *target) error {
	u := empty(kindLeaderWorkerSet)
	if err := f.reader.Get(ctx, key, u); err != nil {
		return err
	}
	set, err := inventory.LeaderWorkerSetOf(u)
	if err != nil {
		return err
	}
	t.found(u, ptr.To(int32(set.Replicas)), set.Template)
	t.told.Rolling, t.told.Numbered = set.Rolling, true
	t.podsPerReplica, t.owners, t.rollout = set.PodsPerReplica, nil, set.Rollout
	t.bySelector(set.Selector)
	// The leaders' StatefulSet has the name of the set.
	var leaders appsv1.StatefulSet
	switch err := f.reader.Get(ctx, key, &leaders, shared); {
	case err == nil:
		if metav1.IsControlledBy(&leaders, u) {
			t.child = targetKey(appsKind("StatefulSet"), leaders.Name)
		}
		t.revision = inventory.RevisionOfLeaderWorkerSet(&set, &leaders)
	case !apierrors.IsNotFound(err):
		return err
	}
	return nil
}

// findChild finds out more of a target whose own kind is not known here and which has one
// Deployment or StatefulSet below it, as an operator makes it: the pods, their template and
// their rollout are those of the child. Without one, or with several, the selector of the
// target's scale counts.
func (f *targetFinder) findChild(ctx context.Context, v *variant) error {
	t := &v.target
	if t.scale == nil || t.scale.UID == "" {
		return nil
	}
	var deployments appsv1.DeploymentList
	var sets appsv1.StatefulSetList
	for _, list := range []client.ObjectList{&deployments, &sets} {
		err := f.reader.List(ctx, list, client.InNamespace(v.key.Namespace), client.MatchingFields{indexOwner: string(t.scale.UID)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing what %s has below it: %w", t, err)
		}
	}
	if len(deployments.Items)+len(sets.Items) != 1 {
		t.countGroup("")
		return nil
	}
	kind, read := "Deployment", f.deployment
	var below client.Object
	if len(sets.Items) == 1 {
		kind, read, below = "StatefulSet", f.statefulSet, &sets.Items[0]
	} else {
		below = &deployments.Items[0]
	}
	child := target{ref: t.ref}
	if err := read(ctx, client.ObjectKeyFromObject(below), &child); err != nil {
		return fmt.Errorf("reading the %s of %s: %w", kind, t, err)
	}
	t.child = targetKey(appsKind(kind), below.GetName())
	t.template, t.podsPerReplica, t.owners = child.template, child.podsPerReplica, child.owners
	t.rollout, t.told, t.costed, t.revision = child.rollout, child.told, child.costed, child.revision
	t.told.Writer = "" // whoever writes the child's replicas is the operator
	t.selector, t.selectorProblem = nil, ""
	t.countGroup(t.template.Annotations[inventory.GroupSizeAnnotation])
	return nil
}

// countGroup takes the size of a group, where a replica of the target is one, from what its
// leaders say, who are all that the child has. Where nobody says, nobody knows what a replica takes.
func (t *target) countGroup(size string) {
	if schema.FromAPIVersionAndKind(t.ref.APIVersion, t.ref.Kind).GroupKind() != kindLeaderWorkerSet.GroupKind() {
		return
	}
	pods, err := strconv.Atoi(size)
	if err != nil || pods < 1 {
		t.selectorProblem = fmt.Sprintf("how many pods a group of %s has is not known: the manager does not watch LeaderWorkerSets, because they were installed after it started or it may not list and watch them: "+
			"grant that as manifests/rbac/scale.yaml does, and restart the manager", t)
		return
	}
	t.podsPerReplica = pods
}
