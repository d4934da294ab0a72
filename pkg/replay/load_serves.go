package replay

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// shapeGrain is how finely token shapes are told apart, relatively: their lengths are
// rounded to its multiples on a logarithmic scale, so that a day needs few sizes.
const shapeGrain = 0.01

// roundShape is the shape on that scale; an unknown one stays as it is.
func roundShape(shape capacity.TokenShape) capacity.TokenShape {
	if !shape.Known() {
		return shape
	}
	round := func(t capacity.Tokens) capacity.Tokens {
		return capacity.Tokens(math.Exp(shapeGrain * math.Round(math.Log(float64(t))/shapeGrain)))
	}
	return capacity.TokenShape{Input: round(shape.Input), Output: round(shape.Output)}
}

// Serves is the largest rate of requests of a shape at which one replica keeps the SLO
// for the share of the requests that the scenario's policy states, if they arrive
// independently; without an SLO, the rate of its full batch. It is 0 where no rate keeps the SLO, and for an unknown shape.
// Shapes count to the nearest per cent. It takes about a millisecond: ask for the rates
// of a whole load instead where that does.
func (s *Scenario) Serves(model, variant int, shape capacity.TokenShape) capacity.Rate {
	m := &s.Models[model]
	queue, ok := serving.NewQueue(s.Latency(model, variant), roundShape(shape), serving.Arrivals{})
	if !ok {
		return 0
	}
	return queue.MaxRate(m.SLO, s.Policy.Share)
}

// servesOf is the same for one of the replicas that share the requests of a minute, which
// may come in bursts.
func (s *Scenario) servesOf(model, variant int, at question) capacity.Rate {
	m := &s.Models[model]
	if at.dispersion == 0 {
		return s.Serves(model, variant, at.shape)
	}
	each, _ := serving.SharedRate(s.Latency(model, variant), at.shape, at.rate, at.dispersion, m.SLO, s.Policy.Share)
	return each
}

// question is what a rate is found for, rounded.
type question struct {
	shape      capacity.TokenShape
	rate       capacity.Rate
	dispersion float64
}

// rateGrain is how finely rates and dispersions are told apart: they matter far less than
// the lengths.
const rateGrain = 0.1

func roundQuestion(m Minute) question {
	round := func(x float64) float64 { return math.Exp(rateGrain * math.Round(math.Log(x)/rateGrain)) }
	a := question{shape: roundShape(m.Shape)}
	if m.Dispersion > 0 && m.Rate > 0 {
		a.rate, a.dispersion = capacity.Rate(round(float64(m.Rate))), round(m.Dispersion)
	}
	return a
}

// Rates is the rate at which one replica of each variant keeps the SLO for the promised share
// of the requests, in each minute: Rates[model][minute][variant].
func (s *Scenario) Rates(load Load) [][][]capacity.Rate {
	return eachMinute(s, load, roundQuestion, s.servesOf)
}

// meanRates is the same for the largest rate at which its mean latencies keep the SLO. Who
// keeps it for every request keeps it in the mean, so that nobody serves more.
func (s *Scenario) meanRates(load Load) [][][]capacity.Rate {
	shapeOf := func(m Minute) capacity.TokenShape { return roundShape(m.Shape) }
	return eachMinute(s, load, shapeOf, func(m, v int, shape capacity.TokenShape) capacity.Rate {
		queue, ok := serving.NewQueue(s.Latency(m, v), shape, serving.Arrivals{})
		if !ok {
			return 0
		}
		return queue.MaxRate(s.Models[m].SLO, serving.MeanShare)
	})
}

// eachMinute asks about each variant in each minute, but nothing twice.
func eachMinute[K comparable](s *Scenario, load Load, about func(Minute) K, serves func(m, v int, at K) capacity.Rate) [][][]capacity.Rate {
	all := make([][][]capacity.Rate, len(s.Models))
	for m := range s.Models {
		known := map[K][]capacity.Rate{}
		for _, at := range load[m] {
			key := about(at)
			rates, found := known[key]
			if !found {
				rates = make([]capacity.Rate, len(s.Models[m].Variants))
				for v := range rates {
					rates[v] = serves(m, v, key)
				}
				known[key] = rates
			}
			all[m] = append(all[m], rates)
		}
	}
	return all
}

// cheapest is, for each model, the first of its variants by rank.
func (s *Scenario) cheapest(load Load) []int {
	choice := make([]int, len(s.Models))
	for m, ranks := range s.Ranked(load) {
		choice[m] = ranks[0]
	}
	return choice
}

// Ranked are the variants of each model in the order of what they cost for the rate that
// they serve at the mean shape of the load; last, by their prices, those that serve
// nothing. Equals stay in the order of the scenario.
func (s *Scenario) Ranked(load Load) [][]int {
	all := make([][]int, len(s.Models))
	for m := range s.Models {
		shape := load.Mean(m)
		rates := make([]float64, len(s.Models[m].Variants))
		for v := range rates {
			rates[v] = float64(s.Serves(m, v, shape))
			all[m] = append(all[m], v)
		}
		slices.SortStableFunc(all[m], func(a, b int) int {
			first, second := float64(s.Models[m].Variants[a].Cost), float64(s.Models[m].Variants[b].Cost)
			switch {
			case rates[a] > 0 && rates[b] > 0:
				return cmp.Compare(first*rates[b], second*rates[a])
			case rates[a] > 0 || rates[b] > 0:
				return cmp.Compare(rates[b], rates[a])
			default:
				return cmp.Compare(first, second)
			}
		})
	}
	return all
}
