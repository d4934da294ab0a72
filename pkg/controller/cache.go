package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
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
	// indexOwner finds the ReplicaSets that a Deployment made, and the Deployments and
	// StatefulSets that an object of another kind made, by its UID.
	indexOwner = "controllerUID"
)

// CacheOptions say what the manager keeps of the cluster: only what the loop reads,
// so that a cluster of 50,000 pods fits. WatchNamespace is the only namespace whose
// objects are handled, or empty for all; podNamespace is where the ConfigMaps are.
// Access says what may be read.
func CacheOptions(watchNamespace, podNamespace string, access Access) cache.Options {
	pods, target, plain := cache.ByObject{Transform: stripPod}, cache.ByObject{Transform: keepWriter}, cache.ByObject{Transform: stripObject}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if watchNamespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{watchNamespace: {}}
	}
	if watchNamespace != "" && access.Capacity {
		// The pods of all namespaces hold devices.
		pods.Namespaces = map[string]cache.Config{cache.AllNamespaces: {}}
	}
	options.ByObject = map[client.Object]cache.ByObject{
		&corev1.Pod{}:         pods,
		&corev1.Node{}:        {Transform: stripNode},
		&appsv1.Deployment{}:  target,
		&appsv1.StatefulSet{}: target,
		&appsv1.ReplicaSet{}:  {Transform: stripReplicaSet},
		&corev1.ConfigMap{}:   {Namespaces: map[string]cache.Config{podNamespace: {}}},

		&v1alpha1.VariantAutoscaling{}:           plain,
		&autoscalingv2.HorizontalPodAutoscaler{}: plain,
		&corev1.ResourceQuota{}:                  plain,
		&policyv1.PodDisruptionBudget{}:          plain,
	}
	if access.Capacity && !access.Unread.Budgets {
		// They are those of the pods of all namespaces.
		options.ByObject[&policyv1.PodDisruptionBudget{}] = cache.ByObject{Transform: stripObject, Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}}
	}
	if access.ScaledObjects {
		options.ByObject[empty(kindScaledObject)] = plain
	}
	if access.LeaderWorkerSets {
		options.ByObject[empty(kindLeaderWorkerSet)] = target
	}
	return options
}

// stripPod keeps what the inventory, the states of replicas and whoever asks them for
// their metrics need.
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
			Generation:        pod.Generation,
			Labels:            pod.Labels,
			Annotations:       stripPodAnnotations(pod.Annotations),
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			ResourceClaims: pod.Spec.ResourceClaims,
			Overhead:       pod.Spec.Overhead,
			Resources:      pod.Spec.Resources,
			Containers:     stripContainers(pod.Spec.Containers),
			InitContainers: stripContainers(pod.Spec.InitContainers),
			Priority:       pod.Spec.Priority,

			// What the next pod of the same template will be like.
			NodeSelector:              pod.Spec.NodeSelector,
			Affinity:                  stripAffinity(pod.Spec.Affinity),
			Tolerations:               sharedTolerations(pod.Spec.Tolerations),
			TopologySpreadConstraints: only(pod.Spec.TopologySpreadConstraints, mustSpread),
			Volumes:                   only(pod.Spec.Volumes, inventory.BindsToNode),
			HostNetwork:               pod.Spec.HostNetwork,
			OS:                        pod.Spec.OS,
			SchedulingGroup:           pod.Spec.SchedulingGroup,
			PriorityClassName:         pod.Spec.PriorityClassName,
			PreemptionPolicy:          pod.Spec.PreemptionPolicy,
			ActiveDeadlineSeconds:     pod.Spec.ActiveDeadlineSeconds,
			SchedulingGates:           pod.Spec.SchedulingGates,
		},
		Status: corev1.PodStatus{
			Phase:              pod.Status.Phase,
			NominatedNodeName:  pod.Status.NominatedNodeName,
			PodIP:              pod.Status.PodIP,
			Resources:          pod.Status.Resources,
			AllocatedResources: pod.Status.AllocatedResources,

			ExtendedResourceClaimStatus: pod.Status.ExtendedResourceClaimStatus,
		},
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, c := range pod.Status.Conditions {
		switch c.Type {
		case corev1.PodReady, corev1.PodScheduled, corev1.PodResizePending:
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	slim.Status.ContainerStatuses = stripContainerStatuses(pod.Status.ContainerStatuses, pod.Spec.Containers)
	slim.Status.InitContainerStatuses = stripContainerStatuses(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	return slim, nil
}

// stripObject drops the managed fields and what only others read in the annotations. A tenant may fill 256 KiB
// of each object with them.
func stripObject(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		if len(o.GetManagedFields()) > 0 {
			o.SetManagedFields(nil)
		}
		stripAnnotations(o)
	}
	return object, nil
}

// stripAnnotations changes nothing in an object that it has seen before, as a transform must not.
func stripAnnotations(o client.Object) {
	all := o.GetAnnotations()
	kept := inventory.WorkloadAnnotations(all)
	if why, found := all[v1alpha1.AnnotationUndecodable]; found {
		kept = map[string]string{v1alpha1.AnnotationUndecodable: why}
	}
	if len(kept) < len(all) {
		o.SetAnnotations(kept)
	}
}

// stripPodAnnotations keeps what says which pod goes first and where its metrics are.
func stripPodAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for name, value := range all {
		if name == corev1.PodDeletionCost || name == v1alpha1.AnnotationVictim || strings.HasPrefix(name, "prometheus.io/") {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

func stripContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	slim := make([]corev1.Container, len(containers))
	for i, c := range containers {
		slim[i] = corev1.Container{Name: c.Name, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return slim
}

// stripAffinity leaves out what is only preferred.
func stripAffinity(a *corev1.Affinity) *corev1.Affinity {
	if a == nil {
		return nil
	}
	var kept corev1.Affinity
	if n := a.NodeAffinity; n != nil && n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		kept.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: n.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := a.PodAffinity; p != nil && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		kept.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := a.PodAntiAffinity; p != nil && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		kept.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if kept == (corev1.Affinity{}) {
		return nil
	}
	return &kept
}

func mustSpread(c corev1.TopologySpreadConstraint) bool {
	return c.WhenUnsatisfiable == corev1.DoNotSchedule
}

// only keeps what is of account of a list, most often nothing.
func only[T any](list []T, kept func(T) bool) []T {
	var some []T
	for _, one := range list {
		if kept(one) {
			some = append(some, one)
		}
	}
	return some
}

// defaultTolerations are those that the API server gives to every pod.
var defaultTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
}

// sharedTolerations lets the pods that have nothing but the default share one list: they
// are most pods.
func sharedTolerations(tolerations []corev1.Toleration) []corev1.Toleration {
	if len(tolerations) == len(defaultTolerations) && equality.Semantic.DeepEqual(tolerations, defaultTolerations) {
		return defaultTolerations
	}
	return tolerations
}

// stripContainerStatuses keeps the restarts, what keeps a container from starting,
// and the resources of one that holds others than it asks for.
func stripContainerStatuses(statuses []corev1.ContainerStatus, containers []corev1.Container) []corev1.ContainerStatus {
	var slim []corev1.ContainerStatus
	for i := range statuses {
		s := &statuses[i]
		kept := corev1.ContainerStatus{Name: s.Name, RestartCount: s.RestartCount}
		waits := s.State.Waiting != nil && failing[s.State.Waiting.Reason]
		if waits {
			kept.State.Waiting = &corev1.ContainerStateWaiting{Reason: s.State.Waiting.Reason}
		}
		resized := !asAsked(s, containers)
		if resized {
			kept.Resources, kept.AllocatedResources = s.Resources, s.AllocatedResources
		}
		if waits || resized || s.RestartCount > 0 {
			slim = append(slim, kept)
		}
	}
	return slim
}

// asAsked reports whether a container holds just what it asks for, as nearly all do.
func asAsked(s *corev1.ContainerStatus, containers []corev1.Container) bool {
	if s.Resources == nil {
		return s.AllocatedResources == nil
	}
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
	if i < 0 {
		return false
	}
	asks := containers[i].Resources.Requests
	return equality.Semantic.DeepEqual(s.Resources.Requests, asks) && equality.Semantic.DeepEqual(s.AllocatedResources, asks)
}

func stripNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields, node.Annotations = nil, inventory.NodeAnnotations(node.Annotations)
		node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
	}
	return object, nil
}

// stripReplicaSet drops the template of those that a Deployment made: only their
// place in the chain of owners and their revision count, and there are many of them.
func stripReplicaSet(object any) (any, error) {
	set, ok := object.(*appsv1.ReplicaSet)
	if !ok || metav1.GetControllerOf(set) == nil {
		return keepWriter(object)
	}
	set.ManagedFields, set.Annotations = nil, inventory.WorkloadAnnotations(set.Annotations)
	set.Spec = appsv1.ReplicaSetSpec{Replicas: set.Spec.Replicas}
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
	type index struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}
	indexes := []index{
		{&appsv1.ReplicaSet{}, indexOwner, controllerOf},
		{&appsv1.Deployment{}, indexOwner, controllerOf},
		{&appsv1.StatefulSet{}, indexOwner, controllerOf},
		{&v1alpha1.VariantAutoscaling{}, indexTarget, targetOfVariant},
		{&autoscalingv2.HorizontalPodAutoscaler{}, indexTarget, targetOfAutoscaler},
	}
	if access.ScaledObjects {
		indexes = append(indexes, index{empty(kindScaledObject), indexTarget, targetOfScaledObject})
	}
	for _, i := range indexes {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}

func controllerOf(o client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// targetOfVariant is nothing for an object that is being deleted: it is not handled any more,
// however long a finalizer holds it, and must not stand in the way of another one.
func targetOfVariant(o client.Object) []string {
	va := o.(*v1alpha1.VariantAutoscaling)
	target, err := review.TargetOf(va)
	if err != nil || va.DeletionTimestamp != nil {
		return nil
	}
	return []string{targetKey(target.Kind, target.Name)}
}

func targetOfAutoscaler(o client.Object) []string {
	ref := o.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef
	return []string{targetKeyOf(ref.APIVersion, ref.Kind, ref.Name)}
}

// targetOfScaledObject knows KEDA's defaults: a Deployment of apps/v1.
func targetOfScaledObject(o client.Object) []string {
	ref := func(field, otherwise string) string {
		text, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "scaleTargetRef", field)
		return cmp.Or(text, otherwise)
	}
	apiVersion, kind := ref("apiVersion", v1alpha1.DefaultTargetAPIVersion), ref("kind", v1alpha1.DefaultTargetKind)
	return []string{targetKeyOf(apiVersion, kind, ref("name", ""))}
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// ownsReplicas is all that the cache keeps of the fields that a manager owns.
var ownsReplicas = metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)

// keepWriter drops all managed fields of a scale target but who wrote its replicas, and the annotations that
// nobody here reads. It changes nothing in an object that it has seen before, as a transform must not.
func keepWriter(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(writersOfReplicas(o.GetManagedFields()))
		stripAnnotations(o)
	}
	return object, nil
}

// writersOfReplicas is the newest entry that owns spec.replicas, whether it was
// written as such or through the scale subresource. Whoever changes the number takes it
// from all others; there is more than one only where somebody applied the number that
// was there, and that one agreed last. What was written through the scale subresource
// carries no time.
func writersOfReplicas(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var newest *metav1.ManagedFieldsEntry
	for i := range entries {
		if e := &entries[i]; holdsReplicas(e.FieldsV1) && (newest == nil || newest.Time.Before(e.Time)) {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}
	kept := *newest
	kept.FieldsV1 = ownsReplicas
	return []metav1.ManagedFieldsEntry{kept}
}

func holdsReplicas(fields *metav1.FieldsV1) bool {
	if fields == nil || !strings.Contains(fields.GetRawString(), `"f:replicas"`) {
		return false
	}
	var owned struct {
		Spec struct {
			Replicas json.RawMessage `json:"f:replicas"`
		} `json:"f:spec"`
	}
	return json.Unmarshal(fields.GetRawBytes(), &owned) == nil && owned.Spec.Replicas != nil
}

// lastWriter is the field manager that wrote the replicas last; empty when nobody knows: a
// scale to 0 through the scale subresource takes the number from its owner, and from then on
// Kubernetes names none. Our own name is that of a second manager where the number is not what
// this one wrote.
func lastWriter(entries []metav1.ManagedFieldsEntry) string {
	if last := writersOfReplicas(entries); len(last) > 0 {
		return last[0].Manager
	}
	return ""
}
