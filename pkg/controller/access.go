package controller

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Access says which of the things that the loop can do without are permitted. A kind
// that may not be read is not watched, because a watch that is refused never
// becomes ready. What may be counted, and whether pods may be marked, is asked again
// while the manager runs. A kind that is installed later is noticed when the manager starts
// again; until then its targets are read live, and KEDA shows by the
// HorizontalPodAutoscalers that it makes.
type Access struct {
	// Capacity: all nodes, and the pods of all namespaces. Without it nobody knows
	// what is free.
	Capacity bool
	// Missing names the permissions that Capacity lacks.
	Missing string
	// Victims: pods may be marked, so that a scale-down takes those that are chosen.
	Victims bool
	// Unread are the kinds that may not be read of those that say what pods will be and
	// how many there may be. What they would say is named in the bound of a count.
	Unread inventory.Unread
	// Local names the permissions to read what namespaces say for themselves that are
	// missing; empty also where nobody asks for them.
	Local string
	// LeaderWorkerSets and ScaledObjects: the cluster serves the kind, too.
	LeaderWorkerSets, ScaledObjects bool
	// Namespaces: their labels may be read, which say whose pods are sent on their way. It
	// counts only where that is wanted.
	Namespaces bool
}

// ProbeAccess asks the API server what may be read in a namespace, or everywhere
// when it is empty. Local says whether namespaces have a say of their own.
func ProbeAccess(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, mapper apimeta.RESTMapper, namespace string, local bool) (Access, error) {
	access, err := ProbeCore(ctx, reviews, namespace, local)
	if err != nil {
		return access, err
	}
	p := prober{ctx: ctx, reviews: reviews, mapper: mapper}
	access.LeaderWorkerSets, access.ScaledObjects = p.serves(namespace, kindLeaderWorkerSet), p.serves(namespace, kindScaledObject)
	access.Namespaces = len(p.lacks("", schema.GroupResource{Resource: "namespaces"}, "", reading...)) == 0
	return access, p.err
}

// ProbeCore asks only for what may change while the manager runs: Capacity, Victims,
// Unread and Local.
func ProbeCore(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, namespace string, local bool) (Access, error) {
	p := prober{ctx: ctx, reviews: reviews}
	nodes, pods := schema.GroupResource{Resource: "nodes"}, schema.GroupResource{Resource: "pods"}
	access := Access{
		Missing: missing(p.lacks("", nodes, "", reading...), p.lacks("", pods, "", reading...)),
		Victims: len(p.lacks(namespace, pods, "", "patch")) == 0,
	}
	access.Capacity = access.Missing == ""
	unread := func(namespace, group, name string) bool {
		return len(p.lacks(namespace, schema.GroupResource{Group: group, Resource: name}, "", reading...)) > 0
	}
	access.Unread = inventory.Unread{
		RuntimeClasses:  unread("", "node.k8s.io", "runtimeclasses"),
		PriorityClasses: unread("", "scheduling.k8s.io", "priorityclasses"),
		// The pods that would be preempted are of all namespaces.
		Budgets: unread("", "policy", "poddisruptionbudgets"),
		Quotas:  unread(namespace, "", "resourcequotas"),
	}
	if local {
		access.Local = p.local(namespace)
	}
	return access, p.err
}

// reading are the verbs that the cache needs.
var reading = []string{"list", "watch"}

// missing names the permissions to count what is free that are missing.
func missing(nodes, pods []string) string {
	var parts []string
	if len(nodes) > 0 {
		parts = append(parts, strings.Join(nodes, " and ")+" nodes")
	}
	if len(pods) > 0 {
		parts = append(parts, strings.Join(pods, " and ")+" pods in all namespaces")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the permission to %s in API group \"\" is missing: grant it as manifests/rbac/observe.yaml does", strings.Join(parts, ", and to "))
}

// local names the permissions to read what namespaces say for themselves that are missing.
func (p *prober) local(namespace string) string {
	var parts []string
	for _, name := range config.LocalConfigMaps() {
		if len(p.lacks(namespace, schema.GroupResource{Resource: "configmaps"}, name, reading...)) > 0 {
			parts = append(parts, "configmaps named "+name)
		}
	}
	if namespace == "" && len(p.lacks("", schema.GroupResource{Resource: "namespaces"}, "", reading...)) > 0 {
		parts = append(parts, "namespaces")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the permission to list and watch %s in API group \"\" is missing: grant it as manifests/namespace-config does", strings.Join(parts, ", "))
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
	return len(p.lacks(namespace, mapping.Resource.GroupResource(), "", reading...)) == 0
}

// lacks are the verbs that are not permitted on the objects of a name, or on any when it is
// empty.
func (p *prober) lacks(namespace string, resource schema.GroupResource, name string, verbs ...string) []string {
	var lacking []string
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: resource.Group, Resource: resource.Resource, Name: name, Verb: verb,
			},
		}}
		answer, err := p.reviews.Create(p.ctx, review, metav1.CreateOptions{})
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("asking whether %s of %s is permitted: %w", verb, resource, err)
		}
		if err != nil || !answer.Status.Allowed {
			lacking = append(lacking, verb)
		}
	}
	return lacking
}
