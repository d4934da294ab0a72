package inventory

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout is the rolling update of a Deployment, or of a LeaderWorkerSet whose replicas
// are one pod each.
type Rollout struct {
	// UnderWay is set while pods of an older template exist.
	UnderWay bool
	// Unobserved is set while the controller of the target has not seen the newest
	// spec, which may begin an update.
	Unobserved bool
	// surge is how many pods beyond the replicas there may be at a time.
	surge int
	// Updated is how many pods are known to have the newest template.
	Updated int
}

// RolloutOf is the rollout of a Deployment that asks for so many replicas.
func RolloutOf(d *appsv1.Deployment, replicas int) Rollout {
	r := Rollout{
		UnderWay:   d.Status.UpdatedReplicas < d.Status.Replicas,
		Unobserved: d.Status.ObservedGeneration < d.Generation,
		Updated:    int(d.Status.UpdatedReplicas),
	}
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Paused || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || rolling == nil {
		return r
	}
	return r.Within(rolling.MaxSurge, replicas)
}

// Progresses reports whether the update of a Deployment goes on. One that is paused, or
// that Kubernetes has given up waiting for, may stay as it is for ever.
func Progresses(d *appsv1.Deployment) bool {
	return !d.Spec.Paused && !slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	})
}

// Within is the rollout with the surge that it may make. Until the newest spec is
// observed, none of the pods is known to be of its template, so that there is room for
// all that an update may begin with. After a mere change of the replicas that is too
// much, for the moment that the controller takes to look.
func (r Rollout) Within(most *intstr.IntOrString, replicas int) Rollout {
	if most == nil || !r.UnderWay && !r.Unobserved {
		return r
	}
	if r.Unobserved {
		r.Updated = 0
	}
	// The API server has validated the value; one that it has not is no surge.
	if surge, err := intstr.GetScaledValueFromIntOrPercent(most, replicas, true); err == nil {
		r.surge = surge
	}
	return r
}

// More is how many pods beyond the replicas the update may still make, given the pods
// that there are: a new one for each that is not updated, up to the surge.
func (r Rollout) More(replicas, pods int) int {
	beyond := max(0, pods-replicas)
	return max(0, min(r.surge-beyond, replicas-r.Updated))
}
