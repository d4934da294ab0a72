package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	return nil
}
