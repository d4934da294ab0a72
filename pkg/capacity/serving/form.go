package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Form says how the parameters of a Profile are read.
type Form uint8

const (
	// Linear adds the four costs up; see Profile.
	Linear Form = iota
	// Overlapped lets the arithmetic of all tokens of an iteration run while the
	// weights are read; see Profile.decode.
	Overlapped
	// FourParameters is the published form of FourParameter.
	FourParameters
)

// FirstToken is what a first token takes beside the iteration that prefills its
// prompt. Only the form Overlapped has it.
type FirstToken struct {
	// Fixed is the way of a request through the server: HTTP, tokenizer, scheduler.
	Fixed capacity.Milliseconds
	// Iterations is how many running iterations a request waits for and is
	// reported after; about half of one before and one after.
	Iterations float64
	// Cold is added to a prefill that comes after a long time without any, and
	// ColdBelow is the rate at which half of it is left.
	Cold      capacity.Milliseconds
	ColdBelow capacity.Rate
}

// attentionRatio is the cost of one pair of tokens in prefill's attention relative
// to reading one cached token: the heads that share a key-value head (4 is usual)
// over the arithmetic operations that the device does while it reads one byte
// (about 320 for two-byte numbers on current ones). It is not fitted: a fit that
// has not seen long prompts would put it anywhere.
const attentionRatio = 0.0125

// overlap is the time of two activities that run beside each other but not
// perfectly so: the hypotenuse, between the longer one and their sum.
func overlap(memory, arithmetic float64) float64 { return math.Hypot(memory, arithmetic) }

// decode is the mean time per output token while n requests are in service.
//
// In the form Overlapped, an iteration with n decoding requests and k prompt
// tokens of j prompts takes
//
//	o + b*n + c*resident + hypot(a, g*(n+k)) + x*(n+k) + min(x*(n+k), l) + w*j + pairs
//
// with a = Base (reading the weights), g = PerPrefillToken (arithmetic of one
// token, decoded or prefilled), x = PerExchanged, l = LongExchange, b = PerRequest, c =
// PerResidentToken (beside prompts PerResidentBeside), o = Overhead, w = PerPrompt, and
// pairs = q*in*in/2 per prompt, where q is PerPair or, without one, attentionRatio times
// PerResidentToken. Every request is replaced after out iterations, so m = n/out prompts
// come per iteration. They share iterations as independent arrivals do: a share 1-exp(-m)
// of the iterations carries all of them.
func (p Profile) decode(n float64, shape capacity.TokenShape) float64 {
	in, out := float64(shape.Input), float64(shape.Output)
	a, b, c, g := float64(p.Base), float64(p.PerRequest), float64(p.PerResidentToken), float64(p.PerPrefillToken)
	switch p.Form {
	case FourParameters:
		return a + b*n
	case Overlapped:
		m := n / out
		busy := -math.Expm1(-m)
		mixed := p.computed(n) + p.exchanged(n)
		if busy > 0 {
			together := n + in*m/busy
			mixed = (1-busy)*mixed + busy*(p.computed(together)+p.exchanged(together))
			c += busy * (float64(p.beside()) - c)
		}
		return float64(p.Overhead) + b*n + c*n*(in+out/2) + mixed + m*p.promptCost(in)
	}
	return a + b*n + c*n*(in+out/2) + g*in*n/out
}

// computed is hypot(a, g*k) for an iteration with k tokens. With experts, a grows by
// those of them that the tokens use,
//
//	reading * (1 - (1-share)^k)
//
// where k are the tokens of all engines that share them.
func (p *Profile) computed(tokens float64) float64 {
	return p.computedAmong(tokens, tokens*float64(max(1, p.Experts.Engines)), tokens)
}

// computedAmong is the same where all engines that share the experts have so many tokens
// together. Those of the others also move to the experts and back; the engine with the
// fewest of its own has the most to move.
func (p *Profile) computedAmong(tokens, all, fewest float64) float64 {
	memory, arithmetic := float64(p.Base), float64(p.PerPrefillToken)*tokens
	x := p.Experts
	if x.Reading <= 0 || all <= 0 {
		return overlap(memory, arithmetic)
	}
	memory -= float64(x.Reading) * math.Expm1(all*math.Log1p(-x.Share))
	arithmetic += float64(x.PerToken) * (all/float64(max(1, x.Engines)) - tokens)
	return overlap(memory, arithmetic) + float64(x.PerExchanged)*(all-fewest)
}

// exchanged is what an iteration with so many tokens takes longer for what devices send
// each other of each token.
func (p *Profile) exchanged(tokens float64) float64 {
	x := float64(p.PerExchanged) * tokens
	return x + min(x, float64(p.LongExchange))
}

// promptCost is what a prompt costs beside the arithmetic of its tokens.
func (p Profile) promptCost(in float64) float64 {
	pair := float64(p.PerPair)
	if pair == 0 {
		pair = attentionRatio * float64(p.PerResidentToken)
	}
	return float64(p.PerPrompt) + pair*in*in/2
}

// prefill is the time from the start of service to the end of the prompt's
// prefill, with n requests in service, as it counts for the time in service.
func (p Profile) prefill(n float64, shape capacity.TokenShape) float64 {
	in := float64(shape.Input)
	g := float64(p.PerPrefillToken)
	switch p.Form {
	case FourParameters:
		return float64(p.Gamma) + g*in*n
	case Overlapped:
		out := float64(shape.Output)
		return float64(p.Overhead) + float64(p.PerRequest)*n + float64(p.beside())*n*(in+out/2) + p.computed(n+in) + p.exchanged(n+in) + p.promptCost(in)
	}
	return g * in
}

// first is the mean time from the start of service to the first token, when
// requests come at rate.
func (p Profile) first(n float64, shape capacity.TokenShape, rate capacity.Rate) float64 {
	switch p.Form {
	case FourParameters:
		return p.prefill(n, shape)
	case Overlapped:
		f := p.First
		cold := 0.0
		if f.Cold > 0 && f.ColdBelow > 0 {
			cold = float64(f.Cold) / (1 + float64(rate/f.ColdBelow))
		}
		return float64(f.Fixed) + f.Iterations*p.decode(n, shape) + p.prefill(n, shape) + cold
	}
	return p.prefill(n, shape) + p.decode(n, shape)
}

// residence is the time in service of a request among n. In the forms Linear and
// Overlapped the prompts' prefill is part of the iterations that the others see,
// so only the output tokens count; the published form adds the prefill.
func (p Profile) residence(n float64, shape capacity.TokenShape) float64 {
	if p.Form == FourParameters {
		return p.prefill(n, shape) + p.decodes(shape)*p.decode(n, shape)
	}
	return float64(shape.Output) * p.decode(n, shape)
}

// decodes is the number of decode steps that the four-parameter form counts.
func (p Profile) decodes(shape capacity.TokenShape) float64 {
	if shape.Input == 0 && shape.Output == 1 {
		return 1
	}
	return float64(shape.Output) - 1
}
