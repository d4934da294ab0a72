package serving

import (
	"fmt"
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Exponents of the number of devices: what each time is divided by when the devices
// of a replica double. From published measurements of dense models on 1 to 8 H100
// and H200: the weights' reading loses most to the exchange between devices, reading
// the KV cache next to nothing. What they lose to the exchange is that of NVLink; what
// slower links take longer is reckoned (see beside).
const (
	baseSpread, prefillSpread, residentSpread = 0.5, 0.75, 1.0
	// farthestLoan is the factor beyond which a scaled time is a guess.
	farthestLoan = 8
)

// Lender is a variant of the same model whose profile is known.
type Lender struct {
	Name       string
	Shape      capacity.Shape
	Profile    Profile
	Confidence float64
}

// Loan is a profile that was borrowed.
type Loan struct {
	Profile Profile
	// From is the lender's name.
	From string
	// Reason is for people: what was scaled by how much.
	Reason string
	// Confidence is the lender's, less the farther it was scaled.
	Confidence float64
}

// Usable reports whether the loan is sure enough to be used.
func (l Loan) Usable() bool { return l.Confidence >= UsableConfidence }

// Borrow finds the profile for a variant that has none: that of the variant of the
// same model whose devices are most alike, its times scaled by memory bandwidth,
// arithmetic, number of devices and what they send each other over links that are slower
// than NVLink. Limits on batch and KV tokens are not borrowed
// from other shapes, because they follow from memory. It fails when no lender's
// hardware can be compared.
func Borrow(shape capacity.Shape, lenders []Lender) (Loan, bool) {
	var best Loan
	found := false
	for _, l := range lenders {
		s, ok := scaling(l.Shape, shape)
		if !ok || !l.Profile.Known() {
			continue
		}
		loan := Loan{From: l.Name, Profile: s.apply(l.Profile), Confidence: l.Confidence * (1 - s.distance()/math.Log(farthestLoan))}
		loan.Reason = fmt.Sprintf("borrowed from %s on %s, which is alike", l.Name, l.Shape)
		if s.distance() > 0 {
			loan.Reason = fmt.Sprintf("borrowed from %s on %s, for %s: iteration x%.2f, KV reading x%.2f, prefill x%.2f", l.Name, l.Shape, shape, s.base, s.resident, s.tokens())
			loan.Profile.BatchLimit, loan.Profile.KVTokens = 0, 0
		}
		if loan.Confidence <= 0 {
			continue
		}
		if !found || loan.Confidence > best.Confidence || loan.Confidence == best.Confidence && loan.From < best.From {
			best, found = loan, true
		}
	}
	return best, found
}

// scale is the factor of each kind of time. lent and lends are what the devices of either
// shape send each other of a token beside what the exponents hold, in units of its
// arithmetic there.
type scale struct{ base, resident, prefill, lent, lends float64 }

// tokens is the factor of all that a prompt token takes.
func (s scale) tokens() float64 { return s.prefill * (1 + s.lends) / (1 + s.lent) }

func scaling(from, to capacity.Shape) (scale, bool) {
	devices := func(s capacity.Shape) float64 { return float64(s.Devices * max(1, s.Pods)) }
	if devices(from) <= 0 || devices(to) <= 0 {
		return scale{}, false
	}
	a, knownA := hardwareOf[from.Accelerator]
	b, knownB := hardwareOf[to.Accelerator]
	if from.Accelerator == to.Accelerator && from.Accelerator != "" {
		a, b = hardware{bandwidth: 1, compute: 1}, hardware{bandwidth: 1, compute: 1}
	} else if !knownA || !knownB {
		return scale{}, false
	}
	memory, compute, count := a.bandwidth/b.bandwidth, a.compute/b.compute, devices(from)/devices(to)
	return scale{
		base:     memory * math.Pow(count, baseSpread),
		resident: memory * math.Pow(count, residentSpread),
		prefill:  compute * math.Pow(count, prefillSpread),
		lent:     beside(from), lends: beside(to),
	}, true
}

// A dense model of H numbers per token in each of L layers has about 12*L*H*H parameters
// in them. usualHidden is between those of 8 and of 70 billion parameters, 4,096 and
// 8,192; reached is the share of a data sheet's arithmetic that prefill comes to.
const usualHidden, reached = 6000, 0.75

// beside is how much longer a token takes for what the n devices of a pod send each other
// of it over their link than over NVLink 4, in units of its arithmetic:
//
//	24*L*H*H / (n*arithmetic)           is that arithmetic, and
//	2*L * 2*H * 2*(n-1)/n / bandwidth   two sums in each layer (ModelFigures.Exchange), so
//	(n-1)*arithmetic / (3*H*bandwidth)  is one over the other
//
// It is 0 for one device, and for devices or links of which nothing is known.
func beside(s capacity.Shape) float64 {
	link, known := LinkOf(s.Device())
	compute := hardwareOf[s.Accelerator].compute * reached * 1e12
	if s.Devices < 2 || !known || compute <= 0 {
		return 0
	}
	more := link.sending(allReduce, s.Devices) - nvlink4.sending(allReduce, s.Devices)
	// A byte of the result in milliseconds, times 4*L*H of them, over the arithmetic.
	return max(0, float64(more)/1000*float64(s.Devices)*compute/(6*usualHidden))
}

// distance is the largest factor either way, as a logarithm.
func (s scale) distance() float64 {
	return max(math.Abs(math.Log(s.base)), math.Abs(math.Log(s.resident)), math.Abs(math.Log(s.tokens())))
}

// apply scales the times. What the host does per request and per prompt stays, except
// in the published form whose beta contains the KV reading. What devices send each other
// is sent of each token, prefilled or decoded.
func (s scale) apply(p Profile) Profile {
	by := func(x *capacity.Milliseconds, factor float64) { *x *= capacity.Milliseconds(factor) }
	by(&p.Base, s.base)
	by(&p.PerResidentToken, s.resident)
	by(&p.PerResidentBeside, s.resident)
	by(&p.Gamma, s.base)
	if p.Form == FourParameters {
		by(&p.PerRequest, s.resident)
	}
	arithmetic := p.PerPrefillToken / capacity.Milliseconds(1+s.lent)
	if p.PerExchanged > 0 {
		arithmetic = p.PerPrefillToken
	}
	sent := arithmetic * capacity.Milliseconds(s.prefill*s.lends)
	by(&p.PerPrefillToken, s.tokens())
	switch {
	case s.lends == s.lent:
		by(&p.PerExchanged, s.prefill)
	case p.Form == Overlapped:
		p.PerPrefillToken, p.PerExchanged, p.LongExchange = arithmetic*capacity.Milliseconds(s.prefill), sent, 0
	default:
		p.PerRequest = max(0, p.PerRequest+sent-arithmetic*capacity.Milliseconds(s.lent))
	}
	return p
}
