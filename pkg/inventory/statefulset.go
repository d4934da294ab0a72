package inventory

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TemplateOfStatefulSet is the pod template with a volume for each of the set's claim
// templates, as its pods have them.
func TemplateOfStatefulSet(s *appsv1.StatefulSet) *corev1.PodTemplateSpec {
	return withClaims(&s.Spec.Template, s.Spec.VolumeClaimTemplates)
}

// withClaims changes nothing of the template.
func withClaims(template *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) *corev1.PodTemplateSpec {
	if len(claims) == 0 {
		return template
	}
	whole := *template
	whole.Spec.Volumes = slices.Clone(template.Spec.Volumes)
	for i := range claims {
		// The name of a pod's own claim ends with the pod's.
		whole.Spec.Volumes = append(whole.Spec.Volumes, corev1.Volume{
			Name:         claims[i].Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claims[i].Name}},
		})
	}
	return &whole
}

// OrderOfStatefulSet reports whether the set makes a pod only once those before it are
// ready, and how long they have to have been.
func OrderOfStatefulSet(s *appsv1.StatefulSet) (ordered bool, settling time.Duration) {
	if s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return false, 0
	}
	return true, time.Duration(s.Spec.MinReadySeconds) * time.Second
}

// Replaces reports whether a StatefulSet replaces pods. Those that a partition, or an
// update that waits for their deletion, leaves as they are may stay so for ever.
func Replaces(s *appsv1.StatefulSet) bool {
	if s.Status.ObservedGeneration < s.Generation {
		return true
	}
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || s.Status.UpdateRevision == s.Status.CurrentRevision {
		return false
	}
	rolling := ptr.Deref(s.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	return s.Status.UpdatedReplicas < s.Status.Replicas-ptr.Deref(rolling.Partition, 0)
}
