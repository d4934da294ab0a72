package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
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
		{"paused", updating("2", func(d *appsv1.Deployment) { d.Spec.Paused = true }), 4, 0},
		{"all pods go before the new ones come", updating("2", func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}), 4, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, rolloutOf(c.deployment, replicas).more(replicas, c.pods))
		})
	}
}

func TestWhoseChoiceItIs(t *testing.T) {
	cases := []struct {
		name   string
		change func(v *variant, p *decision.VariantPolicy, a *Access)
		want   bool
	}{
		{"ours", func(*variant, *decision.VariantPolicy, *Access) {}, true},
		{"of a kind that heeds no cost", func(v *variant, _ *decision.VariantPolicy, _ *Access) { v.target.costed = false }, false},
		{"the user's, who left it to Kubernetes", func(v *variant, _ *decision.VariantPolicy, _ *Access) {
			v.object.Spec.Victims = v1alpha1.VictimsKubernetes
		}, false},
		{"of whoever acts on the metric", func(_ *variant, p *decision.VariantPolicy, _ *Access) { p.Actuation = decision.ActuationMetric }, false},
		{"of a rolling update", func(v *variant, _ *decision.VariantPolicy, _ *Access) {
			v.target.rollout = rolloutOf(updating("1"), 4)
		}, false},
		{"not ours without the permission", func(_ *variant, _ *decision.VariantPolicy, a *Access) { a.Victims = false }, false},
		{"of another autoscaler", func(v *variant, _ *decision.VariantPolicy, _ *Access) { v.target.state = decision.TargetConflict }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := &variant{object: &v1alpha1.VariantAutoscaling{}, target: target{costed: true}}
			policy, access := decision.DefaultVariantPolicy(), Access{Victims: true}
			c.change(v, &policy, &access)
			assert.Equal(t, c.want, v.leftToUs(policy, access))
		})
	}
}
