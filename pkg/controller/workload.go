package controller

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

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
	t.found(&metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), ManagedFields: u.GetManagedFields(),
		DeletionTimestamp: u.GetDeletionTimestamp(), OwnerReferences: u.GetOwnerReferences(),
	}, ptr.To(int32(set.Replicas)), set.Template)
	t.told.Rolling, t.told.Numbered = replacingGroups(u), true
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

// replacingGroups reports whether groups are replaced by newer ones, of whatever size
// they are. A version of the kind that does not say what it observed has observed it.
func replacingGroups(u *unstructured.Unstructured) bool {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, path...) // 0 where there is none
		return n
	}
	observed, known, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if known && observed < u.GetGeneration() {
		return true
	}
	left := number("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
	return number("status", "updatedReplicas") < number("status", "replicas")-left
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
		if t.isGroups() {
			t.selectorProblem = t.unknownGroup()
		}
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
	if t.isGroups() {
		t.countGroup(t.template.Annotations[inventory.GroupSizeAnnotation])
	}
	return nil
}

// isGroups reports whether a replica of the target is a group of pods, of which the child has
// the leaders alone.
func (t *target) isGroups() bool {
	gv, err := schema.ParseGroupVersion(t.ref.APIVersion)
	return err == nil && gv.WithKind(t.ref.Kind).GroupKind() == kindLeaderWorkerSet.GroupKind()
}

// countGroup takes the size of a group from what its leaders say. Where they do not, nobody
// knows what a replica takes.
func (t *target) countGroup(size string) {
	pods, err := strconv.Atoi(size)
	if err != nil || pods < 1 {
		t.selectorProblem = t.unknownGroup()
		return
	}
	t.podsPerReplica = pods
}

func (t *target) unknownGroup() string {
	return fmt.Sprintf("how many pods a group of %s has is not known: the manager does not watch LeaderWorkerSets, because they were installed after it started or it may not list and watch them: "+
		"grant that as manifests/rbac/scale.yaml does, and restart the manager", t)
}
