package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The streams of random numbers that are drawn from one seed; each user has its
// own, so that two of them with the same seed stay independent.
const (
	randomCopies = iota + 1
	randomArrivals
	randomLengths
	randomSteps
	randomClients
	randomThinned
)

// MaxFactor bounds Rate, so that one second of copies fits into memory.
const MaxFactor = 10_000

// Rate multiplies the arrivals of a stream without compressing its time: every
// request comes factor times. The first copy keeps its arrival, the others fall
// anywhere in the same second of the stream. Of a fraction, the last copy exists
// with that probability; below 1 this thins the stream out. The factor must be
// above 0 and at most MaxFactor.
func Rate(stream Stream, factor float64, seed uint64) (Stream, error) {
	if !(factor > 0) || factor > MaxFactor {
		return nil, fmt.Errorf("the rate is multiplied by %v; expected a number above 0 and at most %d", factor, MaxFactor)
	}
	return &multiplied{
		stream: stream,
		whole:  int(factor),
		rest:   factor - math.Floor(factor),
		random: rand.New(rand.NewPCG(seed, randomCopies)),
	}, nil
}

type multiplied struct {
	stream Stream
	whole  int
	rest   float64
	random *rand.Rand

	// ready holds the copies of one second in order of arrival, from next on.
	ready []Request
	next  int
	// ahead is the first request of a later second.
	ahead    Request
	hasAhead bool
	err      error
}

// Next implements Stream.
func (m *multiplied) Next() (Request, error) {
	for m.next == len(m.ready) {
		if m.err != nil {
			return Request{}, m.err
		}
		m.fill()
	}
	r := m.ready[m.next]
	m.next++
	return r, nil
}

// fill reads one second of the stream and makes its copies. An error ends the
// stream only after what was read before it.
func (m *multiplied) fill() {
	m.ready, m.next = m.ready[:0], 0
	if !m.hasAhead {
		if m.ahead, m.err = m.stream.Next(); m.err != nil {
			return
		}
	}
	second := m.ahead.Arrival.Truncate(time.Second)
	m.copies(m.ahead, second)
	for m.hasAhead = false; ; {
		r, err := m.stream.Next()
		if err != nil {
			m.err = err
			break
		}
		if r.Arrival >= second+time.Second {
			m.ahead, m.hasAhead = r, true
			break
		}
		m.copies(r, second)
	}
	slices.SortStableFunc(m.ready, func(a, b Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

func (m *multiplied) copies(r Request, second time.Duration) {
	n := m.whole
	if m.rest > 0 && m.random.Float64() < m.rest {
		n++
	}
	for i := range n {
		if i > 0 {
			r.Arrival = second + time.Duration(m.random.Int64N(int64(time.Second)))
		}
		m.ready = append(m.ready, r)
	}
}
