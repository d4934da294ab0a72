package capacity

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// pageSize is how many objects are asked for at once, as kubectl does.
const pageSize = 500

// facts are what was read of a cluster.
type facts struct {
	// names are those that accelerators have here.
	names *inventory.Names
	nodes []*corev1.Node
	// pods are those that have not ended; podsKnown says that they are all there.
	pods      []*corev1.Pod
	podsKnown bool
	// rules are the objects that say what pods will be and how many there may be.
	rules    inventory.Objects
	variants []variant
	// placed are the namespaces where the manager's webhook fills in where the pods of
	// variants go.
	placed map[string]bool
	// notes say what could not be read, what that leaves out, and what to do.
	notes []string
	// warnings say what is not as it should be and changes nothing of most reports.
	warnings []string
}

// variant is one object and its target.
type variant struct {
	object *v1alpha1.VariantAutoscaling
	target target
}

// source is what the user asks for.
type source struct {
	// namespace is the one whose variants are read; empty means all.
	namespace string
	// names is the ConfigMap with names of accelerators. Without a name it is the
	// manager's, in that namespace, if it is there.
	names types.NamespacedName
	// model, unless empty, is the only one whose variants are meant, and otherwise makes them
	// where there are none.
	model     string
	otherwise Maker
}

// read reads the cluster. It is an error only when there is nothing to show.
func read(ctx context.Context, api client.Client, from source) (*facts, error) {
	seen := &facts{names: &inventory.Names{}}
	if err := seen.readNames(ctx, api, from.names); err != nil {
		return nil, err
	}
	var nodes corev1.NodeList
	err := pages(ctx, api, &nodes, func() { seen.nodes = append(seen.nodes, pointers(nodes.Items)...) })
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w%s", err, advice(err, "nodes", ""))
	}
	if err := seen.readPods(ctx, api); err != nil {
		return nil, err
	}
	seen.readRules(ctx, api)
	before := len(seen.notes)
	if err := seen.readVariants(ctx, api, from.namespace); err != nil {
		return nil, err
	}
	if from.model != "" {
		if err := seen.only(ctx, from, before); err != nil {
			return nil, err
		}
	}
	seen.readPlaced(ctx, api)
	targets{api: api}.find(ctx, seen.variants)
	return seen, ctx.Err()
}

// pages lists all objects, page by page.
func pages(ctx context.Context, api client.Reader, list client.ObjectList, each func(), options ...client.ListOption) error {
	next := ""
	for {
		page := append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, options...)
		if err := api.List(ctx, list, page...); err != nil {
			return err
		}
		each()
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// readPods reads the pods of all namespaces: whatever they belong to, they hold
// devices.
func (f *facts) readPods(ctx context.Context, api client.Reader) error {
	alive := client.MatchingFieldsSelector{Selector: fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)}
	var pods corev1.PodList
	err := pages(ctx, api, &pods, func() { f.pods = append(f.pods, pointers(pods.Items)...) }, alive)
	switch {
	case apierrors.IsForbidden(err):
		f.pods = nil
		f.notes = append(f.notes, "the pods of all namespaces may not be read, so what is free, and how much more fits, is not known"+advice(err, "pods", ""))
	case err != nil:
		return fmt.Errorf("listing pods: %w%s", err, advice(err, "pods", ""))
	default:
		f.podsKnown = true
	}
	return nil
}

// readPlaced reads which namespaces have opted in. Where that cannot be read, templates
// count as they stand, which is less at most.
func (f *facts) readPlaced(ctx context.Context, api client.Reader) {
	f.placed = map[string]bool{}
	var namespaces corev1.NamespaceList
	err := pages(ctx, api, &namespaces, func() {
		for i := range namespaces.Items {
			f.placed[namespaces.Items[i].Name] = true
		}
	}, client.MatchingLabels{v1alpha1.LabelPlacePods: "true"})
	if err != nil && len(f.variants) > 0 {
		f.warnings = append(f.warnings, "namespaces cannot be read, so variants without replicas are counted as their templates stand, without what the manager's webhook fills in"+advice(err, "namespaces", ""))
	}
}

// readRules reads what says what pods will be and how many there may be. What cannot be
// read is named in the bound of the slots.
func (f *facts) readRules(ctx context.Context, api client.Reader) {
	var (
		runtimes   nodev1.RuntimeClassList
		priorities schedulingv1.PriorityClassList
		budgets    policyv1.PodDisruptionBudgetList
		quotas     corev1.ResourceQuotaList
	)
	r := &f.rules
	r.Unread = inventory.Unread{
		RuntimeClasses:  pages(ctx, api, &runtimes, func() { r.RuntimeClasses = append(r.RuntimeClasses, pointers(runtimes.Items)...) }) != nil,
		PriorityClasses: pages(ctx, api, &priorities, func() { r.PriorityClasses = append(r.PriorityClasses, pointers(priorities.Items)...) }) != nil,
		Budgets:         pages(ctx, api, &budgets, func() { r.Budgets = append(r.Budgets, pointers(budgets.Items)...) }) != nil,
		Quotas:          pages(ctx, api, &quotas, func() { r.Quotas = append(r.Quotas, pointers(quotas.Items)...) }) != nil,
	}
}

// readVariants reads the objects of a namespace, or of all.
func (f *facts) readVariants(ctx context.Context, api client.Reader, namespace string) error {
	var list v1alpha1.VariantAutoscalingList
	err := pages(ctx, api, &list, func() {
		objects, unreadable := cluster.Readable(&list)
		for _, object := range objects {
			f.variants = append(f.variants, variant{object: object})
		}
		for _, why := range unreadable {
			f.notes = append(f.notes, why+"; its replicas are shown as other pods")
		}
		list.Items = nil
	}, client.InNamespace(namespace))
	const without = "; without them, devices are shown as held by other pods"
	switch {
	case apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		f.notes = append(f.notes, "this cluster does not know VariantAutoscaling objects"+without+": install the CRD with `kubectl apply -f manifests/crd` or the chart")
	case apierrors.IsForbidden(err):
		f.notes = append(f.notes, "the VariantAutoscaling objects of "+named(namespace)+" may not be read"+without+advice(err, "variantautoscalings.llmd.ai", namespace))
	case err != nil:
		return cluster.Advise(err, "list", v1alpha1.Resource, namespace)
	case len(f.variants) == 0:
		f.notes = append(f.notes, "there are no VariantAutoscaling objects in "+named(namespace))
	}
	slices.SortFunc(f.variants, func(a, b variant) int {
		return cmp.Or(cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
	})
	return nil
}

func named(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// advice says what to do about an error, with a leading colon; empty when the error
// says it itself.
func advice(err error, resource, namespace string) string {
	scope := "--all-namespaces"
	if namespace != "" {
		scope = "--namespace " + namespace
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf(": ask for the permission to list them; `kubectl auth can-i list %s %s` tells when it is there", resource, scope)
	case apierrors.IsUnauthorized(err):
		return ": the cluster does not accept these credentials; log in again or choose another --context"
	case apierrors.ReasonForError(err) == "":
		return ": no answer from the cluster; check --context and --kubeconfig, and whether `kubectl version` gets one"
	default:
		return ""
	}
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
