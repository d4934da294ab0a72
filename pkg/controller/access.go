package controller

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Access says which of the things that the loop can do without may be read. A kind
// that may not be read is not watched, because a watch that is refused never
// becomes ready. A kind that is installed later is noticed when the manager starts
// again; until then its targets are read live, and KEDA shows by the
// HorizontalPodAutoscalers that it makes.
type Access struct {
	// Capacity: all nodes, and the pods of all namespaces. Without it nobody knows
	// what is free.
	Capacity bool
	// LeaderWorkerSets and ScaledObjects: the cluster serves the kind, too.
	LeaderWorkerSets, ScaledObjects bool
}

// ProbeAccess asks the API server what may be read in a namespace, or everywhere
// when it is empty.
func ProbeAccess(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, mapper apimeta.RESTMapper, namespace string) (Access, error) {
	p := prober{ctx: ctx, reviews: reviews, mapper: mapper}
	access := Access{
		Capacity:         p.may("", schema.GroupResource{Resource: "nodes"}) && p.may("", schema.GroupResource{Resource: "pods"}),
		LeaderWorkerSets: p.serves(namespace, kindLeaderWorkerSet),
		ScaledObjects:    p.serves(namespace, kindScaledObject),
	}
	return access, p.err
}

type prober struct {
	ctx     context.Context
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	mapper  apimeta.RESTMapper
	err     error
}

func (p *prober) serves(namespace string, gvk schema.GroupVersionKind) bool {
	mapping, err := p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		if !apimeta.IsNoMatchError(err) && p.err == nil {
			p.err = fmt.Errorf("finding out whether the cluster serves %s: %w", gvk.Kind, err)
		}
		return false
	}
	return p.may(namespace, mapping.Resource.GroupResource())
}

func (p *prober) may(namespace string, resource schema.GroupResource) bool {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: resource.Group, Resource: resource.Resource, Verb: verb,
			},
		}}
		answer, err := p.reviews.Create(p.ctx, review, metav1.CreateOptions{})
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("asking whether %s of %s is permitted: %w", verb, resource, err)
		}
		if err != nil || !answer.Status.Allowed {
			return false
		}
	}
	return true
}
