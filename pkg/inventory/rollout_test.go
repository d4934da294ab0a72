package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// updating is a Deployment of four replicas of which one is updated, that may have so
// many pods more.
func updating(surge string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	more := intstr.Parse(surge)
	d := &appsv1.Deployment{
		Spec: appsv1.DeploymentSpec{Strategy: appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &more},
		}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 1},
	}
	d.Generation = 2
	for _, c := range change {
		c(d)
	}
	return d
}

func TestSurgeOfARollingUpdate(t *testing.T) {
	const replicas = 4
	cases := []struct {
		name       string
		deployment *appsv1.Deployment
		pods       int
		want       int
	}{
		{"a number", updating("2"), 4, 2},
		{"a share, rounded up", updating("30%"), 4, 2},
		{"none", updating("0"), 4, 0},
		{"one of two is made", updating("2"), 5, 1},
		{"all are made", updating("2"), 6, 0},
		{"pods that are missing are no surge", updating("2"), 3, 2},
		{"only one is still to be updated", updating("2", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 3 }), 4, 1},
		{"no update is under way", updating("2", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 4 }), 4, 0},
		{"only a scale-up", updating("2", func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 2, 2 }), 2, 0},
		{"one that begins is not observed yet", updating("2", func(d *appsv1.Deployment) { d.Generation, d.Status.UpdatedReplicas = 3, 4 }), 4, 2},
		{"no more than the replicas before it is observed", updating("200%", func(d *appsv1.Deployment) { d.Generation, d.Status.UpdatedReplicas = 3, 4 }), 4, 4},
		{"another one that begins before the first is over", updating("2", func(d *appsv1.Deployment) { d.Generation, d.Status.UpdatedReplicas = 3, 3 }), 5, 1},
		{"paused before it begins", updating("2", func(d *appsv1.Deployment) { d.Generation, d.Spec.Paused = 3, true }), 4, 0},
		{"paused", updating("2", func(d *appsv1.Deployment) { d.Spec.Paused = true }), 4, 0},
		{"all pods go before the new ones come", updating("2", func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}), 4, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, RolloutOf(c.deployment, replicas).More(replicas, c.pods))
		})
	}
}
