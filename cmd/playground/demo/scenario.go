package demo

import (
	"strconv"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// model is one model, what its clients were promised and what they send.
type model struct {
	ID  string
	SLO capacity.SLO
	// Input and Output are the lengths of synthetic requests.
	Input, Output workload.Lengths
	// Variants are its ways to be served. The first one starts with one replica and
	// is the measure of the synthetic traffic; the others start with none.
	Variants []variant
	// Placed is set where the manager's webhook says where the pods go; otherwise their
	// templates say the same.
	Placed bool
}

// tokens is the mean shape of the model's requests.
func (m model) tokens() capacity.TokenShape {
	return capacity.TokenShape{Input: capacity.Tokens(m.Input.Mean), Output: capacity.Tokens(m.Output.Mean)}
}

// variant is one way to serve a model.
type variant struct {
	// Name is the name of the Deployment and of the VariantAutoscaling object.
	Name        string
	Accelerator capacity.Accelerator
	// Product is the value of nvidia.com/gpu.product on the nodes that have the
	// accelerator.
	Product string
	// Devices is the number of devices per replica, and of tensor-parallel ranks.
	Devices int
	// DeviceCost is the price of one device per hour.
	DeviceCost capacity.Cost
	// Quantization is that of the weights, as vLLM names it; empty means none.
	Quantization string
	// TokenBudget is --max-num-batched-tokens.
	TokenBudget int
	// Profile is the latency of one replica, which its emulated server has.
	Profile serving.Profile
}

// cost is the price of one replica per hour.
func (v variant) cost() capacity.Cost { return v.DeviceCost * capacity.Cost(v.Devices) }

// variantID is the name of the variant in the published form.
func (v variant) variantID(m model) string {
	return m.ID + "-" + string(v.Accelerator) + "-" + strconv.Itoa(v.Devices)
}

// The devices. The prices are per device and hour, on demand, of AWS in November 2026 (p5.48xlarge,
// p4de.24xlarge, g6e.xlarge).
const (
	h100, h100Cost = "H100", 6.88
	a100, a100Cost = "A100", 3.43
	l40s, l40sCost = "L40S", 1.861
)

// nodeGroup is a number of equal nodes.
type nodeGroup struct {
	Name        string
	Count       int
	Shape       localcluster.Shape
	Accelerator capacity.Accelerator
}

// nodeGroups is the cluster.
var nodeGroups = []nodeGroup{
	{Name: "h100", Count: 4, Shape: localcluster.EightH100, Accelerator: h100},
	{Name: "a100", Count: 2, Shape: localcluster.EightA100, Accelerator: a100},
	{Name: "l40s", Count: 4, Shape: localcluster.FourL40S, Accelerator: l40s},
	{Name: "cpu", Count: 2, Shape: localcluster.CPUOnly},
}

// batchLimit is --max-num-seqs of every model server.
const batchLimit = 128

// The token budgets are what vLLM takes for a device by itself.
const (
	largeBudget   = simulation.LargeTokenBudget
	defaultBudget = simulation.DefaultTokenBudget
)

// scenario is what the demo runs. The variation of the lengths is that of the
// public Azure conversation trace of 2023: prompts have a mean of 1,155 tokens and
// a 99th percentile of 4,142, outputs of 211 and 601; a log-normal distribution
// with these two has a coefficient of variation of 0.71 and 0.54.
func scenario() []model {
	return []model{
		{
			ID:     "meta-llama/Llama-3.1-8B-Instruct",
			Placed: true,
			SLO:    capacity.SLO{TTFT: 500, ITL: 50},
			Input:  workload.Lengths{Mean: 1155, Variation: 0.71, Max: 8192},
			Output: workload.Lengths{Mean: 211, Variation: 0.54, Max: 2048},
			Variants: []variant{
				{
					Name: "llama-8b-h100", Accelerator: h100, Product: localcluster.EightH100.Product, Devices: 1,
					DeviceCost: h100Cost, TokenBudget: largeBudget,
					Profile: llama8BOnH100(),
				},
				{
					Name: "llama-8b-l40s", Accelerator: l40s, Product: localcluster.FourL40S.Product, Devices: 2,
					DeviceCost: l40sCost, TokenBudget: defaultBudget,
					Profile: llama8BOnL40S(),
				},
			},
		},
		{
			ID:     "meta-llama/Llama-3.1-70B-Instruct",
			SLO:    capacity.SLO{TTFT: 2000, ITL: 100},
			Input:  workload.Lengths{Mean: 1024, Variation: 0.71, Max: 8192},
			Output: workload.Lengths{Mean: 256, Variation: 0.54, Max: 2048},
			Variants: []variant{
				{
					Name: "llama-70b-h100", Accelerator: h100, Product: localcluster.EightH100.Product, Devices: 4,
					DeviceCost: h100Cost, Quantization: "fp8", TokenBudget: largeBudget,
					Profile: llama70BOnH100(),
				},
				{
					Name: "llama-70b-a100", Accelerator: a100, Product: localcluster.EightA100.Product, Devices: 8,
					DeviceCost: a100Cost, TokenBudget: defaultBudget,
					Profile: llama70BOnA100(),
				},
			},
		},
	}
}
