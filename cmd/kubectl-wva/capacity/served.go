package capacity

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Served is what a cluster serves, and what would be free if nothing of it ran.
type Served struct {
	// Cluster is the nodes with what others than the variants hold, and the variants
	// without a request.
	Cluster *placement.Cluster
	// Variants are sorted by namespace and name.
	Variants []ServedVariant
	// Notes say what could not be read.
	Notes []string
}

// ServedVariant is one object and what a replica of it takes.
type ServedVariant struct {
	Object *v1alpha1.VariantAutoscaling
	// Request is nil when it is not known or cannot be counted; Problem says why.
	Request *placement.Request
	Problem string
	// Template is that of its pods; nil when it is not known.
	Template *corev1.PodTemplateSpec
}

// ReadServed reads the variants of a namespace, or of all, and all nodes and pods. Names
// is the ConfigMap with names of accelerators; without a name it is the manager's in that
// namespace, if it is there. Where the pods may not
// be read, the cluster is nil: what is free is not known.
func ReadServed(ctx context.Context, api client.Client, namespace string, names types.NamespacedName) (*Served, error) {
	return readServed(ctx, api, source{namespace: namespace, names: names})
}

// ReadServedModel reads the same of the variants of one model; those of others are other
// work. Where the model has none, they are what otherwise makes.
func ReadServedModel(ctx context.Context, api client.Client, namespace string, names types.NamespacedName, model string, otherwise Maker) (*Served, error) {
	return readServed(ctx, api, source{namespace: namespace, names: names, model: model, otherwise: otherwise})
}

// Maker makes objects that are not in the cluster, with notes about them.
type Maker func(ctx context.Context) (objects []*v1alpha1.VariantAutoscaling, notes []string, err error)

func readServed(ctx context.Context, api client.Client, from source) (*Served, error) {
	seen, err := read(ctx, api, from)
	if err != nil {
		return nil, err
	}
	return seen.served(), nil
}

// only keeps the variants of one model.
func (f *facts) only(ctx context.Context, from source, before int) error {
	f.variants = slices.DeleteFunc(f.variants, func(v variant) bool { return v.object.Spec.ModelID != from.model })
	if len(f.variants) > 0 || from.otherwise == nil {
		return nil
	}
	objects, notes, err := from.otherwise(ctx)
	if err != nil {
		return err
	}
	// That there is no object, or no CRD, is what this is for.
	if len(objects) > 0 {
		f.notes = f.notes[:before]
	}
	f.notes = append(f.notes, notes...)
	for _, object := range objects {
		f.variants = append(f.variants, variant{object: object})
	}
	return nil
}

func (f *facts) served() *Served {
	all := newAssembly(f)
	for i := range f.variants {
		all.addVariant(&f.variants[i])
	}
	others := *f
	others.pods = nil
	for _, pod := range f.pods {
		if _, own := all.claimed[all.owners[key(pod)]]; !own {
			others.pods = append(others.pods, pod)
		}
	}
	without := newAssembly(&others)
	served := &Served{Notes: slices.Concat(f.warnings, f.notes)}
	if f.podsKnown {
		served.Cluster = without.inventory.Cluster
	}
	for i := range f.variants {
		v := &f.variants[i]
		out := ServedVariant{Object: v.object, Template: v.target.template}
		pods, nodes := all.podsOf(v)
		request, err := without.request(v, nodes, pods)
		if err == nil {
			err = request.Countable()
		}
		if err != nil {
			out.Problem = err.Error()
		} else {
			out.Request = request
			// What its pods count against quotas, they do not count when nothing runs.
			without.inventory.Cluster.Charge(request, -len(slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !isReplica(p) })))
		}
		served.Variants = append(served.Variants, out)
	}
	return served
}

// podsOf are the pods of a variant, and the nodes that they are on.
func (a *assembly) podsOf(v *variant) (pods []*corev1.Pod, nodes []*corev1.Node) {
	if v.target.selector == nil && v.target.owners == nil {
		return nil, nil
	}
	for _, pod := range a.byNamespace[v.object.Namespace] {
		if !v.target.has(pod) {
			continue
		}
		pods = append(pods, pod)
		if node := a.nodes[pod.Spec.NodeName]; node != nil {
			nodes = append(nodes, node)
		}
	}
	return pods, nodes
}
