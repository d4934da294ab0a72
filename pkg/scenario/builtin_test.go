package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

func TestTheBuiltInScenario(t *testing.T) {
	costs := func(s *replay.Scenario) []float64 {
		var all []float64
		for _, v := range s.Models[0].Variants {
			all = append(all, float64(v.Cost))
		}
		return all
	}
	slots := func(s *replay.Scenario) []int {
		var all []int
		for _, v := range s.Models[0].Variants {
			n, err := s.Cluster.Slots(v.Request)
			require.NoError(t, err)
			all = append(all, n)
		}
		return all
	}
	for name, c := range map[string]struct {
		options scenario.Options
		costs   []float64
		slots   []int
		limited bool
	}{
		"as it is": {scenario.Options{}, []float64{27.52, 55.04, 15.824}, []int{128, 64, 256}, false},
		"the lowest prices in a full cluster": {
			scenario.Options{Prices: "lowest", Cluster: "full"}, []float64{10.76, 21.52, 8.9}, []int{9, 3, 18}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Parse(scenario.BuiltIn(), c.options)
			require.NoError(t, err)
			assert.InDeltaSlice(t, c.costs, costs(s), 1e-9)
			assert.Equal(t, c.slots, slots(s))
			assert.Equal(t, c.limited, s.Policy.Limited)
			assert.Equal(t, capacity.SLO{TTFT: 2000, ITL: 50}, s.Models[0].SLO)
		})
	}
}

// The formula is checked against a published log: vLLM's 27,996 blocks of 16 tokens for
// 16.06e9 bytes of weights on one H100, at 128 KiB a token.
func TestTheBuiltInKVCachesFollowFromTheirMemory(t *testing.T) {
	const (
		gib              = 1 << 30
		h100, h200       = 81559.0 / 1024, 143771.0 / 1024
		use, overheadGiB = 0.9, 2.05
		block            = 16
	)
	tokens := func(devices int, memory, weights, kib float64) capacity.Tokens {
		free := float64(devices)*(use*memory-overheadGiB) - weights/gib
		return capacity.Tokens(block * int(free*(1<<20)/kib/block))
	}
	assert.InEpsilon(t, 447_936, float64(tokens(1, h100, 16.06e9, 128)), 1e-3)
	s, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{})
	require.NoError(t, err)
	memory := map[capacity.Accelerator]float64{"H100": h100, "H200": h200}
	for _, v := range s.Models[0].Variants {
		shape := v.Request.Shape
		assert.Equal(t, tokens(shape.Devices, memory[shape.Accelerator], 70.55e9, 320), v.Profile.KVTokens, v.Name)
		assert.Equal(t, []int{256, 8192}, []int{v.Profile.BatchLimit, v.TokenBudget}, v.Name)
	}
}

func TestNobodyCanChangeTheBuiltInScenario(t *testing.T) {
	scenario.BuiltIn()[0] = '!'
	_, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{})
	assert.NoError(t, err)
}
