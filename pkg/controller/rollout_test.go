package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

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
			assert.Equal(t, c.want, found.rollout.More(4, 4))
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
			v.target.rollout.UnderWay = true
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
