package workload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"
)

// Point is one corner of a rate that changes piecewise linearly.
type Point struct {
	At time.Duration
	// Rate is the number of requests per second at that time.
	Rate float64
}

// Lengths is a log-normal distribution of token counts, given by what people
// know of it.
type Lengths struct {
	// Mean is the mean number of tokens before clamping.
	Mean float64
	// Variation is the coefficient of variation, standard deviation over mean; 0
	// makes every length the mean.
	Variation float64
	// Max is the largest length: longer ones are clamped to it, and those below 1
	// to 1. Clamping moves the mean when Max is not far above it.
	Max int
}

// LengthsOf is the log-normal distribution with that mean and 99th percentile, as
// far as there is one: a log-normal percentile is at most some fifteen times the
// mean, which is where the result stays for a larger one.
func LengthsOf(mean, p99 float64, most int) Lengths {
	// With s for sigma, p99/mean = exp(z*s - s^2/2): s is the smaller root.
	const z = 2.3263478740408408
	s := z - math.Sqrt(max(z*z-2*math.Log(max(p99/mean, 1)), 0))
	return Lengths{Mean: mean, Variation: math.Sqrt(math.Expm1(s * s)), Max: most}
}

// Synthetic describes arrivals whose rate follows the points linearly, from the
// first to the last of them.
type Synthetic struct {
	Rate []Point
	// Variation is the coefficient of variation of the gaps between arrivals while the
	// rate is level: 0 and 1 mean a Poisson process, more is burstier. The gaps are
	// those of a gamma renewal process that was running before the stream began.
	Variation     float64
	Input, Output Lengths
	// Seed decides every random number: the same description gives the same
	// requests.
	Seed uint64
}

// NewSynthetic starts a stream. It refuses points out of order, negative or
// infinite rates and impossible lengths.
func NewSynthetic(s Synthetic) (Stream, error) {
	if err := checkRate(s.Rate); err != nil {
		return nil, fmt.Errorf("synthetic arrivals: %w", err)
	}
	if err := s.Input.check(); err != nil {
		return nil, fmt.Errorf("synthetic arrivals: input tokens: %w", err)
	}
	if err := s.Output.check(); err != nil {
		return nil, fmt.Errorf("synthetic arrivals: output tokens: %w", err)
	}
	if !(s.Variation >= 0) || s.Variation > maxVariation {
		return nil, fmt.Errorf("synthetic arrivals: the coefficient of variation of the gaps is %v; expected a number from 0 to %d", s.Variation, maxVariation)
	}
	p := &arrivals{
		points:  s.Rate,
		at:      s.Rate[0].At,
		gaps:    rand.New(rand.NewPCG(s.Seed, randomArrivals)),
		lengths: rand.New(rand.NewPCG(s.Seed, randomLengths)),
		input:   s.Input.sampler(),
		output:  s.Output.sampler(),
	}
	if s.Variation > 0 && s.Variation != 1 {
		p.shape = 1 / (s.Variation * s.Variation)
	}
	return p, nil
}

// maxVariation bounds the burstiness of synthetic arrivals: beyond it they would
// be one burst.
const maxVariation = 1000

func checkRate(points []Point) error {
	if len(points) < 2 {
		return errors.New("the rate has fewer than two points")
	}
	for i, p := range points {
		if !(p.Rate >= 0) || math.IsInf(p.Rate, 1) {
			return fmt.Errorf("the rate at %s is %v; expected a number of at least 0", p.At, p.Rate)
		}
		if p.At < 0 {
			return fmt.Errorf("the rate has a point at %s; expected times of at least 0", p.At)
		}
		if i > 0 && p.At < points[i-1].At {
			return fmt.Errorf("the rate has a point at %s after one at %s; expected them in order of time", p.At, points[i-1].At)
		}
	}
	return nil
}

func (l Lengths) check() error {
	switch {
	case !(l.Mean >= 1) || math.IsInf(l.Mean, 1):
		return fmt.Errorf("the mean is %v; expected at least 1", l.Mean)
	case !(l.Variation >= 0) || math.IsInf(l.Variation, 1):
		return fmt.Errorf("the coefficient of variation is %v; expected at least 0", l.Variation)
	case float64(l.Max) < l.Mean:
		return fmt.Errorf("the largest length is %d; expected at least the mean, %v", l.Max, l.Mean)
	}
	return nil
}

// sampler turns mean m and variation c into the parameters of the log-normal
// distribution: sigma^2 = ln(1 + c^2) and mu = ln(m) - sigma^2/2.
func (l Lengths) sampler() func(*rand.Rand) int {
	variance := math.Log1p(l.Variation * l.Variation)
	mu, sigma := math.Log(l.Mean)-variance/2, math.Sqrt(variance)
	return func(random *rand.Rand) int {
		x := math.Round(math.Exp(mu + sigma*random.NormFloat64()))
		return int(min(max(x, 1), float64(l.Max)))
	}
}

type arrivals struct {
	points []Point
	// at is the last arrival, within the segment from points[0] to points[1].
	at            time.Duration
	gaps, lengths *rand.Rand
	input, output func(*rand.Rand) int
	// shape is that of the gamma distribution of the gaps; 0 for a Poisson process.
	shape float64
	// running is set after the first arrival.
	running bool
}

// gap draws the expected number of arrivals from one to the next, which is 1 in
// the mean. What is left of the gap in which the stream begins is any part of
// one that is met in proportion to its length.
func (p *arrivals) gap() float64 {
	if p.shape == 0 {
		return p.gaps.ExpFloat64()
	}
	if !p.running {
		p.running = true
		return p.gaps.Float64() * gamma(p.gaps, p.shape+1) / p.shape
	}
	return gamma(p.gaps, p.shape) / p.shape
}

// Next implements Stream. The next arrival is where the expected number of
// arrivals since the last one reaches the gap that was drawn.
func (p *arrivals) Next() (Request, error) {
	due := p.gap()
	for len(p.points) > 1 {
		from, to := p.points[0], p.points[1]
		length := (to.At - from.At).Seconds()
		since := (p.at - from.At).Seconds()
		slope := 0.0
		if length > 0 {
			slope = (to.Rate - from.Rate) / length
		}
		rate := from.Rate + slope*since
		rest := (length - since) * (rate + to.Rate) / 2
		if due <= rest && rest > 0 {
			wait := time.Duration(crossing(due, rate, slope) * float64(time.Second))
			p.at = min(p.at+wait, to.At)
			return Request{Arrival: p.at, Input: p.input(p.lengths), Output: p.output(p.lengths)}, nil
		}
		due -= rest
		p.at = to.At
		p.points = p.points[1:]
	}
	return Request{}, io.EOF
}

// crossing is the time x at which rate*x + slope*x^2/2 reaches due. This form of
// the root is exact for a slope of 0 and for a rate of 0.
func crossing(due, rate, slope float64) float64 {
	if due <= 0 {
		return 0
	}
	root := math.Sqrt(max(rate*rate+2*slope*due, 0))
	return 2 * due / (rate + root)
}
