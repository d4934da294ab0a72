package acceleratorplacement

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// target names an object that can be scaled.
type target struct {
	namespace string
	kind      schema.GroupKind
	name      string
}

// owner is one within its namespace. Whoever makes a pod names its owner, which the API server does not look
// for: one of another namespace owns nothing.
type owner struct {
	namespace string
	uid       types.UID
}

// ownerOf is the controlling owner of a pod; empty where it has none.
func ownerOf(pod *corev1.Pod) owner {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return owner{pod.Namespace, ref.UID}
	}
	return owner{}
}

// owners follows owner references through the scheduler's own caches.
type owners struct {
	deployments  appslisters.DeploymentLister
	replicaSets  appslisters.ReplicaSetLister
	statefulSets appslisters.StatefulSetLister
	pods         corelisters.PodLister
}

func listOwners(factory informers.SharedInformerFactory) owners {
	return owners{
		deployments:  factory.Apps().V1().Deployments().Lister(),
		replicaSets:  factory.Apps().V1().ReplicaSets().Lister(),
		statefulSets: factory.Apps().V1().StatefulSets().Lister(),
		pods:         factory.Core().V1().Pods().Lister(),
	}
}

// maxDepth is one more than the longest known chain: a worker pod, its stateful
// set, the leader pod, its stateful set, the LeaderWorkerSet.
const maxDepth = 6

var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	podKind     = schema.GroupKind{Kind: "Pod"}
)

// of are the controlling owners of the pod, the nearest first. Kinds that have
// owners of their own are followed; complete is false when one of those is not in
// the cache.
func (o owners) of(pod *corev1.Pod) (found []target, complete bool) {
	var object metav1.Object = pod
	for range maxDepth {
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil {
			return found, true
		}
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		found = append(found, target{namespace: pod.Namespace, kind: kind, name: ref.Name})
		owner, followed := o.get(kind, pod.Namespace, ref.Name)
		if !followed {
			return found, true
		}
		if owner == nil || owner.GetUID() != ref.UID {
			// One Deployment in place of another owns none of its pods, and has its name.
			return found, kind == deployment
		}
		object = owner
	}
	return found, true
}

// get finds an owner of a kind that has owners of its own; followed is false for
// every other kind. The owner is nil when it is not in the cache.
func (o owners) get(kind schema.GroupKind, namespace, name string) (owner metav1.Object, followed bool) {
	switch kind {
	case deployment:
		// Nearly all have no owner, so that one that is not in the cache is waited for
		// by nobody.
		if d, err := o.deployments.Deployments(namespace).Get(name); err == nil {
			return d, true
		}
		return nil, false
	case replicaSet:
		if rs, err := o.replicaSets.ReplicaSets(namespace).Get(name); err == nil {
			return rs, true
		}
	case statefulSet:
		if set, err := o.statefulSets.StatefulSets(namespace).Get(name); err == nil {
			return set, true
		}
	case podKind:
		if pod, err := o.pods.Pods(namespace).Get(name); err == nil {
			return pod, true
		}
	default:
		return nil, false
	}
	return nil, true
}

// replicas is how many replicas the owner asks for, or 0 when the caches do not say. The
// workers of a group are none, whose set a pod owns, the leader: they are of one replica.
func (o owners) replicas(owner *metav1.OwnerReference, namespace string) int {
	found, _ := o.get(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind(), namespace, owner.Name)
	if found == nil || found.GetUID() != owner.UID {
		return 0
	}
	if above := metav1.GetControllerOfNoCopy(found); above != nil && schema.FromAPIVersionAndKind(above.APIVersion, above.Kind).GroupKind() == podKind {
		return 0
	}
	var replicas *int32
	switch object := found.(type) {
	case *appsv1.ReplicaSet:
		replicas = object.Spec.Replicas
	case *appsv1.StatefulSet:
		replicas = object.Spec.Replicas
	}
	if replicas == nil {
		return 0
	}
	return int(*replicas)
}
