package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// findChild finds out more of a target whose own kind is not known here and which has one
// Deployment below it, as an operator makes it: the pods, their template and their
// rollout are those of the Deployment. Without one, or with several, the selector of the
// target's scale counts.
func (f *targetFinder) findChild(ctx context.Context, v *variant) error {
	t := &v.target
	if t.scale == nil || t.scale.UID == "" {
		return nil
	}
	var below appsv1.DeploymentList
	err := f.reader.List(ctx, &below, client.InNamespace(v.key.Namespace), client.MatchingFields{indexOwner: string(t.scale.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the Deployments of %s: %w", t, err)
	}
	if len(below.Items) != 1 {
		return nil
	}
	child := target{ref: t.ref}
	if err := f.deployment(ctx, client.ObjectKeyFromObject(&below.Items[0]), &child); err != nil {
		return fmt.Errorf("reading the Deployment of %s: %w", t, err)
	}
	t.child = targetKeyOf("apps/v1", "Deployment", below.Items[0].Name)
	t.template, t.podsPerReplica, t.owners = child.template, child.podsPerReplica, child.owners
	t.rollout, t.rolling, t.costed, t.revision = child.rollout, child.rolling, child.costed, child.revision
	t.selector, t.blind = nil, ""
	return nil
}
