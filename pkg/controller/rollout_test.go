package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
			assert.Equal(t, c.want, rolloutOf(c.deployment, replicas).more(replicas, c.pods))
		})
	}
}

func TestSurgeOfALeaderWorkerSet(t *testing.T) {
	cases := []struct {
		name   string
		size   int64
		surge  any
		status map[string]any
		want   int
	}{
		{"replicas of one pod", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 2},
		{"a share, rounded up", 1, "30%", map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 2},
		{"none unless it is said", 1, nil, map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 0},
		{"no update is under way", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(4), "observedGeneration": int64(3)}, 0},
		{"one that begins is not observed yet", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(4), "observedGeneration": int64(2)}, 2},
		{"a version that does not say what it observed", 1, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(4)}, 0},
		{"groups cannot be counted anyway", 2, int64(2), map[string]any{"replicas": int64(4), "updatedReplicas": int64(1)}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := map[string]any{"replicas": int64(4), "leaderWorkerTemplate": map[string]any{"size": c.size, "workerTemplate": map[string]any{}}}
			if c.surge != nil {
				spec["rolloutStrategy"] = map[string]any{"rollingUpdateConfiguration": map[string]any{"maxSurge": c.surge}}
			}
			set := empty(kindLeaderWorkerSet)
			set.Object["spec"], set.Object["status"] = spec, c.status
			set.SetNamespace("n")
			set.SetName("s")
			set.SetGeneration(3)
			api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(set).Build()
			var found target
			require.NoError(t, (&targetFinder{reader: api}).leaderWorkerSet(t.Context(), client.ObjectKeyFromObject(set), &found))
			assert.Equal(t, c.want, found.rollout.more(4, 4))
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
