package inventory

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// GroupSizeAnnotation is how a LeaderWorkerSet says on its pods, and on the template of its
// leaders, how many pods a group has.
const GroupSizeAnnotation = "leaderworkerset.sigs.k8s.io/size"

// LeaderWorkerSet is what the model reads of an object of that kind. A replica is a
// group of pods, of which the leader serves and is counted.
type LeaderWorkerSet struct {
	// Replicas are the groups that are asked for.
	Replicas int
	// PodsPerReplica is the number of pods of a group, all of which hold devices.
	PodsPerReplica int
	// Template is that of the workers; of a group of one, that of its leader.
	Template *corev1.PodTemplateSpec
	// Selector finds the leaders.
	Selector string
	// Rolling is set while groups, of whatever size, are replaced by newer ones.
	Rolling bool
	// Rollout is the rolling update of groups of one pod.
	Rollout Rollout
}

// LeaderWorkerSetOf reads the object, whose library is not needed for that.
func LeaderWorkerSetOf(object *unstructured.Unstructured) (LeaderWorkerSet, error) {
	var set struct {
		Spec struct {
			Replicas             *int32 `json:"replicas"`
			LeaderWorkerTemplate struct {
				Size           *int32                  `json:"size"`
				LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate"`
				WorkerTemplate corev1.PodTemplateSpec  `json:"workerTemplate"`
				// Claims are made for each pod.
				Claims []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
			} `json:"leaderWorkerTemplate"`
			RolloutStrategy struct {
				RollingUpdate struct {
					MaxSurge  *intstr.IntOrString `json:"maxSurge"`
					Partition *int                `json:"partition"`
				} `json:"rollingUpdateConfiguration"`
			} `json:"rolloutStrategy"`
		} `json:"spec"`
		Status struct {
			Selector string `json:"hpaPodSelector"`
			Replicas int    `json:"replicas"`
			Updated  int    `json:"updatedReplicas"`
			// Observed is not there in older versions of the kind.
			Observed *int64 `json:"observedGeneration"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return LeaderWorkerSet{}, fmt.Errorf("decoding LeaderWorkerSet %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	rolling, unobserved := &set.Spec.RolloutStrategy.RollingUpdate, set.Status.Observed != nil && *set.Status.Observed < object.GetGeneration()
	group := &set.Spec.LeaderWorkerTemplate
	group.WorkerTemplate = *withClaims(&group.WorkerTemplate, group.Claims)
	read := LeaderWorkerSet{
		Replicas:       int(ptr.Deref(set.Spec.Replicas, 1)),
		PodsPerReplica: int(ptr.Deref(group.Size, 1)),
		Template:       &group.WorkerTemplate,
		Selector: cmp.Or(set.Status.Selector,
			"leaderworkerset.sigs.k8s.io/name="+object.GetName()+",leaderworkerset.sigs.k8s.io/worker-index=0"),
		Rolling: unobserved || set.Status.Updated < set.Status.Replicas-ptr.Deref(rolling.Partition, 0),
	}
	if read.PodsPerReplica != 1 {
		return read, nil
	}
	if group.LeaderTemplate != nil {
		read.Template = withClaims(group.LeaderTemplate, group.Claims)
	}
	if topology := object.GetAnnotations()[exclusiveTopology]; topology != "" {
		// The set passes it on to its pods.
		metav1.SetMetaDataAnnotation(&read.Template.ObjectMeta, exclusiveTopology, topology)
	}
	read.Rollout = Rollout{
		UnderWay:   set.Status.Updated < set.Status.Replicas,
		Unobserved: unobserved,
		Updated:    set.Status.Updated,
	}.Within(rolling.MaxSurge, read.Replicas)
	return read, nil
}
