package main

import (
	"math"
	"math/rand/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
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

// published are the constants that are known of a published form for the model and
// the device of the default sweep. Those of three parameters were found on that very
// sweep.
func published(form serving.Form) []serving.Profile {
	switch form {
	case serving.ThreeParameters:
		return []serving.Profile{serving.ThreeParameter{Alpha: 6.70, Beta: 0.0208, Gamma: 4.9e-5, MaxBatchSize: clients}.Profile()}
	case serving.FourParameters:
		return []serving.Profile{
			serving.FourParameter{Alpha: 7.470, Beta: 0.044, Gamma: 15.415, Delta: 0.000337, MaxBatchSize: clients}.Profile(),
			serving.FourParameter{Alpha: 6.973, Beta: 0.027, Gamma: 14.825, Delta: 0.001364, MaxBatchSize: clients}.Profile(),
		}
	}
	return nil
}

// searched is the best that the searches from all starts find for the rows.
func searched(starts []serving.Profile, rows []row) serving.Profile {
	var best serving.Profile
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
func search(at serving.Profile, rows []row) (serving.Profile, float64) {
	random := rand.New(rand.NewPCG(1, 2))
	least, step := judged(at, rows), searchStep
	for range searchTries {
		next := at
		for _, p := range parameters(&next) {
			*p *= math.Exp(step * random.NormFloat64())
		}
		if sum := judged(next, rows); sum < least {
			at, least = next, sum
			step *= searchGrow
		} else {
			step *= searchShrink
		}
	}
	return at, least
}

// judged is the sum of the two errors that a form is judged by.
func judged(profile serving.Profile, rows []row) float64 {
	ttft, itl := miss(profile, rows)
	return ttft + itl
}

// parameters are those of a published form.
func parameters(p *serving.Profile) []*float64 {
	all := []*float64{(*float64)(&p.Base), (*float64)(&p.PerPrefillToken)}
	if p.Form == serving.FourParameters {
		return append(all, (*float64)(&p.PerRequest), (*float64)(&p.Gamma))
	}
	return append(all, (*float64)(&p.PerResidentToken))
}
