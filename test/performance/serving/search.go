package serving

import (
	"math"
	"math/rand/v2"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/tokenform"
)

const (
	// searchTries is how many moves one search tries: twice as many change the sum of
	// the errors by less than 0.1 per cent.
	searchTries = 600
	// searchStep is the size of its first moves, in natural logarithms of the
	// parameters. It grows with each move that helps and shrinks with each other one,
	// so that it settles where about one in six helps.
	searchStep, searchGrow, searchShrink = 0.2, 1.5, 0.92
)

// A published form with its parameters, which the search moves, and what it makes of them
// for requests of a shape.
type published struct {
	parameters []float64
	profile    func(parameters []float64, shape capacity.TokenShape) serving.Profile
}

func (p published) at(shape capacity.TokenShape) serving.Profile {
	return p.profile(p.parameters, shape)
}

// four and three are the published forms.
func four(f serving.FourParameter) published {
	return published{
		parameters: []float64{float64(f.Alpha), float64(f.Delta), float64(f.Beta), float64(f.Gamma)},
		profile: func(x []float64, _ capacity.TokenShape) serving.Profile {
			ms := milliseconds(x)
			return serving.FourParameter{Alpha: ms[0], Delta: ms[1], Beta: ms[2], Gamma: ms[3], MaxBatchSize: clients}.Profile()
		},
	}
}

func three(f tokenform.Form) published {
	return published{
		parameters: []float64{float64(f.Alpha), float64(f.Beta), float64(f.Gamma)},
		profile: func(x []float64, shape capacity.TokenShape) serving.Profile {
			ms := milliseconds(x)
			return tokenform.Form{Alpha: ms[0], Beta: ms[1], Gamma: ms[2], MaxBatchSize: clients}.At(shape)
		},
	}
}

func milliseconds(x []float64) []capacity.Milliseconds {
	ms := make([]capacity.Milliseconds, len(x))
	for i := range x {
		ms[i] = capacity.Milliseconds(x[i])
	}
	return ms
}

// knownFour and knownThree are the constants that are known of the published forms for the
// model and the device of the default sweep. Those of three parameters were found on that
// very sweep.
var (
	knownFour = []published{
		four(serving.FourParameter{Alpha: 7.470, Beta: 0.044, Gamma: 15.415, Delta: 0.000337}),
		four(serving.FourParameter{Alpha: 6.973, Beta: 0.027, Gamma: 14.825, Delta: 0.001364}),
	}
	knownThree = []published{three(tokenform.Form{Alpha: 6.70, Beta: 0.0208, Gamma: 4.9e-5})}
)

// searched is the best that the searches from all starts find for the rows.
func searched(starts []published, rows []row) published {
	var best published
	least := math.Inf(1)
	for _, start := range starts {
		if found, sum := search(start, rows); sum < least {
			best, least = found, sum
		}
	}
	return best
}

// search moves all parameters at once by chance and keeps what makes the sum of the
// two judged errors less. That sum has edges, on which a search by slopes stops early.
func search(at published, rows []row) (published, float64) {
	random := rand.New(rand.NewPCG(1, 2))
	least, step := judged(at.at, rows), searchStep
	for range searchTries {
		next := published{slices.Clone(at.parameters), at.profile}
		for i := range next.parameters {
			next.parameters[i] *= math.Exp(step * random.NormFloat64())
		}
		if sum := judged(next.at, rows); sum < least {
			at, least = next, sum
			step *= searchGrow
		} else {
			step *= searchShrink
		}
	}
	return at, least
}

// judged is the sum of the two errors that a form is judged by.
func judged(of latency, rows []row) float64 {
	ttft, itl := miss(of, rows)
	return ttft + itl
}
