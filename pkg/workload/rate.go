package workload

import (
	"cmp"
	"fmt"
	"maps"
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
	randomExchanged
)

// The bounds of Rate, so that what is read ahead fits into memory: up to one and a
// half times the spread, and every copy of it.
const (
	MaxFactor = 10_000
	MinSpread = time.Second
	MaxSpread = time.Hour
)

// DefaultSpread is over what time copies are spread where nobody says it: short against
// the minutes in which the rate of a service changes, and long enough that the copies
// of a request hardly ever meet within a second.
const DefaultSpread = time.Minute

// Rate multiplies the arrivals of a stream without compressing its time: every
// request comes factor times. The first copy is the request as it is. The others
// arrive anywhere within a time around it, as if they came from other clients of the
// same service: independently of each other, in a window of the length of the spread
// around the middle of the request's second. Their lengths are exchanged among
// neighbours, which are those up to half a spread away. So rates and lengths stay what
// they are over times longer than the spread; within it they are smoothed.
//
// No copy arrives before the stream's beginning or after the end of the second of its
// last request. One that would is mirrored at that end, which keeps the rate there what
// it is: an even stream stays even to its ends.
//
// What prompts begin with moves with their lengths. Copies of the same number share the
// beginnings that their requests share; no two others do.
//
// With a spread of a second the copies of a request stay in its very second, and keep
// their own lengths: factor requests at a time, so bursts as no service of that size
// has them.
//
// Of a fraction, the last copy exists with that probability; below 1 this thins the
// stream out. The factor must be above 0 and at most MaxFactor, the spread from
// MinSpread to MaxSpread.
func Rate(stream Stream, factor float64, spread time.Duration, seed uint64) (Stream, error) {
	if !(factor > 0) || factor > MaxFactor {
		return nil, fmt.Errorf("the rate is multiplied by %v; expected a number above 0 and at most %d", factor, MaxFactor)
	}
	if err := CheckSpread(spread); err != nil {
		return nil, err
	}
	return &multiplied{
		stream: stream,
		whole:  int(factor),
		rest:   factor - math.Floor(factor),
		spread: spread,
		random: rand.New(rand.NewPCG(seed, randomCopies)),
		moved:  rand.New(rand.NewPCG(seed, randomExchanged)),
	}, nil
}

// CheckSpread says what is wrong with a spread.
func CheckSpread(spread time.Duration) error {
	if spread < MinSpread || spread > MaxSpread {
		return fmt.Errorf("the copies of a request are spread over %s; expected from %s to %s", spread, MinSpread, MaxSpread)
	}
	return nil
}

// multiplied makes two lists of the copies, one in order of arrival and one in that in
// which their lengths are given out: by the arrival, moved by up to half a spread. The
// first copy to arrive gets the first lengths, and so on.
type multiplied struct {
	stream Stream
	whole  int
	rest   float64
	spread time.Duration
	// random draws the copies and their arrivals, moved how far their lengths move.
	random, moved *rand.Rand

	arrivals, lengths ordered
	// ahead is the first request of a second that is not copied yet.
	ahead    Request
	hasAhead bool
	err      error
}

// ordered brings requests into an order that is known up to a front, which moves on.
type ordered struct {
	// pending are beyond the front, by their seconds and there in the order in which they
	// came; from is the first of these seconds that may have any.
	pending map[time.Duration][]placed
	from    time.Duration
	// ready are before the front, and handed out from next on.
	ready []placed
	next  int
}

// placed is a request in one of the lists.
type placed struct {
	Request
	// by is what the list is ordered by; among the arrivals, when the copy arrives.
	by time.Duration
	// copy is the number of the copy; that of the request itself is 0.
	copy int
}

// Next implements Stream.
func (m *multiplied) Next() (Request, error) {
	for {
		if m.arrivals.some() {
			first := m.arrivals.ready[m.arrivals.next]
			switch {
			case first.copy == 0:
				m.arrivals.next++
				return first.Request, nil
			case m.lengths.some():
				from := m.lengths.ready[m.lengths.next]
				m.arrivals.next++
				m.lengths.next++
				return Request{Arrival: first.by, Input: from.Input, Output: from.Output, Prompt: from.Prompt.copied(from.copy)}, nil
			}
		}
		if m.err != nil {
			return Request{}, m.err
		}
		m.fill()
	}
}

// fill reads one second of the stream and makes its copies. An error ends the
// stream only after what was read before it.
func (m *multiplied) fill() {
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
			m.end(second + time.Second)
			return
		}
		if r.Arrival >= second+time.Second {
			m.ahead, m.hasAhead = r, true
			break
		}
		m.copies(r, second)
	}
	// No copy of a later request can come before these.
	front := m.ahead.Arrival.Truncate(time.Second) - m.reach()
	m.arrivals.moveTo(front)
	m.lengths.moveTo(front - m.reach())
}

// reach is how far before its second, and after it, a copy may arrive.
func (m *multiplied) reach() time.Duration { return (m.spread - time.Second) / 2 }

func (m *multiplied) copies(r Request, second time.Duration) {
	n := m.whole
	if m.rest > 0 && m.random.Float64() < m.rest {
		n++
	}
	for i := range n {
		if i == 0 {
			m.arrivals.add(placed{Request: r, by: r.Arrival})
			continue
		}
		at := mirrored(second-m.reach()+time.Duration(m.random.Int64N(int64(m.spread))), math.MaxInt64)
		m.arrivals.add(placed{Request: r, by: at, copy: i})
		if reach := m.reach(); reach > 0 {
			at = mirrored(at-reach+time.Duration(m.moved.Int64N(int64(2*reach))), math.MaxInt64)
		}
		m.lengths.add(placed{Request: r, by: at, copy: i})
	}
}

// end is told where the stream ends: nothing comes after it.
func (m *multiplied) end(end time.Duration) {
	m.arrivals.end(end)
	m.lengths.end(end)
}

// mirrored is a time, thrown back at 0 and at the end until it lies between them.
func mirrored(t, end time.Duration) time.Duration {
	for t < 0 || t >= end {
		if t < 0 {
			t = -1 - t
		} else {
			t = 2*end - 1 - t
		}
	}
	return t
}

func (o *ordered) some() bool { return o.next < len(o.ready) }

func (o *ordered) add(p placed) {
	second := p.by.Truncate(time.Second)
	if len(o.pending) == 0 || second < o.from {
		o.from = second
	}
	if o.pending == nil {
		o.pending = map[time.Duration][]placed{}
	}
	o.pending[second] = append(o.pending[second], p)
}

// moveTo makes ready the seconds that are over at the front. Equals stay in the order in
// which they came.
func (o *ordered) moveTo(front time.Duration) {
	if 2*o.next > len(o.ready) {
		o.ready = slices.Delete(o.ready, 0, o.next)
		o.next = 0
	}
	for ; len(o.pending) > 0 && o.from+time.Second <= front; o.from += time.Second {
		o.append(o.pending[o.from])
		delete(o.pending, o.from)
	}
}

// end makes ready all that is left, mirrored at the end.
func (o *ordered) end(end time.Duration) {
	var left []placed
	for _, second := range slices.Sorted(maps.Keys(o.pending)) {
		for _, p := range o.pending[second] {
			p.by = mirrored(p.by, end)
			left = append(left, p)
		}
	}
	o.pending = nil
	o.append(left)
}

func (o *ordered) append(all []placed) {
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.by, b.by) })
	o.ready = append(o.ready, all...)
}
