package tokenform

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Form is the published form in milliseconds: Alpha per iteration, Beta per token
// computed, Gamma per token of the KV cache read. With n requests in service that have in
// and out tokens, each iteration computes (in+out)/(out+1) tokens of a request and reads
// in + out/2 of it:
//
//	T(n)       = Alpha + n*(Beta*(in+out)/(out+1) + Gamma*(in+out/2))
//	prefill(n) = T(n) + (Beta+Gamma)*in
//	decode(n)  = T(n) + Beta + Gamma*(in+out/2)
//
// The first token comes after prefill and one decode, the last after out decodes.
type Form struct {
	Alpha, Beta, Gamma capacity.Milliseconds
	MaxBatchSize       int
}

// At is the form for requests of one shape. There prefill and decode are straight lines in
// n, as in the published form of four parameters, which counts the first token as part of
// the prefill. A shape without input or output gives a profile that answers nothing.
func (f Form) At(shape capacity.TokenShape) serving.Profile {
	if shape.Input <= 0 || shape.Output <= 0 {
		return serving.Profile{}
	}
	in, out := capacity.Milliseconds(shape.Input), capacity.Milliseconds(shape.Output)
	perRequest := f.Beta*(in+out)/(out+1) + f.Gamma*(in+out/2)
	decode := f.Alpha + f.Beta + f.Gamma*(in+out/2)
	prefill := f.Alpha + (f.Beta+f.Gamma)*in
	return serving.FourParameter{
		Alpha: decode, Beta: perRequest,
		Gamma: prefill + decode, Delta: 2 * perRequest / in,
		MaxBatchSize: f.MaxBatchSize,
	}.Profile()
}
