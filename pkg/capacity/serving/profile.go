package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Profile is the token-aware latency model of one replica. One iteration of the
// engine that decodes one token for each of n requests, while it prefills k
// prompt tokens beside them, takes
//
//	T(n, resident, k) = Base + PerRequest*n + PerResidentToken*resident + PerPrefillToken*k
//
// where resident is the number of tokens whose keys and values are read. The form
// is a + b*n + c*n*ctx of the fits of published silicon measurements, with their
// p as PerPrefillToken; they hold to a few per cent for 1 <= n <= 256 and
// contexts up to 10,000 tokens.
type Profile struct {
	// Base is the time of an iteration that holds no requests.
	Base capacity.Milliseconds
	// PerRequest is the time that each request in the batch adds.
	PerRequest capacity.Milliseconds
	// PerResidentToken is the time that each token in the KV cache adds.
	PerResidentToken capacity.Milliseconds
	// PerPrefillToken is the time that each prompt token prefilled in the
	// iteration adds.
	PerPrefillToken capacity.Milliseconds
	// KVTokens is the number of tokens that the KV cache holds; 0 means unknown
	// and limits nothing.
	KVTokens capacity.Tokens
	// BatchLimit is the largest number of requests in service at once
	// (max_num_seqs of vLLM); 0 means unknown and limits nothing.
	BatchLimit int
}

// Known reports whether the profile can predict anything.
func (p Profile) Known() bool { return p.Base > 0 }

// Iteration is the time of one iteration with n requests that hold resident
// tokens in the KV cache and prefill tokens of prompts computed beside them.
func (p Profile) Iteration(n int, resident, prefill capacity.Tokens) capacity.Milliseconds {
	return p.Base +
		p.PerRequest*capacity.Milliseconds(n) +
		p.PerResidentToken*capacity.Milliseconds(resident) +
		p.PerPrefillToken*capacity.Milliseconds(prefill)
}

// FourParameter is the published profile form in milliseconds:
// ITL(n) = Alpha + Beta*n and prefill(n) = Gamma + Delta*input*n.
type FourParameter struct {
	Alpha, Beta, Gamma, Delta capacity.Milliseconds
	MaxBatchSize              int
}

// Profile fills a Profile from the four parameters. Beta already contains the
// mean context of the load that it was measured with, so PerResidentToken stays
// 0. Prefill of one prompt costs about Delta per token at batch 1; Gamma is the
// iteration that carries it and is already in Base.
func (f FourParameter) Profile() Profile {
	return Profile{
		Base:            f.Alpha,
		PerRequest:      f.Beta,
		PerPrefillToken: f.Delta,
		BatchLimit:      f.MaxBatchSize,
	}
}

// Concurrency is the largest mean number of requests in service: the batch limit
// or what the KV cache holds of requests of this shape, whichever is less.
// +Inf means that neither is known.
func (p Profile) Concurrency(shape capacity.TokenShape) float64 {
	limit := math.Inf(1)
	if p.BatchLimit > 0 {
		limit = float64(p.BatchLimit)
	}
	if p.KVTokens > 0 && shape.Known() {
		limit = math.Min(limit, float64(p.KVTokens)/float64(shape.Input+shape.Output/2))
	}
	return limit
}

// At is the steady state of one replica with n requests in service.
type At struct {
	// Rate is the rate that keeps n requests in service.
	Rate capacity.Rate
	// ITL is the mean time per output token.
	ITL capacity.Milliseconds
	// TTFT is the mean time from the start of service to the first token.
	TTFT capacity.Milliseconds
}

// Steady solves the mean-field steady state with n requests of the given shape in
// service. With d(n) = Base + PerRequest*n + PerResidentToken*n*(in + out/2) the
// iteration is stretched by the prefill work that arrives during it,
// T = d / (1 - PerPrefillToken*in*rate), and by Little's law n = rate*out*T, so
//
//	rate = n / (out*d + n*PerPrefillToken*in).
//
// It is exact for means in steady state and says nothing of transients or waiting.
func (p Profile) Steady(n float64, shape capacity.TokenShape) At {
	if n <= 0 || !shape.Known() || !p.Known() {
		return At{}
	}
	in, out := float64(shape.Input), float64(shape.Output)
	d := float64(p.Base) + float64(p.PerRequest)*n + float64(p.PerResidentToken)*n*(in+out/2)
	prefill := float64(p.PerPrefillToken) * in
	perMs := n / (out*d + n*prefill)
	itl := d / (1 - prefill*perMs)
	return At{
		Rate: capacity.Rate(perMs * 1000),
		ITL:  capacity.Milliseconds(itl),
		TTFT: capacity.Milliseconds(itl + prefill),
	}
}

// MaxRate is the largest steady rate of one replica at which the mean ITL and the
// mean TTFT without waiting keep the SLO, with at most the given fraction of its
// concurrency in use. It is 0 when the profile or the shape is unknown, or when
// even a single request misses the SLO.
func (p Profile) MaxRate(shape capacity.TokenShape, slo capacity.SLO, fraction float64) capacity.Rate {
	limit := p.Concurrency(shape) * fraction
	if !p.Known() || !shape.Known() || limit <= 0 {
		return 0
	}
	if math.IsInf(limit, 1) {
		limit = 1 << 16
	}
	keeps := func(n float64) bool {
		at := p.Steady(n, shape)
		return (slo.ITL <= 0 || at.ITL <= slo.ITL) && (slo.TTFT <= 0 || at.TTFT <= slo.TTFT)
	}
	// Rate and ITL both grow with n, so the largest n that keeps the SLO is found
	// by bisection.
	low, high := 0.0, limit
	if keeps(high) {
		return p.Steady(high, shape).Rate
	}
	for range 60 {
		mid := (low + high) / 2
		if keeps(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	if low < 1 && !keeps(1) {
		return 0
	}
	return p.Steady(low, shape).Rate
}
