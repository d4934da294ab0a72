package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// rollout is the rolling update of a Deployment, or of a LeaderWorkerSet whose replicas
// are one pod each.
type rollout struct {
	// underWay is set while pods of an older template exist.
	underWay bool
	// unobserved is set while the controller of the target has not seen the newest
	// spec, which may begin an update.
	unobserved bool
	// surge is how many pods beyond the replicas there may be at a time.
	surge int
	// updated is how many pods are known to have the newest template.
	updated int
}

func rolloutOf(d *appsv1.Deployment, replicas int) rollout {
	r := rollout{
		underWay:   d.Status.UpdatedReplicas < d.Status.Replicas,
		unobserved: d.Status.ObservedGeneration < d.Generation,
		updated:    int(d.Status.UpdatedReplicas),
	}
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Paused || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || rolling == nil {
		return r
	}
	return r.within(rolling.MaxSurge, replicas)
}

// within is the rollout with the surge that it may make. Until the newest spec is
// observed, none of the pods is known to be of its template, so that there is room for
// all that an update may begin with. After a mere change of the replicas that is too
// much, for the moment that the controller takes to look.
func (r rollout) within(most *intstr.IntOrString, replicas int) rollout {
	if most == nil || !r.underWay && !r.unobserved {
		return r
	}
	if r.unobserved {
		r.updated = 0
	}
	// The API server has validated the value; one that it has not is no surge.
	if surge, err := intstr.GetScaledValueFromIntOrPercent(most, replicas, true); err == nil {
		r.surge = surge
	}
	return r
}

// more is how many pods beyond the replicas the update may still make, given the pods
// that there are: a new one for each that is not updated, up to the surge.
func (r rollout) more(replicas, pods int) int {
	beyond := max(0, pods-replicas)
	return max(0, min(r.surge-beyond, replicas-r.updated))
}

// leftToUs reports whether which replicas of the variant go is our choice: the
// controller of its pods heeds their deletion cost, and nobody said otherwise. While a
// rolling update is under way its own rules decide.
func (v *variant) leftToUs(policy decision.VariantPolicy, access Access) bool {
	t := &v.target
	return access.Victims && t.costed && !t.rollout.underWay && t.state == decision.TargetFound &&
		policy.Actuation == decision.ActuationScale && v.object.Spec.Victims != v1alpha1.VictimsKubernetes
}
