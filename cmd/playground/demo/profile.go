package demo

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// llama8BOnH100 is Llama-3.1-8B on one H100, fitted on the published silicon
// measurements of ai-dynamo/aiconfigurator (a = 6.46 ms, b about 0, c = 4.71e-5 ms,
// p = 0.0220 ms; median error 2.6 %). The KV cache is what vLLM logs for the pair:
// 27,996 blocks of 16 tokens.
func llama8BOnH100() serving.Profile {
	return serving.Profile{
		Base:             6.46,
		PerResidentToken: 4.71e-5,
		PerPrefillToken:  0.0220,
		KVTokens:         447_936,
		BatchLimit:       batchLimit,
	}
}

// llama8BOnL40S is Llama-3.1-8B on two L40S. It is scaled and not measured: what
// reads memory (the weights in Base, the KV cache in PerResidentToken) by the
// published bandwidth, what computes (PerPrefillToken) by the published dense
// 16-bit compute. What the two devices send each other over PCIe, having no NVLink,
// is added to it as serving.Exchange has it, for iterations with more than twenty
// tokens.
//
//	bandwidth: 3,350 GB/s of one H100 SXM / (2 x 864 GB/s)     = 1.939
//	compute:   989.4 TFLOP/s of one H100  / (2 x 362.05 TFLOP/s) = 1.366
//	exchange:  65 sums of 4,096 numbers of 2 bytes for each token, at 13.9 GB/s: 0.038 ms;
//	           19.8 us before each: 1.3 ms
func llama8BOnL40S() serving.Profile {
	const (
		devices   = 2
		bandwidth = 3350.0 / (devices * 864)
		compute   = 989.4 / (devices * 362.05)
	)
	p := llama8BOnH100()
	p.Base *= bandwidth
	p.PerResidentToken *= bandwidth
	p.PerPrefillToken *= compute
	p.KVTokens = kvTokens(devices, l40sMemory, llama8BWeights, llama8BPerToken)
	link, _ := serving.LinkOf(capacity.Device{Accelerator: l40s})
	sent, known := serving.FiguresOf("meta-llama/Llama-3.1-8B", serving.Arguments{}).Exchange(link, devices)
	if !known {
		panic("no figures of what two L40S send each other")
	}
	p.Base += sent.PerIteration + sent.Long
	p.PerRequest += sent.PerToken + sent.PerSampled
	p.PerPrefillToken += sent.PerToken
	return p
}

// llama70BOnH100 is Llama-3.1-70B in 8-bit floating point on four H100 with vLLM,
// fitted on the same measurements as llama8BOnH100 (median error 2.5 %).
func llama70BOnH100() serving.Profile {
	return serving.Profile{
		Base:             10.98,
		PerRequest:       0.0526,
		PerResidentToken: 2.87e-5,
		PerPrefillToken:  0.0461,
		KVTokens:         kvTokens(4, h100Memory, llama70BWeights8, llama70BPerToken),
		BatchLimit:       batchLimit,
	}
}

// llama70BOnA100 is Llama-2-70B in 16 bits on eight A100 80GB, from the measured
// tables of Splitwise (Mutinifni/splitwise-sim, tensor parallel 8), whose
// attention has the shape of Llama-3.1-70B's. An older engine: slow, and real.
//
//	c: one request, prompt 512 -> 8,192: a token takes 44.91 -> 46.42 ms,
//	   1.51 ms / 7,680 tokens                            = 1.97e-4 ms
//	a, b: a token with prompt 512 and output 128 (576 tokens resident per request
//	   at the mean) takes 44.91, 44.53, 45.78, 46.50, 50.44, 53.16, 71.26 ms at
//	   1, 2, 4, 8, 16, 32, 64 requests; less c*576*n, the least squares line is
//	   43.53 + 0.295*n, off by 3.4 ms at most
//	p: one prompt of 512, 1,024, 2,048 tokens takes 95.72, 154.62, 274.16 ms; the
//	   slope is                                            0.116 ms
func llama70BOnA100() serving.Profile {
	return serving.Profile{
		Base:             43.53,
		PerRequest:       0.295,
		PerResidentToken: 1.97e-4,
		PerPrefillToken:  0.116,
		KVTokens:         kvTokens(8, a100Memory, llama70BWeights16, llama70BPerToken),
		BatchLimit:       batchLimit,
	}
}

// Memory of a device in GiB, as its driver reports it.
const (
	h100Memory = 81559.0 / 1024
	a100Memory = 81920.0 / 1024
	l40sMemory = 46068.0 / 1024
)

// Weights in GiB: 8.03e9 and 70.55e9 parameters of 2 bytes, or of 1.
const (
	gib               = 1 << 30
	llama8BWeights    = 8.03e9 * 2 / gib
	llama70BWeights8  = 70.55e9 / gib
	llama70BWeights16 = 70.55e9 * 2 / gib
)

// Keys and values of one token in KiB: 2 x layers x KV heads x 128 x 2 bytes, with
// 32 layers and 80, and 8 heads.
const (
	llama8BPerToken  = 128
	llama70BPerToken = 320
)

// kvTokens is the number of tokens that the KV cache of a replica holds:
//
//	(devices x (use x memory - overhead) - weights) / size of one token
//
// in whole blocks of 16. The engine uses 90 % of the memory; the overhead of 2.05
// GiB per device for activations and graphs is what the measured 447,936 tokens of
// Llama-3.1-8B on one H100 leave, and is taken for the others too.
func kvTokens(devices int, memoryGiB, weightsGiB, kibPerToken float64) capacity.Tokens {
	const (
		use      = 0.9
		overhead = 2.05
		block    = 16
	)
	free := float64(devices)*(use*memoryGiB-overhead) - weightsGiB
	blocks := int(free * (1 << 20) / kibPerToken / block)
	return capacity.Tokens(blocks * block)
}

// fourParameters is the profile in the published form that a VariantAutoscaling
// object can state, in milliseconds: a straight line through the same profile at
// the mean shape of the model's requests.
//
//	alpha = a                               an iteration without requests
//	beta  = b + c*(in + out/2) + p*in/out   each request, with the tokens it holds at
//	                                        the mean and its share of the prefills
//	gamma = a                               the iteration that carries the prefill,
//	delta = beta/in                         which is as long as any other
//
// The line is exact for rate and time per token at that shape. It is wrong for
// another one, since beta has the tokens in it, and the form has no place for the
// prefill of a request of its own, so that its time to the first token is too short.
func fourParameters(p serving.Profile, shape capacity.TokenShape) serving.FourParameter {
	in, out := capacity.Milliseconds(shape.Input), capacity.Milliseconds(shape.Output)
	beta := p.PerRequest + p.PerResidentToken*(in+out/2) + p.PerPrefillToken*in/out
	return serving.FourParameter{Alpha: p.Base, Beta: beta, Gamma: p.Base, Delta: beta / in, MaxBatchSize: p.BatchLimit}
}
