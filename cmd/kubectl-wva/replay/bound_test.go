package replay

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

// autoscaler is one on a Deployment.
func autoscaler(name, deployment string, least *int32, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named(name), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
		MinReplicas:    least, MaxReplicas: most,
	}}
}

// A variant that only publishes its metric has the replicas that its HorizontalPodAutoscaler
// allows, as the manager has it.
func TestAVariantThatAnotherAutoscalerScalesIsBoundedByIt(t *testing.T) {
	llama := decision.Key{Namespace: "demo", Name: "llama"}
	ofKEDA := autoscaler("keda-hpa-llama", "llama", new(int32(1)), 4)
	ofKEDA.ObjectMeta = controlled(ofKEDA.ObjectMeta, "ScaledObject", "llama")
	for name, c := range map[string]struct {
		actuation   v1alpha1.Actuation
		least, most *int32
		autoscalers []client.Object
		want        [2]int
		note        string
	}{
		"none is there":                {v1alpha1.ActuationMetric, nil, new(int32(9)), nil, [2]int{0, 9}, ""},
		"the narrowest counts":         {v1alpha1.ActuationMetric, nil, nil, []client.Object{autoscaler("a", "llama", nil, 7), autoscaler("b", "llama", new(int32(2)), 3), autoscaler("c", "other", nil, 1)}, [2]int{2, 3}, "from 2 to 3 replicas, because HorizontalPodAutoscaler b scales it"},
		"the object's own count, too":  {v1alpha1.ActuationMetric, new(int32(3)), new(int32(5)), []client.Object{autoscaler("a", "llama", nil, 7)}, [2]int{3, 5}, "from 3 to 5 replicas"},
		"a least above what it allows": {v1alpha1.ActuationMetric, new(int32(6)), nil, []client.Object{autoscaler("a", "llama", nil, 4)}, [2]int{4, 4}, "from 4 to 4 replicas"},
		"KEDA takes the last one":      {v1alpha1.ActuationMetric, nil, nil, []client.Object{ofKEDA}, [2]int{0, 4}, "from 0 to 4 replicas"},
		"it is not meant to act on it": {v1alpha1.ActuationOff, nil, nil, []client.Object{autoscaler("a", "llama", nil, 7)}, [2]int{0, -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects()
			spec := &all[len(all)-1].(*v1alpha1.VariantAutoscaling).Spec
			spec.Actuation, spec.MinReplicas, spec.MaxReplicas = c.actuation, c.least, c.most
			live, notes, err := readLive(t, api(t, never, append(all, c.autoscalers...)...))
			require.NoError(t, err)
			s, err := live.Scenario(nil, scenario.Options{})
			require.NoError(t, err)
			assert.Equal(t, c.want, [2]int{s.Policy.Variants[llama].Min, s.Policy.Variants[llama].Max})
			if c.note == "" {
				assert.NotContains(t, notes, "HorizontalPodAutoscaler")
			} else {
				assert.Contains(t, notes, c.note)
			}
		})
	}
}

func TestAutoscalersThatMayNotBeListed(t *testing.T) {
	all := objects()
	all[len(all)-1].(*v1alpha1.VariantAutoscaling).Spec.Actuation = v1alpha1.ActuationMetric
	forbidden := func(list runtime.Object, _ string) error {
		if _, ok := list.(*autoscalingv2.HorizontalPodAutoscalerList); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "horizontalpodautoscalers"}, "", nil)
		}
		return nil
	}
	_, notes, err := readLive(t, api(t, forbidden, all...))
	require.NoError(t, err)
	assert.Contains(t, notes, "the HorizontalPodAutoscalers of namespace demo may not be listed, so what they allow does not count")
}
