package controller

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
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
	access.Namespaces = p.reads(attributes{Resource: "namespaces"})
	return access, p.err
}

// ProbeCore asks only for what may change while the manager runs: Capacity, Victims,
// Unread and Local.
func ProbeCore(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, namespace string, local bool) (Access, error) {
	p := prober{ctx: ctx, reviews: reviews}
	access := Access{
		Missing: missing(p.lacks(attributes{Resource: "nodes"}, reading...), p.lacks(attributes{Resource: "pods"}, reading...)),
		Victims: len(p.lacks(attributes{Namespace: namespace, Resource: "pods"}, "patch")) == 0,
		Unread: inventory.Unread{
			RuntimeClasses:  !p.reads(attributes{Group: "node.k8s.io", Resource: "runtimeclasses"}),
			PriorityClasses: !p.reads(attributes{Group: "scheduling.k8s.io", Resource: "priorityclasses"}),
			// The pods that would be preempted are of all namespaces.
			Budgets: !p.reads(attributes{Group: "policy", Resource: "poddisruptionbudgets"}),
			Quotas:  !p.reads(attributes{Namespace: namespace, Resource: "resourcequotas"}),
		},
	}
	access.Capacity = access.Missing == ""
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
		if !p.reads(attributes{Namespace: namespace, Resource: "configmaps", Name: name}) {
			parts = append(parts, "configmaps named "+name)
		}
	}
	if namespace == "" && !p.reads(attributes{Resource: "namespaces"}) {
		parts = append(parts, "namespaces")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the permission to list and watch %s in API group \"\" is missing: grant it as manifests/namespace-config does", strings.Join(parts, ", "))
}

// attributes are a resource in a namespace, or everywhere where it names none; of one name where it
// gives that.
type attributes = authorizationv1.ResourceAttributes

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
	return p.reads(attributes{Namespace: namespace, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource})
}

func (p *prober) reads(what attributes) bool { return len(p.lacks(what, reading...)) == 0 }

// lacks are the verbs that are not permitted.
func (p *prober) lacks(what attributes, verbs ...string) []string {
	var lacking []string
	for _, verb := range verbs {
		what.Verb = verb
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
		answer, err := p.reviews.Create(p.ctx, review, metav1.CreateOptions{})
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("asking whether %s of %s is permitted: %w", verb, schema.GroupResource{Group: what.Group, Resource: what.Resource}, err)
		}
		if err != nil || !answer.Status.Allowed {
			lacking = append(lacking, verb)
		}
	}
	return lacking
}

const (
	// askEvery is the time between two looks at what is permitted.
	askEvery = 30 * time.Second
	// settledAfter is how many answers in a row must grant again what was lost, so that
	// the watches, which pause for up to a minute after a refusal, are back by then.
	settledAfter = 4
)

// What a condition says while a permission is there and its objects are not.
const (
	grantedSince = "the permission that was missing when the manager started is granted now: restart the manager"
	grantedAgain = "the permission that was lost is granted again: nodes and pods are counted in about two minutes, when their watches are back"
)

// permissions follow what is permitted while the manager runs. What is taken away is
// not used any more; without that the cache would show for ever what it saw last.
type permissions struct {
	// atStart says what the cache was made for.
	atStart Access
	ask     func(context.Context) (Access, error)
	trigger *trigger
	current atomic.Pointer[Access]

	// What follows belongs to the goroutine of Start.

	// blind is set while nodes and pods may not be used although the cache was made for them,
	// and unread are the kinds that may not be. Granted is how many answers in a row have
	// granted all that was lost.
	blind   bool
	unread  inventory.Unread
	granted int
}

func newPermissions(atStart Access, ask func(context.Context) (Access, error), t *trigger) *permissions {
	p := &permissions{atStart: atStart, ask: ask, trigger: t, unread: atStart.Unread}
	p.current.Store(&atStart)
	return p
}

// NeedLeaderElection lets every replica follow, so that a new leader knows.
func (p *permissions) NeedLeaderElection() bool { return false }

// Start asks until the context ends.
func (p *permissions) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, askEvery, false, func(ctx context.Context) (bool, error) {
		p.look(ctx)
		return false, nil
	})
	return nil
}

// look asks once. Without an answer what was known stays.
func (p *permissions) look(ctx context.Context) {
	answer, err := p.ask(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The manager's permissions could not be checked; those of the last check are assumed")
		return
	}
	next, was := p.next(answer), p.current.Load()
	if next == *was {
		return
	}
	p.current.Store(&next)
	p.trigger.poke(round.Soon)
	klog.FromContext(ctx).Info("The manager's permissions changed", "capacity", next.Capacity, "missing", next.Missing, "victims", next.Victims, "namespaceConfig", next.Local)
}

// next is what is in force after an answer. The kinds that are watched are those of
// the start; what was lost is not used until its watches are back.
func (p *permissions) next(answer Access) Access {
	next := p.atStart
	next.Victims, next.Local, next.Capacity, next.Missing = answer.Victims, answer.Local, answer.Capacity, answer.Missing
	blind, unread := p.atStart.Capacity && !answer.Capacity, answer.Unread.Or(p.atStart.Unread)
	if blind || unread != p.atStart.Unread {
		p.blind, p.unread, p.granted = p.blind || blind, p.unread.Or(unread), 0
	} else if p.granted++; p.granted >= settledAfter {
		p.blind, p.unread = false, unread
	}
	next.Unread = p.unread
	switch {
	case !answer.Capacity:
	case !p.atStart.Capacity:
		next.Capacity, next.Missing = false, grantedSince
	case p.blind:
		next.Capacity, next.Missing = false, grantedAgain
	}
	return next
}
