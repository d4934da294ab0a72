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
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// slots are how many more pods of the shapes fit, without anybody yielding: on nodes that
// admit the pods of at least one of the variants of that shape. So for one variant with a
// live pod it is the number that the autoscaler finds, where no quota, no other extended
// resource and no pod of lower priority counts. The shapes are of devices, CPU and memory
// alone, and the scheduler reads no quotas. A shape that cannot be counted for any of its
// variants has none.
func (p *Plugin) slots(inv *inventory.Inventory, pods []*corev1.Pod, variants []*v1alpha1.VariantAutoscaling, shapes []capacity.Shape) []slotsOf {
	made := p.owners.made(variants, pods)
	refused := map[capacity.Shape][]string{}
	for _, v := range variants {
		shape, ok := shapeSaid(p.names, v)
		if !ok {
			continue
		}
		shape.Pods = 1
		refusals, err := refusalsOf(inv, shape, made[targetOf(v)])
		if err != nil {
			continue
		}
		if others, known := refused[shape]; known {
			refusals = byBoth(others, refusals)
		}
		refused[shape] = refusals
	}
	var found []slotsOf
	for _, shape := range shapes {
		refusals, countable := refused[shape]
		if !countable {
			continue
		}
		if slots, err := inv.Cluster.Slots(&placement.Request{Shape: shape, Refused: refusals}); err == nil {
			found = append(found, slotsOf{shape: shape, slots: slots})
		}
	}
	return found
}

// refusalsOf says for each node why it keeps such pods away; nil is that none does, or
// that their template is not known or of another shape.
func refusalsOf(inv *inventory.Inventory, shape capacity.Shape, of made) ([]string, error) {
	if of.template == nil {
		return nil, nil
	}
	name := inventory.Normalize(string(shape.Accelerator))
	name.MemoryGiB, name.Form = shape.MemoryGiB, shape.Form
	request, err := inv.Request(of.template, of.like, name)
	if err != nil || request.Shape.Device() != shape.Device() {
		return nil, err
	}
	return request.Refused, nil
}

// byBoth keeps the refusals that are in both lists. It changes neither.
func byBoth(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if &a[0] == &b[0] {
		return a
	}
	both := slices.Clone(a)
	for i := range both {
		if b[i] == "" {
			both[i] = ""
		}
	}
	return both
}

// made is what a target makes its pods of, and one that it made of that.
type made struct {
	template *corev1.PodTemplateSpec
	like     *corev1.Pod
}

// made are the pod templates of what the variants scale, as far as the caches hold them:
// of ReplicaSets and StatefulSets, of what owns those, and of what owns that.
func (o owners) made(variants []*v1alpha1.VariantAutoscaling, pods []*corev1.Pod) map[target]made {
	wanted := make(map[target]bool, len(variants))
	for _, v := range variants {
		wanted[targetOf(v)] = true
	}
	byOwner := map[types.UID][]*corev1.Pod{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			byOwner[owner.UID] = append(byOwner[owner.UID], pod)
		}
	}
	found, newest := map[target]made{}, map[target]metav1.Object{}
	see := func(kind schema.GroupKind, object metav1.Object, template *corev1.PodTemplateSpec, itself, owned inventory.Revision) {
		of := target{object.GetNamespace(), kind, object.GetName()}
		if wanted[of] {
			found[of] = made{template, itself.Newest(byOwner[object.GetUID()])}
		}
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil {
			return
		}
		of = target{of.namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name}
		for range 2 {
			if wanted[of] && (newest[of] == nil || newer(object, newest[of])) {
				found[of], newest[of] = made{template, owned.Newest(byOwner[object.GetUID()])}, object
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
