package workload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// History is what was counted of requests, interval by interval.
type History struct {
	// Step is the length of an interval.
	Step      time.Duration
	Intervals []Interval
	// Input and Output say how lengths vary within an interval; a variation of 0 means that
	// all of them have the mean. Their own Mean is not read.
	Input, Output Lengths
	// Seed decides every random number: the same history gives the same requests.
	Seed uint64
}

// Interval is what was counted in one interval.
type Interval struct {
	// Arrived is the number of requests. What one interval lacks of a whole request, or of
	// none, is made up for by the next ones.
	Arrived float64
	// Input and Output are the mean tokens of the requests. NaN means that none were
	// counted: those of the nearest interval that knows them are taken, earlier ones first.
	Input, Output float64
}

// NewHistory starts a stream of requests with the numbers and the summed lengths of the
// history. Within an interval they arrive evenly at random. It refuses a history in which no
// interval knows the lengths.
func NewHistory(h History) (Stream, error) {
	if h.Step < time.Millisecond {
		return nil, fmt.Errorf("the intervals of a history are %s long; expected at least 1ms", h.Step)
	}
	p := &history{
		History: h, times: rand.New(rand.NewPCG(h.Seed, randomArrivals)), lengths: rand.New(rand.NewPCG(h.Seed, randomLengths)),
	}
	input, output := make([]float64, len(h.Intervals)), make([]float64, len(h.Intervals))
	for i := range h.Intervals {
		input[i], output[i] = h.Intervals[i].Input, h.Intervals[i].Output
	}
	switch {
	case !filled(input):
		return nil, errors.New("no interval of the history knows the mean input tokens of its requests")
	case !filled(output):
		return nil, errors.New("no interval of the history knows the mean output tokens of its requests")
	}
	p.input, p.output = sideOf(h.Input, input), sideOf(h.Output, output)
	return p, nil
}

// filled puts the nearest known mean, earlier ones first, in the place of unknown ones. It
// reports false when there is none.
func filled(means []float64) bool {
	first := slices.IndexFunc(means, func(m float64) bool { return m >= 1 && !math.IsInf(m, 1) })
	if first < 0 {
		return false
	}
	last := means[first]
	for i, m := range means {
		if !(m >= 1) || math.IsInf(m, 1) {
			means[i] = last
		}
		last = means[i]
	}
	return true
}

// side is the input or the output of the requests.
type side struct {
	means []float64
	mu    float64
	sigma float64
	most  float64
	// owed are the tokens that requests before should have had more than they have.
	owed float64
}

func sideOf(vary Lengths, means []float64) side {
	variance := math.Log1p(vary.Variation * vary.Variation)
	s := side{means: means, mu: -variance / 2, sigma: math.Sqrt(variance), most: math.MaxInt32}
	if vary.Max > 0 {
		s.most = float64(vary.Max)
	}
	return s
}

// draw are n lengths of an interval. They are scaled so that their sum is that of the
// interval; what rounding and the largest length leave is owed to the next.
func (s *side) draw(random *rand.Rand, n, interval int) []int {
	weights, sum := make([]float64, n), 0.0
	for i := range weights {
		weights[i] = math.Exp(s.mu + s.sigma*random.NormFloat64())
		sum += weights[i]
	}
	lengths := make([]int, n)
	for i := range lengths {
		wanted := weights[i]/sum*float64(n)*s.means[interval] + s.owed
		length := min(max(math.Round(wanted), 1), s.most)
		s.owed = wanted - length
		lengths[i] = int(length)
	}
	return lengths
}

type history struct {
	History
	times, lengths *rand.Rand
	input, output  side
	// interval is the next one, and counted what came before it.
	interval int
	counted  float64
	made     int

	ready []Request
	next  int
}

// Next implements Stream.
func (h *history) Next() (Request, error) {
	for h.next == len(h.ready) {
		if h.interval == len(h.Intervals) {
			return Request{}, io.EOF
		}
		h.fill()
	}
	r := h.ready[h.next]
	h.next++
	return r, nil
}

// fill draws the requests of the next interval.
func (h *history) fill() {
	i := h.interval
	h.interval++
	h.ready, h.next = h.ready[:0], 0
	if arrived := h.Intervals[i].Arrived; !math.IsNaN(arrived) && !math.IsInf(arrived, 0) {
		h.counted += arrived
	}
	n := int(math.Round(h.counted)) - h.made
	if n <= 0 {
		return
	}
	h.made += n
	start := time.Duration(i) * h.Step
	arrivals := make([]time.Duration, n)
	for k := range arrivals {
		arrivals[k] = start + time.Duration(h.times.Int64N(int64(h.Step)))
	}
	slices.Sort(arrivals)
	input, output := h.input.draw(h.lengths, n, i), h.output.draw(h.lengths, n, i)
	for k, at := range arrivals {
		h.ready = append(h.ready, Request{Arrival: at, Input: input[k], Output: output[k]})
	}
}

// Grown is what a counter grew by from each instant to the next one, as growth[i] from i to
// i+1; values are NaN where nobody knows them, and what grew over several instants is spread
// evenly. A counter that fell began anew at zero. Where it is first known, it is new and
// grew from zero since the instant before, unless that is the first one that anybody knows
// (known).
func Grown(values []float64, known int) []float64 {
	return steps(values, known, func(before, now float64) float64 {
		if now < before {
			return now
		}
		return now - before
	})
}

// Changed is the same for what may fall, such as the requests in flight.
func Changed(values []float64, known int) []float64 {
	return steps(values, known, func(before, now float64) float64 { return now - before })
}

func steps(values []float64, known int, change func(before, now float64) float64) []float64 {
	growth := make([]float64, max(0, len(values)-1))
	last := -1
	for i, now := range values {
		if math.IsNaN(now) {
			continue
		}
		switch {
		case last >= 0:
			each := change(values[last], now) / float64(i-last)
			for k := last; k < i; k++ {
				growth[k] += each
			}
		case i > known:
			growth[i-1] += now
		}
		last = i
	}
	return growth
}
