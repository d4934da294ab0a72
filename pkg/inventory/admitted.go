package inventory

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the API server's admission makes of a template nobody can tell from the template:
// it adds tolerations for the devices, the defaults of the namespace, sidecars. A pod
// that the template made shows it.

// unseen is what a bound says where no such pod is there.
const unseen = "what admission adds"

// Revision tells the pods of a target's present template from those of earlier ones. The
// zero value knows none of them.
type Revision struct {
	// owner is the controller of the pods.
	owner types.UID
	// label and value are on the pods; an empty label is on all.
	label, value string
}

// revisionAnnotation is how a Deployment numbers its ReplicaSets, and says which number
// is its template's.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// longestAnnotation is more than those have that are read of a workload: a number, or the key of a label.
const longestAnnotation = 512

// WorkloadAnnotations are those of a workload that are read here.
func WorkloadAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for _, name := range []string{revisionAnnotation, exclusiveTopology} {
		if value, found := all[name]; found && len(value) <= longestAnnotation {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// RevisionOf is that of a Deployment with these ReplicaSets, among which may be those of
// others.
func RevisionOf(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) Revision {
	now := d.Annotations[revisionAnnotation]
	if now == "" || d.Status.ObservedGeneration < d.Generation {
		return Revision{}
	}
	for _, set := range sets {
		if metav1.IsControlledBy(set, d) && set.Annotations[revisionAnnotation] == now {
			return RevisionBy(set.UID)
		}
	}
	return Revision{}
}

// RevisionBy is that of the pods of one controller, all of which have one template.
func RevisionBy(owner types.UID) Revision { return Revision{owner: owner} }

// RevisionOfStatefulSet is that of a StatefulSet.
func RevisionOfStatefulSet(s *appsv1.StatefulSet) Revision {
	if s.Status.ObservedGeneration < s.Generation || s.Status.UpdateRevision == "" {
		return Revision{}
	}
	return Revision{owner: s.UID, label: appsv1.ControllerRevisionHashLabelKey, value: s.Status.UpdateRevision}
}

// groupRevisionLabel is how a LeaderWorkerSet names the revision of its template on its
// pods and on the StatefulSet of its leaders.
const groupRevisionLabel = "leaderworkerset.sigs.k8s.io/template-revision-hash"

// RevisionOfLeaderWorkerSet is that of a set of groups of one pod, whose leaders the
// StatefulSet makes.
func RevisionOfLeaderWorkerSet(set *LeaderWorkerSet, leaders *appsv1.StatefulSet) Revision {
	value := leaders.Labels[groupRevisionLabel]
	if set.PodsPerReplica != 1 || set.Rollout.Unobserved || value == "" {
		return Revision{}
	}
	return Revision{owner: leaders.UID, label: groupRevisionLabel, value: value}
}

// Newest is the newest live pod of the revision that is as it was admitted; nil is that
// there is none.
func (r Revision) Newest(pods []*corev1.Pod) *corev1.Pod {
	var newest *corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		made := r.owner != "" && owner != nil && owner.UID == r.owner && (r.label == "" || pod.Labels[r.label] == r.value)
		ends := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		// A later generation is that of a pod that was resized, or changed otherwise.
		if !made || ends || pod.Generation > 1 {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp) ||
			newest.CreationTimestamp.Equal(&pod.CreationTimestamp) && pod.Name < newest.Name {
			newest = pod
		}
	}
	return newest
}

// expected is the next pod that a template makes.
type expected struct {
	pod *corev1.Pod
	// seen is set where a pod shows what admission adds.
	seen bool
	// bounds name what of it is not known.
	bounds []string
}

// expect finds out what the next pod will be: as like, which the template made, or else
// as the template and its runtime class say.
func (inv *Inventory) expect(template *corev1.PodTemplateSpec, like *corev1.Pod) (expected, error) {
	if like == nil {
		return inv.foretell(template)
	}
	pod := &corev1.Pod{Spec: like.Spec}
	pod.Namespace, pod.Labels, pod.Annotations = template.Namespace, like.Labels, template.Annotations
	// Where that pod went is its own affair.
	pod.Spec.NodeName = template.Spec.NodeName
	return expected{pod: pod, seen: true}, nil
}

// foretell is expect where no pod shows what admission adds. Admission may let the pod
// tolerate the taints of the devices that it asks for, so that they keep it away from no
// node: else none would ever come, where it does.
func (inv *Inventory) foretell(template *corev1.PodTemplateSpec) (expected, error) {
	e := expected{pod: PodOf(template), bounds: []string{unseen}}
	if err := errors.Join(inv.applyRuntimeClass(&e), inv.prioritize(&e)); err != nil {
		return e, err
	}
	asked := map[corev1.ResourceName]bool{}
	for _, containers := range [...][]corev1.Container{e.pod.Spec.Containers, e.pod.Spec.InitContainers} {
		for i := range containers {
			for resource := range containers[i].Resources.Requests {
				asked[resource] = asked[resource] || IsDevice(resource) || isExtended(resource)
			}
		}
	}
	tolerations := slices.Clone(e.pod.Spec.Tolerations)
	for _, resource := range slices.Sorted(maps.Keys(asked)) {
		if asked[resource] {
			tolerations = append(tolerations, corev1.Toleration{
				Key: string(resource), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
			})
		}
	}
	e.pod.Spec.Tolerations = tolerations
	return e, nil
}

// applyRuntimeClass adds what the pod's runtime class adds to every pod: overhead, a node
// selector and tolerations. One that is not known may tolerate every taint. It is an error
// where admission would refuse the pod.
func (inv *Inventory) applyRuntimeClass(e *expected) error {
	spec := &e.pod.Spec
	if spec.RuntimeClassName == nil {
		return nil
	}
	if inv.objects.Unread.RuntimeClasses {
		e.bounds = append(e.bounds, "runtime class")
		spec.Tolerations = append(slices.Clone(spec.Tolerations), corev1.Toleration{Operator: corev1.TolerationOpExists})
		return nil
	}
	i := slices.IndexFunc(inv.objects.RuntimeClasses, func(c *nodev1.RuntimeClass) bool { return c.Name == *spec.RuntimeClassName })
	if i < 0 {
		return fmt.Errorf("the pods ask for runtime class %s, which does not exist", *spec.RuntimeClassName)
	}
	class := inv.objects.RuntimeClasses[i]
	if class.Overhead != nil && spec.Overhead == nil {
		spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	selector := maps.Clone(class.Scheduling.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	for key, value := range spec.NodeSelector {
		if other, both := selector[key]; both && other != value {
			return fmt.Errorf("the pods select nodes with %s=%s and their runtime class %s those with %s=%s", key, value, class.Name, key, other)
		}
		selector[key] = value
	}
	spec.NodeSelector = selector
	spec.Tolerations = slices.Concat(spec.Tolerations, class.Scheduling.Tolerations)
	return nil
}
