package replaytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// World is a model on two kinds of nodes, one of each. Its variants, cheap and dear, take one
// device and serve some ten short requests per second.
func World() *replay.Scenario {
	return &replay.Scenario{
		Name: "small", Cluster: &placement.Cluster{Nodes: append(Nodes("h100", "H100", 1, 8), Nodes("h200", "H200", 1, 8)...)},
		Policy: decision.DefaultPolicy(), Variation: 0.1, Drain: 30 * time.Second,
		Collection: replay.Collection{Scrape: 15 * time.Second, Window: time.Minute, Gateway: true},
		Models: []replay.Model{{
			Namespace: "default", ID: "small", SLO: capacity.SLO{TTFT: 1000, ITL: 40},
			Variants: []replay.Variant{variant("cheap", "H100", 2), variant("dear", "H200", 3)},
		}},
	}
}

func variant(name string, accelerator capacity.Accelerator, cost capacity.Cost) replay.Variant {
	profile := serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.02, KVTokens: 50_000, BatchLimit: 32}
	return replay.Variant{
		Name: name, Cost: cost, Profile: profile, Given: profile, Policy: decision.DefaultVariantPolicy(), Initial: -1,
		Request: &placement.Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: 1, Pods: 1, MilliCPU: 1000, MemoryBytes: 1 << 30}},
	}
}

// Nodes are count nodes with 8 devices each, of which some are free.
func Nodes(prefix string, accelerator capacity.Accelerator, count, free int) []placement.Node {
	var all []placement.Node
	for i := range count {
		whole := placement.Resources{Devices: 8, MilliCPU: 192_000, MemoryBytes: 2 << 40, Pods: 110}
		n := placement.Node{Name: fmt.Sprintf("%s-%02d", prefix, i), Accelerator: accelerator, Allocatable: whole, Free: whole}
		n.Free.Devices = free
		all = append(all, n)
	}
	return all
}

// Traffic is of short requests, at the rates of the points, the same in each call.
func Traffic(t *testing.T, points ...workload.Point) replay.Source {
	t.Helper()
	source := func() (workload.Stream, error) {
		return workload.NewSynthetic(workload.Synthetic{
			Rate: points, Seed: 7,
			Input:  workload.Lengths{Mean: 200, Variation: 0.5, Max: 1000},
			Output: workload.Lengths{Mean: 60, Variation: 0.5, Max: 300},
		})
	}
	_, err := source()
	require.NoError(t, err)
	return source
}
