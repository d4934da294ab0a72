package replay

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Source opens the requests of a run from their beginning: every policy gets the same.
type Source func() (workload.Stream, error)

// counted is the source, whose requests are counted as they are read.
func (s Source) counted(in *workload.Dispersion) Source {
	return func() (workload.Stream, error) {
		stream, err := s()
		if err != nil {
			return nil, err
		}
		return passed{Stream: in.Of(stream), from: stream}, nil
	}
}

// Load is what is asked of each model, minute by minute: Load[model][minute].
type Load [][]Minute

// minute is the grain of a Load.
const minute = time.Minute

// leastSpan is the least time over which a mean rate is taken: a last minute of a second
// or two would make a peak of chance.
const leastSpan = 10 * time.Second

// Minute is what arrives at a model within one minute. In the last one, which may be
// shorter, Length says for how long: to the end of the second of the last request of all
// models.
type Minute struct {
	Length time.Duration
	// Rate is the mean arrival rate, and Shape the mean tokens of the requests; without
	// requests both are zero. The rate of a last minute of less than ten seconds is
	// taken over ten seconds.
	Rate  capacity.Rate
	Shape capacity.TokenShape
	// Dispersion is the index of dispersion of the arrivals in the minutes around; 0
	// means unknown and counts as independent arrivals.
	Dispersion float64
}

// Measure reads all requests and says what they ask of the models.
func Measure(s *Scenario, source Source, seed uint64) (Load, error) {
	stream, err := source()
	if err != nil {
		return nil, err
	}
	deal, m := s.dealer(stream, seed), newMeter(len(s.Models))
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		model := deal(r)
		if model >= len(s.Models) {
			return nil, fmt.Errorf("there is a request of model %d; expected one of the %d of the scenario", model+1, len(s.Models))
		}
		m.add(model, r)
	}
	load := m.load()
	if load == nil {
		return nil, errors.New("the trace has no requests; expected at least one")
	}
	return load, nil
}

// meter measures a load request by request, in order of arrival.
type meter struct {
	// sums are by model and minute, counts the requests by model and beat.
	sums   [][]tally
	counts [][]float64
	last   time.Duration
	some   bool
}

// beat is the time over which requests are counted to see how they scatter: that of
// usual scrapes.
const beat = 15 * time.Second

// tally counts requests and their tokens.
type tally struct{ requests, input, output int64 }

func newMeter(models int) *meter {
	return &meter{sums: make([][]tally, models), counts: make([][]float64, models)}
}

// add counts one request.
func (m *meter) add(model int, r workload.Request) {
	m.last, m.some = max(m.last, r.Arrival), true
	at := int(r.Arrival / minute)
	for len(m.sums[model]) <= at {
		m.sums[model] = append(m.sums[model], tally{})
	}
	for len(m.counts[model]) <= int(r.Arrival/beat) {
		m.counts[model] = append(m.counts[model], 0)
	}
	m.counts[model][r.Arrival/beat]++
	t := &m.sums[model][at]
	t.requests++
	t.input += int64(r.Input)
	t.output += int64(r.Output)
}

// load is what was counted; nil without any request.
func (m *meter) load() Load {
	if !m.some {
		return nil
	}
	end := m.last.Truncate(time.Second) + time.Second
	load := make(Load, len(m.sums))
	for i, sums := range m.sums {
		for from := time.Duration(0); from < end; from += minute {
			length := min(minute, end-from)
			var t tally
			if at := int(from / minute); at < len(sums) {
				t = sums[at]
			}
			load[i] = append(load[i], t.minute(length))
			load[i][len(load[i])-1].Dispersion = dispersion(m.counts[i], from)
		}
	}
	return load
}

// scatterSpan is the time before and after the beginning of a minute that its dispersion
// is taken from.
const scatterSpan = 5 * time.Minute

// medianOfScatter is the median of the square of a standard normal variable.
const medianOfScatter = 0.4549

// dispersion is the index of dispersion of counts around a time; 0 when there are not
// enough. The squared difference of neighbours over their sum has the index as its mean,
// and for many requests its median is that share of it. The median is taken because a
// step or a ramp, which is no scatter, changes few of them.
func dispersion(counts []float64, around time.Duration) float64 {
	from, to := max(0, int((around-scatterSpan)/beat)), min(len(counts)-1, int((around+scatterSpan)/beat))
	var seen []float64
	for i := from; i+1 <= to; i++ {
		if both := counts[i] + counts[i+1]; both > 0 {
			seen = append(seen, (counts[i+1]-counts[i])*(counts[i+1]-counts[i])/both)
		}
	}
	if len(seen) < leastPairs {
		return 0
	}
	slices.Sort(seen)
	return max(1, seen[len(seen)/2]/medianOfScatter)
}

// leastPairs is the number of differences below which nothing is said.
const leastPairs = 4

// minute is the tally as the mean over a time.
func (t tally) minute(length time.Duration) Minute {
	m := Minute{Length: length}
	if t.requests == 0 {
		return m
	}
	m.Rate = capacity.Rate(float64(t.requests) / max(length, leastSpan).Seconds())
	m.Shape = capacity.TokenShape{
		Input:  capacity.Tokens(float64(t.input) / float64(t.requests)),
		Output: capacity.Tokens(float64(t.output) / float64(t.requests)),
	}
	return m
}

// Mean is the mean token shape of all requests of a model; zero without any.
func (l Load) Mean(model int) capacity.TokenShape {
	requests, input, output := 0.0, 0.0, 0.0
	for _, m := range l[model] {
		n := float64(m.Rate) * m.Length.Seconds()
		requests += n
		input += n * float64(m.Shape.Input)
		output += n * float64(m.Shape.Output)
	}
	if requests == 0 {
		return capacity.TokenShape{}
	}
	return capacity.TokenShape{Input: capacity.Tokens(input / requests), Output: capacity.Tokens(output / requests)}
}

// dealer says which model each request of a stream is for: what the stream knows, else
// what is dealt.
func (s *Scenario) dealer(stream workload.Stream, seed uint64) func(workload.Request) int {
	deal := s.deal(seed)
	return func(r workload.Request) int {
		if model, known := modelOf(stream); known {
			return model
		}
		return deal(r)
	}
}

// randomDeal is the stream of random numbers by which requests find their models.
const randomDeal = 0x6465616c

// deal returns what says which model each request is for, when it is asked about all of
// them in their order. The models are drawn by their shares: the same seed deals the
// same. One model gets all.
func (s *Scenario) deal(seed uint64) func(workload.Request) int {
	last := len(s.Models) - 1
	if last <= 0 {
		return func(workload.Request) int { return 0 }
	}
	upTo, sum := make([]float64, len(s.Models)), 0.0
	for m := range s.Models {
		share := 1.0
		if s.Models[m].Share > 0 {
			share = s.Models[m].Share
		}
		sum += share
		upTo[m] = sum
	}
	random := rand.New(rand.NewPCG(seed, randomDeal))
	return func(workload.Request) int {
		drawn := sum * random.Float64()
		for m := range last {
			if drawn < upTo[m] {
				return m
			}
		}
		return last
	}
}
