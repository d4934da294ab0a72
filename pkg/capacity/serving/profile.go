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
	// PerResidentBeside is the same in an iteration that also computes prompts; 0 means that
	// it is the same there. Only the form Overlapped reads it.
	PerResidentBeside capacity.Milliseconds
	// PerPrefillToken is the time that each prompt token prefilled in the
	// iteration adds.
	PerPrefillToken capacity.Milliseconds
	// Form says how these parameters are read; the formula above is Linear's.
	Form Form
	// Overhead is what every iteration takes beside reading and arithmetic: launches,
	// sampling, scheduling. Only the form Overlapped reads it, whose Base is the time
	// of reading the weights.
	Overhead capacity.Milliseconds
	// PerExchanged is the time that each token computed in the iteration, decoded or
	// prefilled, adds for what the devices of the replica send each other of it; few of
	// them take twice that, until it is LongExchange more. Only the form Overlapped
	// reads them; in the others such times are part of the other parameters.
	PerExchanged, LongExchange capacity.Milliseconds
	// Experts is what a mixture of experts adds. Only the form Overlapped reads it.
	Experts ExpertTimes
	// PerPair is the time that attention adds for each pair of a prompt token and
	// itself or a token before it. The means read it in the form Overlapped alone,
	// where 0 means that it follows from PerResidentToken; in one iteration 0 is 0.
	PerPair capacity.Milliseconds
	// PerPrompt is the time that each prompt adds whatever its length. Only the
	// form Overlapped reads it.
	PerPrompt capacity.Milliseconds
	// Gamma is the constant part of prefill in the form FourParameters.
	Gamma capacity.Milliseconds
	// First is what a first token takes beside its prefill in the form Overlapped.
	First FirstToken
	// KVTokens is the number of tokens that the KV cache holds; 0 means unknown
	// and limits nothing.
	KVTokens capacity.Tokens
	// BatchLimit is the largest number of requests in service at once
	// (max_num_seqs of vLLM); 0 means unknown and limits nothing.
	BatchLimit int
}

// ExpertTimes are the times of the experts of a mixture. A token uses a share of them,
// which is taken to be drawn evenly; an iteration reads those that any of its tokens
// uses.
type ExpertTimes struct {
	// Reading is the time of reading all experts that the replica has, Share the share of
	// them that one token uses.
	Reading capacity.Milliseconds
	Share   float64
	// Engines is how many engines share the experts (expert parallelism beside data
	// parallelism), each of which reads its part of them for the tokens of all; 0 means
	// one. PerToken is the part of PerPrefillToken that is theirs, which moves to where the
	// experts are, and PerExchanged what each token adds for its way to the engines that did
	// not compute it, and back. The engine with the fewest tokens of its own waits for the most.
	Engines                int
	PerToken, PerExchanged capacity.Milliseconds
}

// Known reports whether the profile can predict anything.
func (p Profile) Known() bool { return p.Base > 0 }

// Iteration is the time of one iteration with n requests that hold resident
// tokens in the KV cache and prefill tokens of prompts computed beside them. What a
// prompt costs beside its tokens is not in it. Engines that share experts with this one
// are taken to have as many tokens.
func (p *Profile) Iteration(n int, resident, prefill capacity.Tokens) capacity.Milliseconds {
	if p.Form == Overlapped {
		own := capacity.Tokens(n) + prefill
		return p.IterationAmong(n, resident, prefill, own*capacity.Tokens(max(1, p.Experts.Engines)), own)
	}
	return p.Base +
		p.PerRequest*capacity.Milliseconds(n) +
		p.PerResidentToken*capacity.Milliseconds(resident) +
		p.PerPrefillToken*capacity.Milliseconds(prefill)
}

// IterationAmong is the same of an engine that shares experts with others, where all
// have so many tokens together, and one of them the fewest.
func (p *Profile) IterationAmong(n int, resident, prefill, all, fewest capacity.Tokens) capacity.Milliseconds {
	tokens, reading := float64(n)+float64(prefill), p.PerResidentToken
	if prefill > 0 {
		reading = p.beside()
	}
	return p.Overhead + p.PerRequest*capacity.Milliseconds(n) + reading*capacity.Milliseconds(resident) +
		capacity.Milliseconds(p.exchanged(tokens)+p.computedAmong(tokens, float64(all), float64(fewest)))
}

// beside is what each resident token adds where prompts are computed too.
func (p *Profile) beside() capacity.Milliseconds {
	if p.PerResidentBeside > 0 {
		return p.PerResidentBeside
	}
	return p.PerResidentToken
}

// Attention is what an iteration takes longer for attention between its prompt tokens
// and those before them: a chunk of k tokens after m tokens of the same prompt has
// k*(m + (k+1)/2) pairs.
func (p *Profile) Attention(pairs float64) capacity.Milliseconds {
	return p.PerPair * capacity.Milliseconds(pairs)
}

// FourParameter is the published profile form in milliseconds:
// ITL(n) = Alpha + Beta*n and prefill(n) = Gamma + Delta*input*n.
type FourParameter struct {
	Alpha, Beta, Gamma, Delta capacity.Milliseconds
	MaxBatchSize              int
}

// Profile fills a Profile from the four parameters. Beta already contains the
// mean context of the load that it was measured with, so PerResidentToken stays 0.
func (f FourParameter) Profile() Profile {
	return Profile{
		Form:            FourParameters,
		Base:            f.Alpha,
		PerRequest:      f.Beta,
		Gamma:           f.Gamma,
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
