package rival

// predictor forecasts the next value of a row of values.
type predictor interface {
	// add takes the next value. Zeros before the first other value are left out.
	add(value float64)
	// next is the forecast; 0 before the first value.
	next() float64
}

// constantPredictor says that the next value is the last one.
type constantPredictor struct{ last float64 }

// add implements predictor.
func (c *constantPredictor) add(value float64) { c.last = value }

// next implements predictor.
func (c *constantPredictor) next() float64 { return c.last }

// kalmanPredictor is a filter of a local linear trend. With the level x, its trend v and the
// observation z in each step,
//
//	x' = x + v + N(0, level),  v' = v + N(0, trend),  z = x + N(0, noise)
//
// The first value is the first level, of a variance of 1000, as is that of the trend. Until
// there are enough values the forecast is the last one. It is never negative.
type kalmanPredictor struct {
	level, trend, noise float64
	least               int

	x, v float64
	// pxx, pxv and pvv are the variances of the level and the trend.
	pxx, pxv, pvv float64
	last          float64
	count         int
	// ahead is set when the filter has gone on to the next step already.
	ahead bool
}

// kalmanVariance is what the filter begins with.
const kalmanVariance = 1000

// add implements predictor.
func (k *kalmanPredictor) add(value float64) {
	if value == 0 && k.count == 0 {
		return
	}
	k.last = value
	k.count++
	if k.count == 1 {
		k.x, k.pxx, k.pvv = value, kalmanVariance, kalmanVariance
		return
	}
	k.step()
	gainX, gainV := k.pxx/(k.pxx+k.noise), k.pxv/(k.pxx+k.noise)
	off := value - k.x
	k.x += gainX * off
	k.v += gainV * off
	k.pvv -= gainV * k.pxv
	k.pxv -= gainX * k.pxv
	k.pxx -= gainX * k.pxx
	k.ahead = false
}

// step goes on to the next step, once.
func (k *kalmanPredictor) step() {
	if k.ahead {
		return
	}
	k.ahead = true
	k.x += k.v
	k.pxx += 2*k.pxv + k.pvv + k.level
	k.pxv += k.pvv
	k.pvv += k.trend
}

// next implements predictor.
func (k *kalmanPredictor) next() float64 {
	if k.count < k.least || k.count == 0 {
		return k.last
	}
	k.step()
	return max(0, k.x)
}
