package workload

import "time"

// Index is an index of dispersion of counts: the variance of the numbers of requests
// that arrive in equal times, over their mean. It is 1 for arrivals that know nothing
// of each other (Poisson), and so many times larger as requests come so many at a time.
type Index struct {
	// Seconds is the length of the times.
	Seconds float64 `json:"seconds"`
	Index   float64 `json:"index"`
}

// scales are the times in which Dispersion counts.
var scales = [...]time.Duration{time.Second, 10 * time.Second, time.Minute}

// Dispersion measures how the arrivals of a stream scatter, in 1, 10 and 60 seconds. It
// holds no request.
//
// The variance is half the mean squared difference of neighbouring counts (with it the
// index is the Allan factor: D. W. Allan, Proc. IEEE 54, 1966), so that a rate that
// changes slowly, as that of a day does, is no scatter.
type Dispersion struct {
	counts [len(scales)]counts
}

// counts are those of one scale.
type counts struct {
	// at is which of the times is counted now, now how many arrived in it, and before
	// how many in the one before.
	at          int64
	now, before float64
	// squares is the sum of the squared differences of neighbours, and total that of their
	// counts.
	squares, total float64
}

// Add counts one request. Requests come in order of arrival.
func (d *Dispersion) Add(arrival time.Duration) {
	for i, scale := range scales {
		c := &d.counts[i]
		for at := int64(arrival / scale); c.at < at; {
			c.next()
		}
		c.now++
	}
}

// next ends the time that is counted.
func (c *counts) next() {
	if c.at > 0 {
		c.squares += (c.now - c.before) * (c.now - c.before)
		c.total += c.now + c.before
	}
	c.before, c.now = c.now, 0
	c.at++
}

// Of is the stream, whose requests are counted as they pass.
func (d *Dispersion) Of(stream Stream) Stream { return &counted{stream: stream, in: d} }

type counted struct {
	stream Stream
	in     *Dispersion
}

// Next implements Stream.
func (c *counted) Next() (Request, error) {
	r, err := c.stream.Next()
	if err == nil {
		c.in.Add(r.Arrival)
	}
	return r, err
}

// Indexes are those of what was counted so far, from the shortest time to the longest.
// The time under way is not over and left out, and so is a scale of which there are
// fewer than two counts, or no request in them.
func (d *Dispersion) Indexes() []Index {
	var all []Index
	for i, scale := range scales {
		if c := d.counts[i]; c.total > 0 {
			all = append(all, Index{Seconds: scale.Seconds(), Index: c.squares / c.total})
		}
	}
	return all
}
