package serving

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Pace is how many times as long as by the profile a token took in what was seen: the median
// of the half with the larger batches, within a factor of 20. It is 1 where nothing was seen
// or the profile is not known. A few points at about one load tell no more of a profile that
// is wrong; and where those at small batches say otherwise, the profile bends wrongly, and
// they say nothing of larger ones.
func (l Learned) Pace(p Profile) float64 {
	if !p.Known() || len(l.Seen) == 0 {
		return 1
	}
	seen := slices.Clone(l.Seen)
	slices.SortStableFunc(seen, func(a, b Observation) int { return cmp.Compare(b.Point.Batch, a.Point.Batch) })
	ratios := make([]float64, (len(seen)+1)/2)
	for i := range ratios {
		at := seen[i].Point
		ratios[i] = float64(at.ITL / p.Steady(at.Batch, at.Shape).ITL)
	}
	slices.Sort(ratios)
	return min(max(ratios[len(ratios)/2], math.Exp(-fitFactor)), math.Exp(fitFactor))
}

// Like is what was seen in which a token took as long as by the profile, within a factor.
func (l Learned) Like(p Profile, factor float64) Learned {
	return Learned{Seen: slices.DeleteFunc(slices.Clone(l.Seen), func(o Observation) bool {
		pace := float64(o.Point.ITL / p.Steady(o.Point.Batch, o.Point.Shape).ITL)
		return max(pace, 1/pace) > factor
	})}
}

// Paced is the profile of which all times are so many times as long.
func (p Profile) Paced(pace float64) Profile {
	for _, t := range []*capacity.Milliseconds{
		&p.Base, &p.PerRequest, &p.PerResidentToken, &p.PerResidentBeside, &p.PerPrefillToken, &p.Overhead, &p.PerExchanged, &p.LongExchange,
		&p.PerPair, &p.PerPrompt, &p.Gamma, &p.First.Fixed, &p.First.Cold,
		&p.Experts.Reading, &p.Experts.PerToken, &p.Experts.PerExchanged,
	} {
		*t *= capacity.Milliseconds(pace)
	}
	return p
}
