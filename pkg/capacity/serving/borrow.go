package serving

import (
	"fmt"
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Exponents of the number of devices: what each time is divided by when the devices
// of a replica double. From published measurements of dense models on 1 to 8 H100
// and H200: the weights' reading loses most to the exchange between devices, reading
// the KV cache next to nothing.
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

// Borrow finds the profile for a variant that has none: that of the variant of the
// same model whose devices are most alike, its times scaled by memory bandwidth,
// arithmetic and number of devices. Limits on batch and KV tokens are not borrowed
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
			loan.Reason = fmt.Sprintf("borrowed from %s on %s, for %s: iteration x%.2f, KV reading x%.2f, prefill x%.2f", l.Name, l.Shape, shape, s.base, s.resident, s.prefill)
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

// scale is the factor of each kind of time.
type scale struct{ base, resident, prefill float64 }

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
	}, true
}

// distance is the largest factor either way, as a logarithm.
func (s scale) distance() float64 {
	return max(math.Abs(math.Log(s.base)), math.Abs(math.Log(s.resident)), math.Abs(math.Log(s.prefill)))
}

// apply scales the times. What the host does per request and per prompt stays, except
// in the published form whose beta contains the KV reading.
func (s scale) apply(p Profile) Profile {
	by := func(x *capacity.Milliseconds, factor float64) { *x *= capacity.Milliseconds(factor) }
	by(&p.Base, s.base)
	by(&p.PerResidentToken, s.resident)
	by(&p.PerPrefillToken, s.prefill)
	by(&p.Gamma, s.base)
	if p.Form == FourParameters {
		by(&p.PerRequest, s.resident)
	}
	return p
}
