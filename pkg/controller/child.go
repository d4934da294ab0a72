package controller

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

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
