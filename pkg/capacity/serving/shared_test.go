package serving

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// burstiness z as the Burst that gives it.
func burstOf(z float64) float64 { return 2*z - 1 }

func TestSharedArrivalsAreCalmerAmongMore(t *testing.T) {
	for _, index := range []float64{1, 2, 5, 20, 100} {
		last := math.Inf(1)
		for _, replicas := range []int{1, 2, 3, 6, 12, 30, 100, 10_000} {
			burst := Shared(index, replicas).Burst
			assert.LessOrEqual(t, burst, last, "index %v, %d replicas", index, replicas)
			assert.GreaterOrEqual(t, burst, Shared(1, replicas).Burst)
			assert.True(t, burst >= 1 && burst <= burstOf(mostScatter), "burst %v", burst)
			last = burst
		}
	}
	assert.InDelta(t, 1, Shared(1, math.MaxInt32).Burst, 0)
	assert.Equal(t, Shared(1, 1), Shared(0, 0), "nothing is known")
	assert.InDelta(t, burstOf(sharedScatter), Shared(6, 6).Burst, 1e-9)
}

func TestSharing(t *testing.T) {
	for _, c := range []struct {
		rate, each capacity.Rate
		want       int
	}{{10, 2.5, 4}, {10.1, 2.5, 5}, {0, 2.5, 1}, {0.1, 2.5, 1}, {10, 0, 1}, {1e30, 1e-30, math.MaxInt32}} {
		assert.Equal(t, c.want, Sharing(c.rate, c.each), "%v of %v each", c.rate, c.each)
	}
}

// What each of the replicas serves falls with the bursts, grows with the replicas that
// share them, and stays between half and all of what independent arrivals allow.
func TestSharedRate(t *testing.T) {
	slo := capacity.SLO{TTFT: 1000, ITL: 25}
	independent := float64(queueOf(t, overlapped, conv, 0).MaxRate(slo, 0.99))
	rates := []capacity.Rate{0.5, 3, 7, 15, 16, 40, 100, 300, 1000}
	indexes := []float64{1, 2, 5, 10, 20, 50}
	each := map[capacity.Rate][]float64{}
	for _, rate := range rates {
		for _, index := range indexes {
			got, arrivals := SharedRate(overlapped, conv, rate, index, slo, 0.99)
			name := fmt.Sprintf("%v requests/s with an index of %v", rate, index)
			assert.True(t, float64(got) >= independent/2 && float64(got) <= independent*(1+1e-9), "%s: %v of %v", name, got, independent)
			assert.Equal(t, Shared(index, Sharing(rate, got)), arrivals, name)
			each[rate] = append(each[rate], float64(got))
		}
	}
	// A number of replicas is whole, so a little may go the other way.
	const step = 1.02
	for i, rate := range rates {
		for j := range indexes {
			if j > 0 {
				assert.LessOrEqual(t, each[rate][j], step*each[rate][j-1], "%v requests/s, index %v", rate, indexes[j])
			}
			if i > 0 {
				assert.GreaterOrEqual(t, step*each[rate][j], each[rates[i-1]][j], "%v requests/s, index %v", rate, indexes[j])
			}
		}
	}
	assert.Less(t, each[7][4], 0.8*each[7][0], "bursts matter where few share them")
	assert.InEpsilon(t, independent, each[1000][0], 0.01, "and independent arrivals do not where many do")
	none, _ := SharedRate(Profile{}, conv, 5, 1, slo, 0.99)
	assert.Zero(t, none)
}

// The number of replicas that the rate of each makes necessary is the least that serves
// the rate with what each of so many gets; the slow reference tries one after the other.
// Where bursts take most of the rate, fewer would not hold.
func TestSharedRateIsThatOfTheLeastNumberThatServes(t *testing.T) {
	slo := capacity.SLO{TTFT: 1000, ITL: 25}
	tight := Profile{Base: 12.5, PerResidentToken: 9.1e-5, PerPrefillToken: 0.030, KVTokens: 500_000, BatchLimit: 128}
	for name, p := range map[string]Profile{"roomy": overlapped, "tight": tight} {
		for _, index := range []float64{1, 5, 20, 50} {
			known := map[int]capacity.Rate{}
			each := func(replicas int) capacity.Rate {
				if _, is := known[replicas]; !is {
					queue, ok := NewQueue(p, conv, Shared(index, replicas))
					require.True(t, ok)
					known[replicas] = queue.MaxRate(slo, 0.99)
				}
				return known[replicas]
			}
			// Half of what independent arrivals allow is the least that is ever said, and a
			// rate is found between others, so a few per cent are open.
			floor := each(math.MaxInt32) / 2
			for rate := capacity.Rate(0.5); rate < 150; rate *= 1.07 {
				least := func(slack float64) int {
					n := 1
					for float64(max(each(n), floor))*float64(n)*slack < float64(rate) {
						n++
					}
					return n
				}
				got, arrivals := SharedRate(p, conv, rate, index, slo, 0.99)
				n := Sharing(rate, got)
				assert.Equal(t, Shared(index, n), arrivals, "%s, %v requests/s, index %v: %d replicas", name, rate, index, n)
				assert.True(t, least(1.05) <= n && n <= least(0.95), "%s, %v requests/s, index %v: %d, reference %d", name, rate, index, n, least(1))
				assert.LessOrEqual(t, float64(got), 1.05*float64(max(each(n), floor)), "%s, %v requests/s, index %v", name, rate, index)
			}
		}
	}
}

// At some values of z the rate is that of the queue with such arrivals; between them it
// is read off a line.
func TestTheRatesThatAreFoundAndNotReadOff(t *testing.T) {
	slo := capacity.SLO{TTFT: 1000, ITL: 25}
	each := func(z float64) float64 {
		queue, ok := NewQueue(overlapped, conv, Arrivals{Burst: burstOf(z)})
		require.True(t, ok)
		return float64(queue.MaxRate(slo, 0.99))
	}
	const replicas = 40
	for _, z := range []float64{2, 4} {
		index := replicas * math.Pow(z/sharedScatter, 1/sharedPower)
		for _, part := range []float64{0.5, 1e-6} {
			got, _ := SharedRate(overlapped, conv, capacity.Rate(each(z)*(replicas-part)), index, slo, 0.99)
			assert.InEpsilon(t, each(z), float64(got), 1e-5, "z %v", z)
		}
	}
	// At 2.83 it is the middle of both.
	index := replicas * math.Pow(math.Sqrt(8)/sharedScatter, 1/sharedPower)
	middle := (each(2) + each(4)) / 2
	got, _ := SharedRate(overlapped, conv, capacity.Rate(middle*replicas*(1-1e-6)), index, slo, 0.99)
	assert.InEpsilon(t, middle, float64(got), 1e-5)
}

// endless is a replica in which nobody delays anybody.
func endless(t *testing.T, z float64) Queue {
	t.Helper()
	q, ok := NewQueue(Profile{Base: 20, BatchLimit: 4000}, square, Arrivals{Burst: burstOf(z)})
	require.True(t, ok)
	return q
}

// In an endless server the number in it has the variance z times its mean.
func TestBurstsGiveAnEndlessServerTheirPeakedness(t *testing.T) {
	for _, z := range []float64{1, 1.5, 3, 10} {
		for _, rate := range []capacity.Rate{1, 20, 100} {
			s := endless(t, z).At(rate)
			mean, square := 0.0, 0.0
			for n, share := range s.share {
				mean += float64(n) * share
				square += float64(n*n) * share
			}
			assert.InEpsilon(t, float64(rate)*20*128/1000, mean, 1e-6, "z %v, %v requests/s: Little's law", z, rate)
			assert.InEpsilon(t, z, (square-mean*mean)/mean, 1e-6, "z %v, %v requests/s", z, rate)
		}
	}
}

// However bursty arrivals are, as many come as the rate says: what leaves, state by
// state, is what arrives while nothing is refused.
func TestBurstsKeepTheMeanRate(t *testing.T) {
	for _, z := range []float64{1, 1.5, 3, 10} {
		for name, p := range map[string]Profile{"four": small, "overlapped": overlapped} {
			q, ok := NewQueue(p, square, Arrivals{Burst: burstOf(z), Waiting: 1_000_000})
			require.True(t, ok)
			for _, part := range []float64{0.05, 0.5, 0.9, 0.99} {
				s := q.At(capacity.Rate(part * 1000 * q.service[q.batch()]))
				leaves, all := 0.0, 0.0
				for n, share := range s.share {
					leaves += share * q.service[n]
					all += share
				}
				beyond := s.share[q.batch()] * s.load / (1 - s.load)
				leaves += beyond * q.service[q.batch()]
				assert.InDelta(t, 1, all+beyond, 1e-9, "%s, z %v, load %v", name, z, part)
				assert.InEpsilon(t, s.arrival, leaves, 1e-9, "%s, z %v, load %v", name, z, part)
				assert.InEpsilon(t, 1000*s.arrival, float64(s.Served), 1e-9)
			}
		}
	}
}

// Kingman's tail: waits are exponential with the spare rate over z. The slow reference
// adds up over the places in the queue, each with its departures.
func TestBurstsStretchTheTailOfWaits(t *testing.T) {
	for _, z := range []float64{1, 2.5, 6} {
		q, ok := NewQueue(small, square, Arrivals{Burst: burstOf(z), Waiting: 1_000_000})
		require.True(t, ok)
		full := q.service[q.batch()]
		for _, part := range []float64{0.7, 0.95} {
			s := q.At(capacity.Rate(part * 1000 * full))
			assert.InDelta(t, 1-(1-part)/z, s.load, 1e-9)
			for _, departures := range []float64{1, 10, 40} {
				at := departures / full
				want, place := 0.0, 1-s.load
				none, term := 0.0, math.Exp(-full*at)
				for k := range 4000 {
					// Of k+1 departures at most k came by then.
					none += term
					want += place * math.Min(1, none)
					place *= s.load
					term *= full * at / float64(k+1)
				}
				if late := s.waiting() * want; late > 1e-12 {
					first, _ := s.latencies(float64(q.batch()))
					assert.InDelta(t, at, float64(s.Quantile(1-late).TTFT)-first, 1e-6*at+1e-3, "z %v, load %v, %v departures", z, part, departures)
				}
			}
			few, many := s.Quantile(0.995), s.Quantile(0.9995)
			if s.waiting() > 0.01 {
				assert.InEpsilon(t, math.Log(10)*z/(full*(1-part)), float64(many.TTFT-few.TTFT), 1e-6, "z %v, load %v", z, part)
			}
		}
	}
}

// 3.4 * (index/r)^0.65: 4^0.65 is 2.4623, and 2^-0.65 is 0.63728.
func TestSharedByHand(t *testing.T) {
	for _, c := range []struct {
		index    float64
		replicas int
		z        float64
	}{{6, 6, 3.4}, {8, 2, 8.3718}, {3, 6, 2.1668}, {1, 30, 1}, {100, 1, 10}} {
		assert.InEpsilon(t, burstOf(c.z), Shared(c.index, c.replicas).Burst, 1e-4, "index %v, %d replicas", c.index, c.replicas)
	}
}
