package manager_test

import (
	"fmt"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// roundsLater waits until a manager has ended so many more full rounds.
func roundsLater(t *testing.T, instance string, rounds float64) {
	t.Helper()
	series := `wva_round_duration_seconds{controller_instance="` + instance + `",result="success",round="Full"}`
	first := scrapeManager(t, instance)[series]
	conditiontest.Eventually(t, patience, fmt.Sprint(rounds, " more rounds"), func() (string, bool) {
		now := scrapeManager(t, instance)[series]
		return fmt.Sprint(now - first), now >= first+rounds
	})
}

func TestLoadIsFollowedUpAndDownWithOneWriteEach(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	// More than the trigger of 70 %, and so little more that the first ten requests, from
	// which the rate is known within a half, do not ask for a third replica.
	servers.ask(namespace, 0.8*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", brisk)
	create(t, d, v)
	hasReplicas(t, patience, d, v, 2)
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)

	// Constant demand is a fixed point: whatever the rounds, nothing is written.
	servers.settle(t, namespace, 2)
	roundsLater(t, brisk, 2)
	target, object := read(t, d).Generation, read(t, v).ResourceVersion
	roundsLater(t, brisk, 5)
	assert.Equal(t, target, read(t, d).Generation, "the scale is not written again")
	assert.Equal(t, object, read(t, v).ResourceVersion, "nor is the status: %s", describe(v))
	assert.EqualValues(t, 2, target, "and it was written once")
	assert.Equal(t, &v1alpha1.CurrentAlloc{VariantID: "llama-H100-1", Accelerator: "H100", NumReplicas: ptr.To[int32](2)}, v.Status.CurrentAlloc)
	assert.Equal(t, ptr.To[int32](2), v.Status.DesiredOptimizedAlloc.NumReplicas)
	assert.True(t, v.Status.Actuation.Applied)
	require.NotNil(t, v.Status.Actuation.LastScaleTime)

	servers.ask(namespace, 0.1*serves)
	hasReplicas(t, patience, d, v, 1)
	assert.EqualValues(t, 3, d.Generation)
	conditiontest.Eventually(t, patience, "an event for each change", func() (string, bool) {
		reasons := told(t, v)
		return fmt.Sprint(reasons), count(reasons, "ScaledUp") == 1 && count(reasons, "ScaledDown") == 1
	})
	scalings := 0.0
	for series, value := range scrapeManager(t, brisk) {
		if assert.NotContains(t, series, "unresolved") && contains(series, "wva_replica_scaling_total", namespace) {
			scalings += value
		}
	}
	assert.EqualValues(t, 2, scalings)
}

func TestMissingMetricsHoldTheReplicas(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 1.2*serves)
	// Two replicas, once they have shown what they serve, and a demand for one, held
	// up by a window.
	d, v := deployment(namespace, "server", 2), variant(namespace, "llama-h100", "server", brisk)
	v.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = ptr.To[int32](3600)
	create(t, d, v)
	servers.settle(t, namespace, 2)
	servers.ask(namespace, 0.1*serves)
	shows(t, patience, v, v1alpha1.ConditionScalingLimited, "Stabilized")

	outage.off.Store(true)
	t.Cleanup(func() { outage.off.Store(false) })
	condition := shows(t, patience, v, v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonPrometheusError)
	assert.Contains(t, condition.Message, "prometheus http://127.0.0.1:")
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonMetricsUnavailable)
	v.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = ptr.To[int32](0)
	require.NoError(t, api.Update(t.Context(), v))
	roundsFailed(t, 4)
	assert.EqualValues(t, 2, *read(t, d).Spec.Replicas, "unknown is not idle")

	outage.off.Store(false)
	hasReplicas(t, patience, d, v, 1)
	conditiontest.Eventually(t, patience, "one warning and one all-clear", func() (string, bool) {
		reasons := told(t, v)
		return fmt.Sprint(reasons), count(reasons, v1alpha1.ReasonPrometheusError) == 1 && count(reasons, "MetricsFound") >= 1
	})
}

func TestActuationMetricOnlyPublishes(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.9*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", brisk)
	v.Spec.Actuation = v1alpha1.ActuationMetric
	create(t, d, v)
	series := `wva_desired_replicas{accelerator_type="H100",controller_instance="brisk",namespace="` + namespace + `",variant_name="llama-h100"}`
	conditiontest.Eventually(t, patience, "the wish as a metric", func() (string, bool) {
		found := seriesOf(t, brisk, namespace)
		return fmt.Sprint(found), found[series] == 2
	})
	roundsLater(t, brisk, 3)
	assert.EqualValues(t, 1, *read(t, d).Spec.Replicas)
	assert.False(t, read(t, v).Status.Actuation.Applied)
}

// What the HorizontalPodAutoscaler that follows the metric would not make is not shown, and the
// object says whose bound that is.
func TestActuationMetricStaysWithinItsFollowersBound(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.9*serves)
	v, follower := variant(namespace, "llama-h100", "server", brisk), autoscaler(namespace)
	v.Spec.Actuation = v1alpha1.ActuationMetric
	follower.(*autoscalingv2.HorizontalPodAutoscaler).Spec.MaxReplicas = 1
	create(t, deployment(namespace, "server", 1), follower, v)
	condition := shows(t, patience, v, v1alpha1.ConditionScalingLimited, string(decision.ReasonMaxReplicas))
	assert.Contains(t, condition.Message, "maxReplicas of HorizontalPodAutoscaler other is 1")
	series := `wva_desired_replicas{accelerator_type="H100",controller_instance="brisk",namespace="` + namespace + `",variant_name="llama-h100"}`
	assert.InDelta(t, 1, seriesOf(t, brisk, namespace)[series], 0)
}

func TestAnObjectBelongsToOneInstance(t *testing.T) {
	serveModels(t)
	namespace := space(t)
	ours, others := variant(namespace, "ours", "one", brisk), variant(namespace, "others", "two", "somebody")
	create(t, deployment(namespace, "one", 1), deployment(namespace, "two", 1), ours, others)
	shows(t, patience, ours, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
	roundsLater(t, brisk, 3)
	assert.Empty(t, read(t, others).Status.Conditions)
	assert.Empty(t, seriesOf(t, "", namespace))
}

// roundsFailed waits for so many more rounds in which something went wrong.
func roundsFailed(t *testing.T, rounds float64) {
	t.Helper()
	const series = `wva_round_duration_seconds{controller_instance="` + brisk + `",result="error",round="Full"}`
	first := scrapeManager(t, brisk)[series]
	conditiontest.Eventually(t, patience, fmt.Sprint(rounds, " more failed rounds"), func() (string, bool) {
		now := scrapeManager(t, brisk)[series]
		return fmt.Sprint(now - first), now >= first+rounds
	})
}
