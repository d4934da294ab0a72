package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Point is one operating point of one replica, as it was measured.
type Point struct {
	Shape capacity.TokenShape
	// Rate is the rate of completed requests.
	Rate capacity.Rate
	// Batch is the mean number in service; 0 means that it was not measured.
	Batch float64
	// TTFT and ITL are means; 0 means not measured.
	TTFT, ITL capacity.Milliseconds
}

// usable reports whether a fit can learn from the point.
func (p Point) usable() bool {
	finite := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	return p.Shape.Known() && finite(float64(p.Shape.Input)) && finite(float64(p.Shape.Output)) &&
		finite(float64(p.Rate)) && finite(p.Batch) && finite(float64(p.TTFT)) && finite(float64(p.ITL)) &&
		(p.Rate > 0 || p.Batch > 0) && p.ITL > 0
}

const (
	// fitFactor bounds every parameter to within this factor of where the fit
	// starts, in natural logarithms: 3 is a factor of 20.
	fitFactor = 3
	// fitNoise, about the error of a good form near saturation, is the relative error
	// below which a point's loss is quadratic and
	// above which it grows linearly, so that a few points out of line do not turn
	// the fit.
	fitNoise = 0.1
	// fitStep, fitTolerance and fitLimit steer one search; a search that ended is
	// restarted, because a simplex may collapse before it arrives.
	fitStep, fitTolerance, fitLimit, fitRestarts = 0.3, 1e-8, 300, 5
)

// Guess is where a fit of the form starts when nothing is known but the points: the
// shortest time per token that was seen is nearly all Base, and the other
// parameters have the proportions of measured dense models to it.
func Guess(form Form, points []Point) Profile {
	base := math.Inf(1)
	for _, p := range points {
		if p.usable() {
			base = math.Min(base, float64(p.ITL))
		}
	}
	if math.IsInf(base, 1) {
		return Profile{}
	}
	ms := func(share float64) capacity.Milliseconds { return capacity.Milliseconds(base * share) }
	profile := Profile{Form: form, Base: ms(1), PerRequest: ms(2.5e-3), PerResidentToken: ms(7e-6), PerPrefillToken: ms(3.3e-3)}
	switch form {
	case Overlapped:
		profile.PerPrompt = ms(0.06)
		profile.First = FirstToken{Fixed: ms(0.3), Iterations: 1, Cold: ms(1), ColdBelow: 1}
	case FourParameters:
		profile.PerResidentToken, profile.PerRequest, profile.PerPrefillToken = 0, ms(6e-3), ms(3e-4)
		profile.Gamma = ms(2)
	}
	return profile
}

// parameters are the fitted fields of the form: those that the time per token
// follows from, and those that only the first token knows. The published form is
// fitted at once, because its batch follows from both.
func (p *Profile) parameters() (decode, first []*float64) {
	of := func(ms ...*capacity.Milliseconds) []*float64 {
		all := make([]*float64, len(ms))
		for i, m := range ms {
			all[i] = (*float64)(m)
		}
		return all
	}
	switch p.Form {
	case FourParameters:
		return of(&p.Base, &p.PerRequest, &p.Gamma, &p.PerPrefillToken), nil
	case Overlapped:
		first = append(of(&p.First.Fixed, &p.First.Cold), &p.First.Iterations, (*float64)(&p.First.ColdBelow))
		return of(&p.Base, &p.PerRequest, &p.PerResidentToken, &p.PerPrefillToken, &p.PerPrompt), first
	}
	return of(&p.Base, &p.PerRequest, &p.PerResidentToken, &p.PerPrefillToken), nil
}

// loss is about |log(got/want)|, but quadratic within fitNoise.
func loss(got, want capacity.Milliseconds) float64 {
	if want <= 0 {
		return 0
	}
	if got <= 0 || math.IsInf(float64(got), 0) || math.IsNaN(float64(got)) {
		return 10
	}
	e := math.Log(float64(got / want))
	return math.Sqrt(e*e+fitNoise*fitNoise) - fitNoise
}

// Fit moves the parameters of start, each within a factor of 20 of where it is, to
// where the profile describes the points best; at is what a profile says about the point
// of that index. A parameter that is 0 stays 0. Every parameter is pulled towards its
// start: the square of its logarithm's move counts anchor times as much as the mean loss
// of a point. Fit is deterministic; points that nothing can be learned from are left out.
func Fit(start Profile, points []Point, anchor float64, at func(p Profile, point int) At) Profile {
	f := fit{points: points, anchor: anchor, at: at}
	for i, p := range points {
		if p.usable() {
			f.usable = append(f.usable, i)
		}
	}
	if len(f.usable) == 0 || !start.Known() {
		return start
	}
	_, first := start.parameters()
	fitted := start
	fitted = f.search(fitted, func(p *Profile) []*float64 { decode, _ := p.parameters(); return decode }, func(at At, point Point) float64 {
		if first != nil {
			return loss(at.ITL, point.ITL)
		}
		return loss(at.ITL, point.ITL) + loss(at.TTFT, point.TTFT)
	})
	if first != nil {
		fitted = f.search(fitted, func(p *Profile) []*float64 { _, first := p.parameters(); return first }, func(at At, point Point) float64 {
			return loss(at.TTFT, point.TTFT)
		})
	}
	return fitted
}

// fit is what the profile is fitted to.
type fit struct {
	points []Point
	// usable are the indexes of those that something can be learned from.
	usable []int
	anchor float64
	at     func(Profile, int) At
}

// search moves the chosen parameters of start, in logarithms.
func (f *fit) search(start Profile, choose func(*Profile) []*float64, miss func(At, Point) float64) Profile {
	candidate := start
	from, moved := choose(&start), choose(&candidate)
	apply := func(x []float64) (outside float64) {
		for i := range moved {
			bounded := math.Min(math.Max(x[i], -fitFactor), fitFactor)
			outside += math.Abs(x[i] - bounded)
			*moved[i] = *from[i] * math.Exp(bounded)
		}
		return outside
	}
	objective := func(x []float64) float64 {
		sum := apply(x)
		for _, move := range x {
			sum += f.anchor * move * move
		}
		for _, i := range f.usable {
			sum += miss(f.at(candidate, i), f.points[i]) / float64(len(f.usable))
		}
		return sum
	}
	x := make([]float64, len(from))
	for range fitRestarts {
		x = minimize(objective, x, fitStep, fitTolerance, fitLimit)
	}
	apply(x)
	return candidate
}
