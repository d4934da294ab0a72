package workload

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// ServeGenFiles are the three files of a ServeGen trace.
type ServeGenFiles struct {
	// Rate is what all clients ask together, window by window.
	Rate File
	// Clients is what each client asks, and how bursty.
	Clients File
	// Lengths are the quantiles of each client's input and output tokens.
	Lengths File
}

// ServeGen makes the requests that the files of a ServeGen trace describe, in the
// way of the published generator: in every window each client asks as often as
// its rate says, with gaps from its distribution that are scaled so that they
// fill the window. The rates of the clients are scaled so that they sum to the
// rate of all.
//
// Two things differ. The gaps close a circle that is turned by chance, so that no
// client's burst sticks to the border of a window. And a client whose lengths are
// not known draws, for every request, those of one that has them, with the
// probability of its rate in that window.
//
// With OpenOptions.Thin the requests that are not kept are never made, so a tenth
// costs far less than all. A client whose gaps have a coefficient of variation c
// has one of sqrt(p*c^2 + 1 - p) when thinned to p, the same as behind Rate.
//
// Every window and client has its own random numbers, so what happens in a window
// does not depend on where the stream began. It holds the description of the
// whole part of the trace and the arrivals of one window.
type ServeGen struct {
	windows []window
	length  time.Duration
	lengths []shapes
	thin    float64
	seed    uint64
	// from and until bound the part of the trace.
	from, until time.Duration

	// merge holds the clients of the present window that have requests left: a heap by
	// the next arrival.
	merge []*run
	// runs are those of the present window and room for more.
	runs []*run
	// arrivals are those of the whole window, client after client.
	arrivals []time.Duration
	// sums are those of one client's gaps, up to each request that is kept.
	sums []float64
	mix  mix
}

// NewServeGen reads the three files. What it returns needs them no longer.
func NewServeGen(f ServeGenFiles, o OpenOptions) (*ServeGen, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	windows, length, err := readRates(f.Rate)
	if err != nil {
		return nil, err
	}
	s := &ServeGen{length: length, thin: o.Thin, seed: o.Seed}
	if s.thin == 0 {
		s.thin = 1
	}
	// The trace begins with its first window, whatever that is called.
	s.until = windows[len(windows)-1].start + length
	s.from = windows[0].start + min(o.From, s.until-windows[0].start)
	if o.Length > 0 {
		s.until = s.from + min(o.Length, s.until-s.from)
	}
	part := func(w window) bool { return w.start+length > s.from && w.start < s.until }
	if err := readClients(f.Clients, windows, length, part); err != nil {
		return nil, err
	}
	if s.lengths, err = readLengths(f.Lengths); err != nil {
		return nil, err
	}
	for _, w := range windows {
		if !part(w) || w.rate == 0 {
			continue
		}
		if len(w.clients) == 0 {
			return nil, fmt.Errorf("%s:%d: the window %d has %v requests per second, but no client in %s; expected at least one with a rate",
				f.Rate.Name, w.line, int(w.start.Seconds()), w.rate, f.Clients.Name)
		}
		s.windows = append(s.windows, w)
	}
	return s, nil
}

// Next implements Stream.
func (s *ServeGen) Next() (Request, error) {
	for {
		for len(s.merge) == 0 {
			if len(s.windows) == 0 {
				return Request{}, io.EOF
			}
			s.begin(s.windows[0])
			s.windows = s.windows[1:]
		}
		r := s.merge[0]
		at := r.at
		of := r.lengths
		if of == nil {
			of = s.mix.draw(r.random)
		}
		request := Request{Arrival: at - s.from, Input: of.input.draw(r.random), Output: of.output.draw(r.random)}
		if r.next == r.end {
			last := len(s.merge) - 1
			s.merge[0] = s.merge[last]
			s.merge = s.merge[:last]
		} else {
			s.advance(r)
		}
		s.down(0)
		switch {
		case at >= s.until:
			s.merge, s.windows = nil, nil
		case at >= s.from:
			return request, nil
		}
	}
}

// begin draws the arrivals of a window.
func (s *ServeGen) begin(w window) {
	shapes := s.shapesAt(w.start)
	s.mix = newMix(w.clients, shapes)
	s.arrivals = s.arrivals[:0]
	sum := 0.0
	for _, c := range w.clients {
		sum += c.rate
	}
	for i, c := range w.clients {
		if i == len(s.runs) {
			s.runs = append(s.runs, newRun())
		}
		r := s.runs[i]
		r.reset(c.id, w.start, s.seed)
		r.lengths = nil
		if of := shapes.of[c.id]; of.known() {
			r.lengths = of
		}
		r.next = len(s.arrivals)
		s.arrive(r, c, c.rate/sum*w.rate*s.length.Seconds(), w.start)
		if r.end = len(s.arrivals); r.next < r.end {
			s.merge = append(s.merge, r)
		}
	}
	for _, r := range s.merge {
		s.advance(r)
	}
	for i := len(s.merge)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
}

// advance takes the next arrival of a run.
func (s *ServeGen) advance(r *run) {
	r.at = s.arrivals[r.next]
	r.next++
}

// shapesAt are the lengths from the last start before, or else the first of all.
func (s *ServeGen) shapesAt(start time.Duration) shapes {
	found := s.lengths[0]
	for _, l := range s.lengths[1:] {
		if l.start > start {
			break
		}
		found = l
	}
	return found
}

// down restores the order of the heap from one place on.
func (s *ServeGen) down(i int) {
	for {
		least, left := i, 2*i+1
		for child := left; child <= left+1 && child < len(s.merge); child++ {
			if s.merge[child].before(s.merge[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		s.merge[i], s.merge[least] = s.merge[least], s.merge[i]
		i = least
	}
}

// run is what one client asks within one window.
type run struct {
	client int
	source *rand.PCG
	random *rand.Rand
	// at is the arrival that is due; those after it stand in the window's arrivals from
	// next up to end.
	at        time.Duration
	next, end int
	// lengths are those of the client; nil if they are not known.
	lengths *lengthsOf
}

func newRun() *run {
	source := rand.NewPCG(0, 0)
	return &run{source: source, random: rand.New(source)}
}

// reset gives a run the random numbers of its client and window.
func (r *run) reset(client int, start time.Duration, seed uint64) {
	r.client = client
	// Whole seconds and 31 bits of a client never meet in one key.
	key := uint64(client)<<32 | uint64(start/time.Second)
	r.source.Seed(seed, mixed(mixed(key)+randomClients))
}

func (r *run) before(other *run) bool {
	return r.at < other.at || r.at == other.at && r.client < other.client
}

// mixed spreads the bits of a key over all of a number, so that near keys give
// seeds that are far apart.
func mixed(x uint64) uint64 {
	draws := capacity.Draws(x)
	return draws.Next()
}

// arrive draws the arrivals of a client that asks so many times within a window.
// The mean number need not be whole: the rest of it is the probability of one more.
//
// The gaps around the circle are those of a renewal process, divided by their
// sum. The gap from one kept request to the next is the sum of as many gaps as a
// geometric number says; of gamma gaps with the shape k, m are one of shape m*k.
func (s *ServeGen) arrive(r *run, c client, mean float64, start time.Duration) {
	n := int(mean)
	if r.random.Float64() < mean-math.Floor(mean) {
		n++
	}
	s.sums = s.sums[:0]
	sum := 0.0
	for i := 0; i < n; {
		m := 1
		if s.thin < 1 {
			m += int(min(r.random.ExpFloat64()/-math.Log1p(-s.thin), float64(n)))
		}
		sum += c.gaps(r.random, min(m, n-i))
		if i += m; i <= n {
			s.sums = append(s.sums, sum)
		}
	}
	s.turn(sum, r.random.Float64(), start)
}

// gaps draws the sum of m gaps in a unit of its own.
func (c client) gaps(random *rand.Rand, m int) float64 {
	if !c.weibull {
		return gamma(random, float64(m)*c.shape)
	}
	sum := 0.0
	for range m {
		sum += weibull(random, c.shape)
	}
	return sum
}

// turn places the sums of gaps around the window and turns them by a part of it.
func (s *ServeGen) turn(sum, part float64, start time.Duration) {
	if sum == 0 {
		// All gaps are too small for a number: one burst.
		sum = 1
	}
	// What the turn moves beyond the end of the window comes first.
	past := 0
	for past < len(s.sums) && s.sums[past]/sum+part < 1 {
		past++
	}
	place := func(sums []float64, turned float64) {
		for _, at := range sums {
			at := time.Duration((at/sum + turned) * float64(s.length))
			s.arrivals = append(s.arrivals, start+max(0, min(at, s.length-1)))
		}
	}
	place(s.sums[past:], part-1)
	place(s.sums[:past], part)
}

// mix draws lengths for clients that have none: those of the others, each with
// the probability of its rate.
type mix struct {
	of []*lengthsOf
	// upTo are the cumulated weights.
	upTo []float64
}

// newMix weighs the clients of a window whose lengths are known. If none of them
// is active, every client with known lengths weighs the same.
func newMix(clients []client, lengths shapes) mix {
	var m mix
	sum := 0.0
	for _, c := range clients {
		if of := lengths.of[c.id]; of.known() {
			sum += c.rate
			m.of, m.upTo = append(m.of, of), append(m.upTo, sum)
		}
	}
	if len(m.of) > 0 {
		return m
	}
	for _, id := range lengths.donors() {
		sum++
		m.of, m.upTo = append(m.of, lengths.of[id]), append(m.upTo, sum)
	}
	return m
}

func (m *mix) draw(random *rand.Rand) *lengthsOf {
	x := random.Float64() * m.upTo[len(m.upTo)-1]
	i, _ := slices.BinarySearch(m.upTo, x)
	return m.of[min(i, len(m.of)-1)]
}
