package rival

import (
	"math"
	"slices"
)

// enginePass is one iteration of an engine, or the mean of some: the prompt tokens that it
// computes, the tokens in the KV cache of the requests that it decodes, and the seconds
// that it takes.
type enginePass struct{ prefill, cached, seconds float64 }

// engineModel says how long the iterations of an engine take, by least squares over passes:
//
//	seconds = a + b*prefill + c*cached
//
// It is the planner's regression for engines that do both prefill and decode. It keeps at
// most passesKept passes in a grid of passBuckets by passBuckets over the two axes; when
// there are more, the oldest one of the fullest field goes.
type engineModel struct {
	fields []passField
	// low and high are the ends of the axes.
	low, high [2]float64
	count     int
	fitted    bool
	a, b, c   float64
	// input are the prompt tokens of one request, decoded the cached tokens of one, and
	// prefill the prompt tokens of one pass, in the mean of the last passes.
	input, decoded, prefill passMean
}

// The published sizes of the regression.
const (
	passesKept  = 64
	passBuckets = 4
	leastPasses = 5
	// leastPass is the least time of a pass in seconds.
	leastPass = 1e-6
)

// passField is one field of the grid.
type passField struct {
	at     [2]int
	passes []enginePass
}

// passMean is the mean of the last values; zeros before the first other value are left out.
type passMean struct{ values []float64 }

func (m *passMean) add(value float64) {
	if value == 0 && len(m.values) == 0 {
		return
	}
	m.values = append(m.values, value)
	m.values = m.values[max(0, len(m.values)-passesKept):]
}

func (m *passMean) mean() float64 { return mean(m.values) }

// add takes a pass into account.
func (e *engineModel) add(p enginePass) {
	axes := [2]float64{p.prefill, p.cached}
	moved := false
	for i, x := range axes {
		if e.count == 0 {
			e.low[i], e.high[i] = x, x
		}
		moved = moved || x < e.low[i] || x > e.high[i]
		e.low[i], e.high[i] = min(e.low[i], x), max(e.high[i], x)
	}
	if moved {
		all := e.passes()
		e.fields = nil
		for _, old := range all {
			e.place(old)
		}
	}
	e.place(p)
	e.count++
	if e.count > passesKept {
		fullest := 0
		for i := range e.fields {
			if len(e.fields[i].passes) > len(e.fields[fullest].passes) {
				fullest = i
			}
		}
		e.fields[fullest].passes = slices.Delete(e.fields[fullest].passes, 0, 1)
		e.count--
	}
	e.fitted = false
}

// place puts a pass into its field.
func (e *engineModel) place(p enginePass) {
	var at [2]int
	for i, x := range [2]float64{p.prefill, p.cached} {
		if e.high[i] > e.low[i] {
			at[i] = min(passBuckets-1, int((x-e.low[i])/(e.high[i]-e.low[i])*passBuckets))
		}
	}
	i := slices.IndexFunc(e.fields, func(f passField) bool { return f.at == at })
	if i < 0 {
		e.fields = append(e.fields, passField{at: at})
		i = len(e.fields) - 1
	}
	e.fields[i].passes = append(e.fields[i].passes, p)
}

func (e *engineModel) passes() []enginePass {
	var all []enginePass
	for _, f := range e.fields {
		all = append(all, f.passes...)
	}
	return all
}

// ready fits the model where it has to be; false where there are too few passes, or where
// more work would take less time.
func (e *engineModel) ready() bool {
	if e.fitted {
		return true
	}
	if e.count < leastPasses {
		return false
	}
	e.a, e.b, e.c = leastSquares(e.passes())
	e.fitted = e.b >= 0 && e.c >= 0
	return e.fitted
}

// leastSquares is the plane through passes; of several that fit as well, as on a line, the
// one with the least slopes.
func leastSquares(passes []enginePass) (a, b, c float64) {
	n := float64(len(passes))
	var mx, my, mt float64
	for _, p := range passes {
		mx, my, mt = mx+p.prefill/n, my+p.cached/n, mt+p.seconds/n
	}
	var xx, xy, yy, xt, yt float64
	for _, p := range passes {
		x, y, t := p.prefill-mx, p.cached-my, p.seconds-mt
		xx, xy, yy, xt, yt = xx+x*x, xy+x*y, yy+y*y, xt+x*t, yt+y*t
	}
	switch determinant := xx*yy - xy*xy; {
	case determinant > flat*xx*yy:
		b, c = (xt*yy-yt*xy)/determinant, (yt*xx-xt*xy)/determinant
	case xx+yy > 0:
		// All lie on a line in the direction (x, y), along which alone slopes are known.
		x, y := xx, xy
		if yy > xx {
			x, y = xy, yy
		}
		slope := (x*xt + y*yt) / (x*x*xx + 2*x*y*xy + y*y*yy)
		b, c = slope*x, slope*y
	}
	return mt - b*mx - c*my, b, c
}

// flat is how little points may differ from a line, squared and relatively.
const flat = 1e-12

// pass is the seconds of one pass.
func (e *engineModel) pass(prefill, cached float64) float64 {
	return max(leastPass, e.a+e.b*prefill+e.c*cached)
}

// firstToken is the estimated time to the first token of the next request, in
// milliseconds: the queued prompt tokens and its own in passes of at most the budget, beside
// the decoding of the cached tokens. False while the model is not ready.
func (e *engineModel) firstToken(queued, cached, budget float64) (float64, bool) {
	if !e.ready() {
		return 0, false
	}
	seconds := 0.0
	for left := queued + e.input.mean(); left > 0; left -= budget {
		seconds += e.pass(min(left, budget), cached)
	}
	return 1000 * seconds, true
}

// betweenTokens is the estimated time between two tokens, in milliseconds: that of a pass
// with one more request. The model has to be ready.
func (e *engineModel) betweenTokens(cached float64) float64 {
	return 1000 * e.pass(e.prefill.mean(), cached+e.decoded.mean())
}

// engineBounds are what limits one engine.
type engineBounds struct {
	// budget is the most tokens of one pass, sequences the most requests, and cache the
	// tokens that its KV cache holds, 0 where that is not known.
	budget, sequences int
	cache             float64
}

// unknownCache is the most requests of an engine whose cache is not known.
const unknownCache = 1024

// rate is the largest rate of requests of so many input and output tokens at which one
// engine keeps both targets, in milliseconds: with n requests at once a pass takes
//
//	t = pass(n*input/output, n*(input + output/2)),  rate = n / (output * t)
//
// for the largest n, from 1 on, at which t and the first token keep their targets and for
// which the cache, the sequences and the prefill have room: n*(input+output) is at most
// output*budget. Where not even one request does, it is the rate of one. 0 while the model
// is not ready.
func (e *engineModel) rate(input, output float64, limits engineBounds, ttft, itl float64) float64 {
	if !e.ready() || input <= 0 || output <= 0 || limits.budget <= 0 {
		return 0
	}
	context, best := input+output/2, 0.0
	for n := 1; n <= limits.most(input, output); n++ {
		cached := float64(n) * context
		prefill := min(float64(n)*input/max(1, output), float64(limits.budget))
		t := e.pass(prefill, cached)
		first, _ := e.firstToken(math.Trunc(prefill), math.Trunc(cached), float64(limits.budget))
		keeps := 1000*t <= itl && first <= ttft
		if keeps || n == 1 {
			best = float64(n) / (output * t)
		}
		if !keeps {
			break
		}
	}
	return best
}

// most is the largest number of requests at once, at least 1.
func (l engineBounds) most(input, output float64) int {
	most := unknownCache
	if l.cache > 0 {
		most = max(1, int(l.cache/max(1, input+output/2)))
	}
	if l.sequences > 0 {
		most = min(most, l.sequences)
	}
	return max(1, min(most, l.budget-1, int(output*float64(l.budget)/(input+output))))
}
