package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// In mode Metric the HorizontalPodAutoscaler on the target bounds what is decided, where it allows
// fewer replicas than the object.
func TestTheBoundOfAFollower(t *testing.T) {
	for name, c := range map[string]struct {
		actuation   v1alpha1.Actuation
		least, most *int32
		others      []int32
		min, max    int
		of          string
		conflict    bool
	}{
		"none follows":              {actuation: v1alpha1.ActuationMetric, max: -1},
		"one follows":               {actuation: v1alpha1.ActuationMetric, others: []int32{7}, max: 7, of: "HorizontalPodAutoscaler a"},
		"the object allows fewer":   {actuation: v1alpha1.ActuationMetric, most: ptr.To[int32](5), others: []int32{7}, max: 5},
		"the object asks for more":  {actuation: v1alpha1.ActuationMetric, least: ptr.To[int32](9), others: []int32{7}, min: 7, max: 7, of: "HorizontalPodAutoscaler a"},
		"the narrower of two":       {actuation: v1alpha1.ActuationMetric, others: []int32{7, 3}, max: 3, of: "HorizontalPodAutoscaler b"},
		"nobody is to follow":       {actuation: v1alpha1.ActuationOff, others: []int32{7}, max: -1},
		"it is in the way":          {actuation: v1alpha1.ActuationScale, others: []int32{7}, max: -1, conflict: true},
		"it is in the way, unasked": {others: []int32{7}, max: -1, conflict: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := &variant{key: decision.Key{Namespace: "n", Name: "v"}, object: on("v", "apps/v1", "Deployment", "server", 1)}
			v.object.Spec.Actuation, v.object.Spec.MinReplicas, v.object.Spec.MaxReplicas = c.actuation, c.least, c.most
			v.target.key = targetKeyOf("apps/v1", "Deployment", "server")
			builder := fake.NewClientBuilder().WithScheme(everything(t))
			for i, most := range c.others {
				builder = builder.WithObjects(&autoscalingv2.HorizontalPodAutoscaler{
					ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: string(rune('a' + i))},
					Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
						ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "server"}, MaxReplicas: most,
					},
				})
			}
			require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
			require.NoError(t, (&targetFinder{reader: builder.Build()}).findConflict(t.Context(), v))
			policy := v.policy()
			assert.Equal(t, []any{c.min, c.max, c.of}, []any{policy.Min, policy.Max, policy.MaxOf})
			assert.Equal(t, c.conflict, v.target.state == decision.TargetConflict)
		})
	}
}
