package acceleratorplacement

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// slots are how many more pods of the variants' shapes fit, as the autoscaler counts them:
// of several variants of one shape, of that of which the most fit. A variant whose template
// is not seen may use every node. One that cannot be counted has none, and so has one
// without devices.
func (p *Plugin) slots(inv *inventory.Inventory, pods []*corev1.Pod, variants []*v1alpha1.VariantAutoscaling, shapes []capacity.Shape) map[capacity.Shape]int {
	made, own, found := p.owners.made(variants, pods), p.showing(inv, pods), map[capacity.Shape]int{}
	for _, v := range variants {
		shape, ok := shapeSaid(p.names, v)
		shape.Pods = 1
		if !ok || !slices.Contains(shapes, shape) {
			continue
		}
		request, err := made[targetOf(v)].request(inv, v.Namespace, shape, own[v])
		if err != nil || request.Shape.Devices == 0 {
			continue
		}
		if slots, err := inv.Cluster.Slots(request); err == nil {
			found[request.Shape] = max(found[request.Shape], slots)
		}
	}
	return found
}

// made is what a target makes its pods of, and one that it made of that.
type made struct {
	template *corev1.PodTemplateSpec
	like     *corev1.Pod
}

// request is what one such pod asks for, of devices as the shape says.
func (m made) request(inv *inventory.Inventory, namespace string, shape capacity.Shape, own []*corev1.Pod) (*placement.Request, error) {
	if m.template == nil {
		return &placement.Request{Shape: shape}, nil
	}
	name := inventory.Normalize(string(shape.Accelerator))
	name.MemoryGiB, name.Form = shape.MemoryGiB, shape.Form
	template := *m.template
	template.Namespace = namespace
	return inv.Request(&template, m.like, name, own...)
}

// made are the pod templates of what the variants scale, as far as the caches hold them:
// of ReplicaSets and StatefulSets, of what owns those, and of what owns that.
func (o owners) made(variants []*v1alpha1.VariantAutoscaling, pods []*corev1.Pod) map[target]made {
	wanted := make(map[target]bool, len(variants))
	for _, v := range variants {
		wanted[targetOf(v)] = true
	}
	byOwner := map[owner][]*corev1.Pod{}
	for _, pod := range pods {
		if by := ownerOf(pod); by != (owner{}) {
			byOwner[by] = append(byOwner[by], pod)
		}
	}
	found, newest := map[target]made{}, map[target]metav1.Object{}
	podsOf := func(o metav1.Object) []*corev1.Pod { return byOwner[owner{o.GetNamespace(), o.GetUID()}] }
	see := func(kind schema.GroupKind, object metav1.Object, template *corev1.PodTemplateSpec, itself, owned inventory.Revision) {
		of := target{object.GetNamespace(), kind, object.GetName()}
		if wanted[of] {
			found[of] = made{template, itself.Newest(podsOf(object))}
		}
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil {
			return
		}
		of = target{of.namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name}
		for range 2 {
			if wanted[of] && (newest[of] == nil || newer(object, newest[of])) {
				found[of], newest[of] = made{template, owned.Newest(podsOf(object))}, object
			}
			above, followed := o.get(of.kind, of.namespace, of.name)
			if !followed || above == nil || metav1.GetControllerOfNoCopy(above) == nil {
				return
			}
			ref = metav1.GetControllerOfNoCopy(above)
			of = target{of.namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name}
		}
	}
	// A cache that cannot be listed holds none.
	replicaSets, _ := o.replicaSets.List(labels.Everything())
	for _, rs := range replicaSets {
		// The template of one that nobody owns may have changed since.
		see(replicaSet, rs, &rs.Spec.Template, inventory.Revision{}, inventory.RevisionBy(rs.UID))
	}
	statefulSets, _ := o.statefulSets.List(labels.Everything())
	for _, set := range statefulSets {
		revision := inventory.RevisionOfStatefulSet(set)
		see(statefulSet, set, &set.Spec.Template, revision, revision)
	}
	return found
}

// What owners number their ReplicaSets by. One that is rolled back to has a new number.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	rolloutRevision    = "rollout.argoproj.io/revision"
)

// newer reports whether an object belongs to a later revision of its owner. Where the
// owner numbers none, what it scales counts before what is younger: after a rollback
// the current one is the older.
func newer(a, b metav1.Object) bool {
	revision := func(o metav1.Object) int {
		of := o.GetAnnotations()
		n, _ := strconv.Atoi(cmp.Or(of[revisionAnnotation], of[rolloutRevision]))
		return n
	}
	scaled := func(o metav1.Object) int {
		if rs, ok := o.(*appsv1.ReplicaSet); ok && rs.Spec.Replicas != nil && *rs.Spec.Replicas == 0 {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(revision(a), revision(b)),
		cmp.Compare(scaled(a), scaled(b)),
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetName(), b.GetName()),
	) > 0
}
