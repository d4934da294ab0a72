package demo

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// One model's pods are told by the webhook what the other's template says, in the same
// words.
func TestBothWaysSayTheSame(t *testing.T) {
	for _, m := range scenario() {
		other := m
		other.Placed = !m.Placed
		for _, v := range m.Variants {
			assert.Equal(t, admitted(other, v), admitted(m, v), v.Name)
		}
	}
}

// Both programs read the pods; they must read what the scenario means.
func TestTemplatesAreReadAsTheScenarioMeansThem(t *testing.T) {
	for _, m := range scenario() {
		for _, v := range m.Variants {
			t.Run(v.Name, func(t *testing.T) {
				template := admitted(m, v)
				takes, err := inventory.TemplateTakes(template)
				require.NoError(t, err)
				assert.Equal(t, localcluster.GPUResource, takes.Resource)
				assert.Equal(t, v.Devices, takes.Devices)
				assert.Equal(t, batchLimit, serving.ParseArguments(template.Spec.Containers[0].Args).MaxSequences)
				name, _, err := inventory.Resolve("", "", template, nil)
				require.NoError(t, err)
				assert.Equal(t, v.Accelerator, name.Short)
				pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
				ranks, _ := emulation.Argument(pod, "tensor-parallel-size")
				assert.Equal(t, strconv.Itoa(v.Devices), ranks)
			})
		}
	}
}

func TestEveryNodeHasRoomForAllOfItsDevices(t *testing.T) {
	for _, n := range nodes() {
		devices := n.Status.Allocatable[localcluster.GPUResource]
		for _, m := range scenario() {
			for _, v := range m.Variants {
				if v.Accelerator != n.accelerator {
					continue
				}
				replicas := devices.Value() / int64(v.Devices)
				for resource, each := range podResources(v).Requests {
					has := n.Status.Allocatable[resource]
					assert.LessOrEqual(t, replicas*each.Value(), has.Value(), "%s of %s on %s", resource, v.Name, n.Name)
				}
			}
		}
	}
}

// Nobody but our scheduler places pods where the GPUs are; nodes without any are
// everybody's.
func TestTheNodesWithDevicesBelongToOurScheduler(t *testing.T) {
	owner := corev1.Taint{Key: "wva.llmd.ai/scheduler", Value: "variant-scheduler", Effect: corev1.TaintEffectNoSchedule}
	for _, n := range nodes() {
		assert.Equal(t, n.accelerator != "", slices.Contains(n.Spec.Taints, owner), n.Name)
		for _, m := range scenario() {
			for _, v := range m.Variants {
				pod := admitted(m, v).Spec
				assert.Equal(t, owner.Value, pod.SchedulerName)
				for _, taint := range n.Spec.Taints {
					assert.True(t, slices.ContainsFunc(pod.Tolerations, func(tolerates corev1.Toleration) bool {
						return tolerates.Key == taint.Key && (tolerates.Operator == corev1.TolerationOpExists || tolerates.Value == taint.Value)
					}), "%s tolerates %s of %s", v.Name, taint.Key, n.Name)
				}
			}
		}
	}
}

func TestDescribeGivesAPodItsVariantsProfile(t *testing.T) {
	p := plan{models: scenario(), Options: Options{Startup: 7}}
	for _, m := range p.models {
		for _, v := range m.Variants {
			pod := &corev1.Pod{ObjectMeta: deployment(m, v, 1).Spec.Template.ObjectMeta}
			options, err := p.describe(pod)
			require.NoError(t, err)
			assert.Equal(t, emulation.ServerOptions{Model: m.ID, Profile: v.Profile, TokenBudget: v.TokenBudget, Startup: 7}, options)
		}
	}
	_, err := p.describe(&corev1.Pod{})
	assert.ErrorContains(t, err, variantLabel)
}

func TestObjectsStateTheirPriceAndTheirLine(t *testing.T) {
	m := scenario()[0]
	va := autoscaling(m, m.Variants[1])
	assert.Equal(t, "3.722", va.Spec.VariantCost)
	assert.Equal(t, "meta-llama/Llama-3.1-8B-Instruct-L40S-2", va.Spec.VariantID)
	alpha, err := strconv.ParseFloat(string(va.Spec.VariantProfile.PerfParms.DecodeParms.Alpha), 64)
	require.NoError(t, err)
	assert.InDelta(t, 13.82, alpha, 0.01)
	assert.Equal(t, int32(30), *va.Spec.Behavior.ScaleDown.StabilizationWindowSeconds)
	assert.Equal(t, capacity.Cost(3.722), m.Variants[1].cost())
}
