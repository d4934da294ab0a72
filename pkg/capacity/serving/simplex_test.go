package serving

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Where the search asks, step by step, as another program asks that was written from the
// description: all of its moves occur.
func TestMinimizeMovesAsDescribed(t *testing.T) {
	for name, c := range map[string]struct {
		f     func(x []float64) float64
		start []float64
		step  float64
		limit int
		asked [][]float64
		best  []float64
	}{
		"down one slope": {
			// From 0 and 1: reflected to 2, expanded to 3; reflected to 5 and contracted to 2;
			// reflected to 4 and contracted to 2.5.
			func(x []float64) float64 { return (x[0] - 3) * (x[0] - 3) }, []float64{0}, 1, 3,
			[][]float64{{0}, {1}, {2}, {3}, {5}, {2}, {4}, {2.5}}, []float64{3},
		},
		"along a bent valley": {
			func(x []float64) float64 { return (1-x[0])*(1-x[0]) + 10*(x[1]-x[0]*x[0])*(x[1]-x[0]*x[0]) },
			[]float64{-1, 1}, 0.5, 12,
			[][]float64{
				{-1, 1}, {-0.5, 1}, {-1, 1.5}, {-1.5, 1.5}, {-0.75, 1.125}, {-0.75, 0.625}, {-0.625, 0.1875}, {-0.875, 0.0625},
				{-0.78125, 0.859375}, {-0.40625, 0.046875}, {-0.109375, -0.4296875}, {-0.25, -0.625}, {-0.6484375, 0.48828125},
				{-0.4296875, 0.34765625}, {-0.1875, -0.09375}, {0.04296875, -0.384765625}, {-0.1640625, -0.39453125},
				{-0.36328125, 0.162109375}, {-0.14453125, 0.021484375}, {-0.013671875, 0.008789062}, {0.162109375, -0.247070312},
				{0.3359375, -0.14453125}, {0.16015625, 0.111328125}, {0.159179688, 0.290527344},
			}, []float64{0.16015625, 0.111328125},
		},
		"around a needle, towards which it shrinks": {
			func(x []float64) float64 {
				switch {
				case x[0] == 2 && x[1] == 3:
					return 0
				case x[0] == 3 && x[1] == 3:
					return 1
				}
				return 2
			}, []float64{2, 3}, 1, 2,
			[][]float64{{2, 3}, {3, 3}, {2, 4}, {3, 2}, {2.25, 3.5}, {2.5, 3}, {2, 3.5}, {2.5, 2.5}, {2.125, 3.25}, {2.25, 3}, {2, 3.25}},
			[]float64{2, 3},
		},
		"in three dimensions": {
			func(x []float64) float64 {
				v := (x[0]-1)*(x[0]-1) + 2*(x[1]+0.5)*(x[1]+0.5) + 3*(x[2]-0.25)*(x[2]-0.25) + x[0]*x[1]
				if math.Abs(x[2]) > 0.8 {
					v += 2
				}
				return v
			}, []float64{0, 0, 0}, 0.4, 9,
			[][]float64{
				{0, 0, 0}, {0.4, 0, 0}, {0, 0.4, 0}, {0, 0, 0.4}, {0.266666667, -0.4, 0.266666667}, {0.4, -0.8, 0.4},
				{0.533333333, -0.533333333, 0.533333333}, {0.8, -0.8, 0.8}, {0.888888889, -0.888888889, 0.222222222},
				{1.333333333, -1.333333333, 0.133333333}, {0.814814815, -1.481481481, 0.77037037}, {0.503703704, -0.37037037, 0.192592593},
				{0.883950617, -0.395061728, 0.232098765}, {0.98436214, -0.569547325, -0.102057613}, {1.334430727, -0.865294925, 0.042249657},
				{1.749794239, -1.112757202, -0.032921811}, {1.087151349, -0.863283036, 0.43310471}, {1.323030026, -1.349916171, 0.232952294},
				{0.993720469, -0.633775339, 0.232312148},
			}, []float64{1.33443072702332, -0.8652949245541837, 0.042249657064471785},
		},
	} {
		var asked [][]float64
		best := minimize(func(x []float64) float64 {
			asked = append(asked, append([]float64(nil), x...))
			return c.f(x)
		}, c.start, c.step, 1e-8, c.limit)
		assert.Len(t, asked, len(c.asked), name)
		for i := range min(len(asked), len(c.asked)) {
			assert.InDeltaSlice(t, c.asked[i], asked[i], 1e-8, "%s: question %d", name, i)
		}
		assert.InDeltaSlice(t, c.best, best, 1e-8, name)
	}
}

// It ends where the values differ by less than the tolerance, at once if they do so at first.
func TestMinimizeEnds(t *testing.T) {
	asked := 0
	flat := func(best float64) func([]float64) float64 {
		return func(x []float64) float64 {
			asked++
			return best * x[0]
		}
	}
	minimize(flat(0.5), []float64{0}, 1, 0.51, 1000)
	assert.Equal(t, 2, asked)
	asked = 0
	minimize(flat(0.5), []float64{0}, 1, 0.5, 1)
	assert.Equal(t, 4, asked, "they differ by just the tolerance")
}
