package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// The optional kinds that are read when the cluster serves them.
var (
	kindLeaderWorkerSet = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	kindScaledObject    = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
)

// The indexes of the cache.
const (
	// indexTarget finds the objects that scale a target, by targetKey.
	indexTarget = "scaleTarget"
	// indexOwner finds the objects that a controller made, by its UID.
	indexOwner = "controllerUID"
)

// CacheOptions say what the manager keeps of the cluster: only what the loop reads,
// so that a cluster of 50,000 pods fits. WatchNamespace is the only namespace whose
// objects are handled, or empty for all; podNamespace is where the ConfigMaps are.
// Access says what may be read.
func CacheOptions(watchNamespace, podNamespace string, access Access) cache.Options {
	pods := cache.ByObject{Transform: stripPod}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if watchNamespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{watchNamespace: {}}
	}
	if watchNamespace != "" && access.Capacity {
		// The pods of all namespaces hold devices.
		pods.Namespaces = map[string]cache.Config{cache.AllNamespaces: {}}
	}
	options.ByObject = map[client.Object]cache.ByObject{
		&corev1.Pod{}:        pods,
		&corev1.Node{}:       {Transform: stripNode},
		&appsv1.ReplicaSet{}: {Transform: stripReplicaSet},
		&corev1.ConfigMap{}:  {Namespaces: map[string]cache.Config{podNamespace: {}}},
	}
	return options
}

// stripPod keeps what the inventory and the states of replicas need.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            pod.Labels,
			OwnerReferences:   controllerOf(pod.OwnerReferences),
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Overhead:       pod.Spec.Overhead,
			Resources:      pod.Spec.Resources,
			Containers:     stripContainers(pod.Spec.Containers),
			InitContainers: stripContainers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	slim.Status.ContainerStatuses = stripContainerStatuses(pod.Status.ContainerStatuses)
	slim.Status.InitContainerStatuses = stripContainerStatuses(pod.Status.InitContainerStatuses)
	return slim, nil
}

func stripContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	slim := make([]corev1.Container, len(containers))
	for i, c := range containers {
		slim[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return slim
}

// stripContainerStatuses keeps the restarts, and the resources of a container that
// was resized.
func stripContainerStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var slim []corev1.ContainerStatus
	for _, s := range statuses {
		if s.RestartCount > 0 || s.Resources != nil || s.AllocatedResources != nil {
			slim = append(slim, corev1.ContainerStatus{
				Name: s.Name, RestartCount: s.RestartCount, Resources: s.Resources, AllocatedResources: s.AllocatedResources,
			})
		}
	}
	return slim
}

func controllerOf(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for _, o := range owners {
		if o.Controller != nil && *o.Controller {
			return []metav1.OwnerReference{o}
		}
	}
	return nil
}

func stripNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields, node.Annotations = nil, nil
		node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
	}
	return object, nil
}

// stripReplicaSet drops the template of those that a Deployment made: only their
// place in the chain of owners counts, and there are many of them.
func stripReplicaSet(object any) (any, error) {
	if set, ok := object.(*appsv1.ReplicaSet); ok {
		set.ManagedFields = nil
		if metav1.GetControllerOf(set) != nil {
			set.Annotations = nil
			set.Spec = appsv1.ReplicaSetSpec{Replicas: set.Spec.Replicas}
		}
	}
	return object, nil
}

// targetKey names a scale target within its namespace. Versions do not matter.
func targetKey(gk schema.GroupKind, name string) string {
	return gk.String() + "/" + name
}

// targetKeyOf is the key of a reference as autoscalers write it.
func targetKeyOf(apiVersion, kind, name string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return targetKey(schema.GroupKind{Group: gv.Group, Kind: kind}, name)
}

// addIndexes must run before the cache starts.
func addIndexes(ctx context.Context, indexer client.FieldIndexer, access Access) error {
	byOwner := func(o client.Object) []string {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	indexes := []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&corev1.Pod{}, indexOwner, byOwner},
		{&appsv1.ReplicaSet{}, indexOwner, byOwner},
		{&v1alpha1.VariantAutoscaling{}, indexTarget, targetOfVariant},
		{&autoscalingv2.HorizontalPodAutoscaler{}, indexTarget, targetOfAutoscaler},
	}
	for _, i := range indexes {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	if !access.ScaledObjects {
		return nil
	}
	if err := indexer.IndexField(ctx, empty(kindScaledObject), indexTarget, targetOfScaledObject); err != nil {
		return fmt.Errorf("indexing ScaledObjects by %s: %w", indexTarget, err)
	}
	return nil
}

func targetOfVariant(o client.Object) []string {
	va, ok := o.(*v1alpha1.VariantAutoscaling)
	if !ok {
		return nil
	}
	gvk, err := va.Spec.ScaleTargetRef.GroupVersionKind()
	if err != nil {
		return nil
	}
	return []string{targetKey(gvk.GroupKind(), va.Spec.ScaleTargetRef.Name)}
}

func targetOfAutoscaler(o client.Object) []string {
	hpa, ok := o.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil
	}
	ref := hpa.Spec.ScaleTargetRef
	return []string{targetKeyOf(ref.APIVersion, ref.Kind, ref.Name)}
}

// targetOfScaledObject knows KEDA's defaults: a Deployment of apps/v1.
func targetOfScaledObject(o client.Object) []string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	ref := map[string]string{"apiVersion": v1alpha1.DefaultTargetAPIVersion, "kind": v1alpha1.DefaultTargetKind}
	for _, field := range []string{"apiVersion", "kind", "name"} {
		if text, found, err := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", field); err == nil && found && text != "" {
			ref[field] = text
		}
	}
	return []string{targetKeyOf(ref["apiVersion"], ref["kind"], ref["name"])}
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}
