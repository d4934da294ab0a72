package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// nodes are count nodes with 8 devices each, of which some are free.
func nodes(prefix string, accelerator capacity.Accelerator, count, free int) []placement.Node {
	var all []placement.Node
	for i := range count {
		whole := placement.Resources{Devices: 8, MilliCPU: 192_000, MemoryBytes: 2 << 40, Pods: 110}
		n := placement.Node{Name: fmt.Sprintf("%s-%02d", prefix, i), Accelerator: accelerator, Allocatable: whole, Free: whole}
		n.Free.Devices = free
		all = append(all, n)
	}
	return all
}

func replicaOf(accelerator capacity.Accelerator, devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{
		Accelerator: accelerator, Devices: devices, Pods: 1, MilliCPU: 1000 * int64(devices), MemoryBytes: int64(devices) << 30,
	}}
}

// large is a model of 70 billion parameters with measured variants.
func large(cluster ...placement.Node) *Scenario {
	variant := func(name string, accelerator capacity.Accelerator, devices int, price capacity.Cost, p serving.Profile) Variant {
		p.BatchLimit = 256
		return Variant{
			Name: name, Cost: price * capacity.Cost(devices), Request: replicaOf(accelerator, devices),
			Profile: p, Given: p, TokenBudget: 8192, Policy: decision.DefaultVariantPolicy(), Initial: -1,
		}
	}
	return &Scenario{
		Name: "large", Cluster: &placement.Cluster{Nodes: cluster}, Policy: decision.DefaultPolicy(), Variation: 0.1, Drain: time.Minute,
		Collection: Collection{Scrape: 15 * time.Second, Window: time.Minute, Gateway: true},
		Models: []Model{{
			Namespace: "default", ID: "llama-70b", SLO: capacity.SLO{TTFT: 2000, ITL: 50},
			Variants: []Variant{
				variant("h100-4", "H100", 4, 6.88, serving.Profile{Base: 10.98, PerRequest: 0.0526, PerResidentToken: 2.87e-5, PerPrefillToken: 0.0461, KVTokens: 664_000}),
				variant("h100-8", "H100", 8, 6.88, serving.Profile{Base: 8.82, PerRequest: 0.0612, PerResidentToken: 1.19e-5, PerPrefillToken: 0.0305, KVTokens: 1_560_000}),
				variant("h200-2", "H200", 2, 7.912, serving.Profile{Base: 13.13, PerRequest: 0.0314, PerResidentToken: 3.97e-5, PerPrefillToken: 0.0719, KVTokens: 590_000}),
			},
		}},
	}
}

func roomy() *Scenario {
	return large(append(nodes("h100", "H100", 12, 8), nodes("h200", "H200", 12, 8)...)...)
}

// chat is traffic of the conversation kind with a rate that follows the points.
func chat(t *testing.T, seed uint64, points ...workload.Point) Source {
	t.Helper()
	source := func() (workload.Stream, error) {
		return workload.NewSynthetic(workload.Synthetic{
			Rate: points, Seed: seed,
			Input:  workload.Lengths{Mean: 1155, Variation: 0.71, Max: 8192},
			Output: workload.Lengths{Mean: 211, Variation: 0.54, Max: 2048},
		})
	}
	_, err := source()
	require.NoError(t, err)
	return source
}
