package churn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// scenario is one generator of churn: a cluster, and variants whose targets move
// over time.
type scenario struct {
	name  string
	pools []pool
	kinds []kind
	// perKind is the number of variants of every kind.
	perKind int
	// steps is the length of a run; the first warmUp of them are not reported.
	steps, warmUp int
	// seeds is how many runs the study takes the mean of.
	seeds int
	// loads are the rows of the table, in per cent of the devices.
	loads []int
}

// pool is a number of equal nodes.
type pool struct {
	accelerator capacity.Accelerator
	nodes       int
	devices     int
	// cores is 0 where CPU plays no part.
	cores int64
}

// kind is what variants that are alike ask for.
type kind struct {
	// accelerators are those that would do, in the order of preference.
	accelerators []capacity.Accelerator
	devices      int
	cores        int64
	// share is the part of the demand inside the pool of the first accelerator.
	share float64
}

// milliCPU is what one pod of the kind asks for, in thousandths of a core.
func (k *kind) milliCPU() int64 { return 1000 * k.cores }

// order is the place of a type in the kind's order, or -1 when it would not do.
func (k *kind) order(a capacity.Accelerator) int { return slices.Index(k.accelerators, a) }

// oneType is 100 nodes of 8 devices: the question is only how whole holes survive.
func oneType() scenario {
	const only capacity.Accelerator = "H100"
	s := scenario{
		name:    "one-type",
		pools:   []pool{{accelerator: only, nodes: 100, devices: 8}},
		perKind: 10,
		steps:   1500, warmUp: 200, seeds: 8,
		loads: []int{85, 90, 94, 97},
	}
	for _, k := range []kind{
		{devices: 1, share: .15}, {devices: 2, share: .20}, {devices: 4, share: .30}, {devices: 8, share: .35},
	} {
		k.accelerators = []capacity.Accelerator{only}
		s.kinds = append(s.kinds, k)
	}
	return s
}

// mixedTypes is three types of nodes, kinds that need much CPU, and kinds that
// accept two types.
func mixedTypes() scenario {
	type types = []capacity.Accelerator
	h, a, l := types{"H100"}, types{"A100"}, types{"L40S"}
	ah, la := types{"A100", "H100"}, types{"L40S", "A100"}
	return scenario{
		name: "mixed",
		pools: []pool{
			{accelerator: "H100", nodes: 40, devices: 8, cores: 192},
			{accelerator: "A100", nodes: 40, devices: 8, cores: 96},
			{accelerator: "L40S", nodes: 40, devices: 4, cores: 64},
		},
		kinds: []kind{
			{h, 8, 96, .35}, {h, 4, 48, .20}, {h, 2, 24, .10}, {h, 1, 40, .10},
			{ah, 8, 64, .15}, {a, 8, 64, .20}, {a, 4, 32, .20}, {ah, 2, 20, .15}, {a, 1, 24, .10}, {a, 1, 8, .10},
			{l, 4, 40, .15}, {l, 2, 16, .20}, {l, 1, 24, .15}, {la, 1, 8, .25},
		},
		perKind: 3,
		steps:   700, warmUp: 100, seeds: 12,
		loads: []int{80, 85, 90},
	}
}

// scenarios are all generators, in the order of the report.
func scenarios() []scenario { return []scenario{oneType(), mixedTypes()} }

// demand is the devices that each kind asks for on average, at a load of the
// cluster's devices between 0 and 1: shares count within the pool of the kind's
// first type, and all kinds together make up the load.
func (s *scenario) demand(load float64) []float64 {
	devices, total := map[capacity.Accelerator]float64{}, 0.0
	for _, p := range s.pools {
		devices[p.accelerator] += float64(p.nodes * p.devices)
		total += float64(p.nodes * p.devices)
	}
	demand, sum := make([]float64, len(s.kinds)), 0.0
	for i, k := range s.kinds {
		demand[i] = k.share * devices[k.accelerators[0]]
		sum += demand[i]
	}
	for i := range demand {
		demand[i] *= load * total / sum
	}
	return demand
}

// cluster is the empty cluster of the scenario.
func (s *scenario) cluster() *placement.Cluster {
	c := &placement.Cluster{}
	for _, p := range s.pools {
		all := placement.Resources{Devices: p.devices, MilliCPU: p.cores * 1000, Pods: podsPerNode}
		for i := range p.nodes {
			c.Nodes = append(c.Nodes, placement.Node{
				Name:        fmt.Sprintf("%s-%03d", p.accelerator, i),
				Accelerator: p.accelerator,
				Allocatable: all,
				Free:        all,
			})
		}
	}
	return c
}

// podsPerNode is the kubelet's default; it never binds here.
const podsPerNode = 110

// wave is how the target of one variant moves.
type wave struct {
	mean, phase float64
	// period is in steps.
	period float64
	noise  float64
}

// The noise of a wave forgets a tenth of itself with every step.
const (
	amplitude    = 0.5
	noiseKept    = 0.9
	noiseSpread  = 0.08
	shortPeriod  = 96
	middlePeriod = 144
	longPeriod   = 288
)

// newWave draws the period and the phase of one variant.
func newWave(mean float64, chance *rand.Rand) wave {
	periods := [...]float64{longPeriod, middlePeriod, shortPeriod}
	return wave{mean: mean, period: periods[chance.IntN(len(periods))], phase: 2 * math.Pi * chance.Float64()}
}

// target is the number of replicas wanted at step t; the noise moves on with every
// call.
func (w *wave) target(t int, chance *rand.Rand) int {
	w.noise = noiseKept*w.noise + noiseSpread*chance.NormFloat64()
	factor := 1 + amplitude*math.Sin(2*math.Pi*float64(t)/w.period+w.phase) + w.noise
	return max(0, int(math.Round(w.mean*factor)))
}
