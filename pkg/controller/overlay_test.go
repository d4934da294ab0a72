package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestOverlayBridgesTheLagOfTheCache(t *testing.T) {
	at := func(version string, replicas int32) *autoscalingv1.Scale {
		return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	}
	o := newOverlay()
	o.scales["u"] = at("100", 3)
	assert.EqualValues(t, 3, o.scales.over(at("99", 1)).Spec.Replicas, "the cache is behind")
	assert.EqualValues(t, 1, o.scales.over(at("odd", 1)).Spec.Replicas, "versions that cannot be compared leave the cache in its right")
	o.scales["u"] = at("100", 3)
	assert.EqualValues(t, 7, o.scales.over(at("1000", 7)).Spec.Replicas, "somebody wrote after us")
	assert.Empty(t, o.scales, "what the cache has seen is forgotten")

	o.scales["u"] = at("100", 3)
	o.variants["v"] = &v1alpha1.VariantAutoscaling{}
	o.forget(&observation{variants: map[decision.Key]*variant{}})
	assert.Empty(t, o.scales)
	assert.Empty(t, o.variants)
}
