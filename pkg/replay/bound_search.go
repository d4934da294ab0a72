package replay

import (
	"math"
	"slices"
)

// span is a range of vectors: those with low <= x <= high in every place.
type span struct{ low, high []int }

func (s span) same(o span) bool { return slices.Equal(s.low, o.low) && slices.Equal(s.high, o.high) }

// size is the number of its vectors; enormous ones count as mostReplicas squared.
func (s span) size() int {
	size := 1
	for i := range s.low {
		size *= s.high[i] - s.low[i] + 1
		if size > mostReplicas {
			return mostReplicas * mostReplicas
		}
	}
	return size
}

// vectors counts those of all spans.
func vectors(spans []span) float64 {
	sum := 0.0
	for _, s := range spans {
		sum += float64(s.size())
	}
	return sum
}

// search finds the least costly schedule whose vectors are within spans, by dynamic
// programming over the minutes. The least cost up to a minute that ends with a vector x
// is what x costs there, and the least, over all vectors y of the minute before, of the
// cost up to y and of starting what x has more than y. Because that is a sum over the
// options, the least over y is found option by option, in one pass over all vectors for
// each.
//
// Costs are kept for every so many minutes only, and found again between them on the
// way back.
type search struct {
	*course
	spans []span
	// mosts are what most says for the vectors of the span that they are of.
	mosts  []int
	mostOf span
	line   []float64
}

func newSearch(c *course, spans []span) *search { return &search{course: c, spans: spans} }

// run returns the schedule and its cost.
func (s *search) run() plan {
	last := len(s.moments) - 1
	every := int(math.Ceil(math.Sqrt(float64(len(s.moments)))))
	kept := make([][]float64, 0, every)
	var costs []float64
	for t := range s.moments {
		costs = s.upTo(t, costs)
		if t%every == 0 {
			kept = append(kept, costs)
		}
	}
	p := plan{replicas: make([][]int, len(s.moments))}
	for block := last / every; block >= 0; block-- {
		first, end := block*every, min(block*every+every-1, last)
		between := [][]float64{kept[block]}
		for t := first + 1; t <= end; t++ {
			between = append(between, s.upTo(t, between[t-1-first]))
		}
		for t := end; t >= first; t-- {
			var next []int
			if t < last {
				next = p.replicas[t+1]
			}
			p.replicas[t] = s.before(t, between[t-first], next)
		}
	}
	p.least = s.cost(p.replicas)
	return p
}

// upTo is the least cost up to a minute by its vector; before is that of the minute
// before.
func (s *search) upTo(t int, before []float64) []float64 {
	own := s.own(t)
	if t == 0 {
		return own
	}
	for i, cost := range s.started(t, before) {
		own[i] += cost
	}
	return own
}

// started is the least cost up to a minute's begin by the vector that serves in it.
func (s *search) started(t int, before []float64) []float64 {
	from, to := s.spans[t-1], s.spans[t]
	if from.same(to) {
		s.line = append(s.line[:0], before...)
		s.sweep(s.line, from)
		return s.line
	}
	costs := before
	outer, inner := 1, len(before)
	for i := range s.options {
		n, k := from.high[i]-from.low[i]+1, to.high[i]-to.low[i]+1
		inner /= n
		next := make([]float64, outer*k*inner)
		for o := range outer {
			for j := range inner {
				s.pass(costs[o*n*inner+j:], next[o*k*inner+j:], inner, i, from, to)
			}
		}
		costs = next
		outer *= k
	}
	return costs
}

// sweep does it in place, where the vectors of both minutes are the same: down, because
// whoever lets replicas go pays nothing, and up again.
func (s *search) sweep(costs []float64, of span) {
	inner := len(costs)
	for i := range s.options {
		outer, start := inner, s.options[i].price*s.startup
		inner /= of.high[i] - of.low[i] + 1
		for first := 0; first < len(costs); first += outer {
			for at := first + outer - inner; at > first; at -= inner {
				fewer, more := costs[at-inner:at], costs[at:at+inner]
				for j, cost := range more {
					fewer[j] = min(fewer[j], cost)
				}
			}
			for at := first + inner; at < first+outer; at += inner {
				fewer, more := costs[at-inner:at], costs[at:at+inner]
				for j, cost := range fewer {
					more[j] = min(more[j], cost+start)
				}
			}
		}
	}
}

// pass does it for one option and one line of vectors, which are inner apart.
func (s *search) pass(costs, next []float64, inner, i int, from, to span) {
	n, low, start := from.high[i]-from.low[i]+1, from.low[i], s.options[i].price*s.startup
	// Whoever lets replicas go pays nothing: the least of as many and more.
	s.line = append(s.line[:0], make([]float64, n)...)
	least := math.Inf(1)
	for y := n - 1; y >= 0; y-- {
		least = min(least, costs[y*inner])
		s.line[y] = least
	}
	// up is the least cost from fewer.
	up := math.Inf(1)
	for y := low; y < min(to.low[i], from.high[i]+1); y++ {
		up = min(up+start, costs[(y-low)*inner]+start)
	}
	up += start * float64(max(0, to.low[i]-from.high[i]-1))
	for x := to.low[i]; x <= to.high[i]; x++ {
		cost := up
		if x <= from.high[i] {
			cost = min(cost, s.line[max(0, x-low)])
		}
		next[(x-to.low[i])*inner] = cost
		up += start
		if x >= low && x <= from.high[i] {
			up = min(up, costs[(x-low)*inner]+start)
		}
	}
}

// own is what each vector of a minute costs in it; infinite for those that do not serve
// it, or do not fit.
func (s *search) own(t int) []float64 {
	costs := make([]float64, s.spans[t].size())
	for i := range costs {
		costs[i] = math.Inf(1)
	}
	s.findMosts(t)
	w := &walk{search: s, moment: &s.moments[t], span: s.spans[t], costs: costs}
	w.serving(0, 0, 0, w.moment.need[0], 0)
	if !w.found {
		w.x = make([]int, len(s.options))
		w.missing = math.Inf(1)
		w.all(0, 0, 0, false)
		w.all(0, 0, 0, true)
	}
	return costs
}

// findMosts finds how many of the last option fit beside each beginning of a vector.
func (s *search) findMosts(t int) {
	of, last := s.spans[t], len(s.options)-1
	if s.mosts != nil && of.same(s.mostOf) {
		return
	}
	s.mostOf = of
	size := of.size() / (of.high[last] - of.low[last] + 1)
	s.mosts = append(s.mosts[:0], make([]int, size)...)
	roomy := s.room.holds(of.high)
	x := slices.Clone(of.low)
	for i := range s.mosts {
		s.mosts[i] = of.high[last]
		if !roomy {
			s.mosts[i] = min(of.high[last], s.room.most(x[:last], s.options[last].most))
		}
		for k := last - 1; k >= 0; k-- {
			if x[k]++; x[k] <= of.high[k] {
				break
			}
			x[k] = of.low[k]
		}
	}
}

// walk goes over the vectors of a minute.
type walk struct {
	*search
	moment *moment
	span   span
	costs  []float64
	found  bool
	// x is the vector, and missing the least that any so far leaves unserved, where
	// none serves everything.
	x       []int
	missing float64
}

// serving visits the vectors that serve everything: index is that of the vectors'
// beginning, rest what its model still needs, count the replicas that it has so far.
func (w *walk) serving(i, index int, cost, rest float64, count int) {
	low, high := w.span.low[i], w.span.high[i]
	model := w.modelOf(i)
	from, one := low, w.moment.serves[i]
	slack := fine * w.moment.need[model]
	if i == w.ends[model]-1 {
		if count == 0 {
			from = max(from, 1)
		}
		if rest > slack {
			if one <= 0 {
				return
			}
			from = max(from, int(min(math.Ceil((rest-slack)/one), mostReplicas)))
		}
	}
	to := high
	if i == len(w.options)-1 {
		to = min(to, w.mosts[index])
	}
	each := w.options[i].price * w.moment.hours
	for n := from; n <= to; n++ {
		next, paid := index*(high-low+1)+n-low, cost+each*float64(n)
		switch {
		case i == len(w.options)-1:
			w.costs[next], w.found = paid, true
		case i == w.ends[model]-1:
			w.serving(i+1, next, paid, w.moment.need[model+1], 0)
		default:
			w.serving(i+1, next, paid, rest-one*float64(n), count+n)
		}
	}
}

// all visits all vectors that fit: first to find the least that one leaves unserved, then
// to keep what those cost that leave no more.
func (w *walk) all(i, index int, cost float64, keep bool) {
	low, high := w.span.low[i], w.span.high[i]
	to := high
	if i == len(w.options)-1 {
		to = min(to, w.mosts[index])
	}
	for n := low; n <= to; n++ {
		w.x[i] = n
		next, paid := index*(high-low+1)+n-low, cost+w.options[i].price*w.moment.hours*float64(n)
		if i < len(w.options)-1 {
			w.all(i+1, next, paid, keep)
			continue
		}
		missing := w.unserved(w.moment, w.x)
		if !keep {
			w.missing = min(w.missing, missing)
		} else if missing <= w.missing+fine {
			w.costs[next] = paid
		}
	}
}

// unserved adds up the shares of the models' needs that a vector does not serve; a model
// without any replica misses one more.
func (c *course) unserved(m *moment, x []int) float64 {
	sum := 0.0
	for model, end := range c.ends {
		serves, count := 0.0, 0
		for i := c.first(model); i < end; i++ {
			serves += m.serves[i] * float64(x[i])
			count += x[i]
		}
		if need := m.need[model]; !enough(serves, need) {
			sum += 1 - serves/need
		}
		if count == 0 {
			sum++
		}
	}
	return sum
}

func (c *course) modelOf(option int) int {
	m := 0
	for option >= c.ends[m] {
		m++
	}
	return m
}

// before is the vector of a minute from which the next one is reached at the least cost;
// nil means that none comes after it. Of equal ones it is the first.
func (s *search) before(t int, costs []float64, next []int) []int {
	of := s.spans[t]
	best, least := -1, math.Inf(1)
	x := slices.Clone(of.low)
	for i, cost := range costs {
		if cost < least {
			for k, n := range next {
				cost += s.options[k].price * s.startup * float64(max(0, n-x[k]))
			}
			if cost < least {
				best, least = i, cost
			}
		}
		for k := len(x) - 1; k >= 0; k-- {
			if x[k]++; x[k] <= of.high[k] {
				break
			}
			x[k] = of.low[k]
		}
	}
	vector := slices.Clone(of.low)
	for k := len(vector) - 1; k >= 0; k-- {
		n := of.high[k] - of.low[k] + 1
		vector[k] += best % n
		best /= n
	}
	return vector
}
