package serving

import (
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Pace is how many times as long as by the profile a token took in what was seen: the median,
// within a factor of 20. It is 1 where nothing was seen or the profile is not known. A few
// points at about one load tell no more of a profile that is wrong.
func (l Learned) Pace(p Profile) float64 {
	if !p.Known() || len(l.Seen) == 0 {
		return 1
	}
	ratios := make([]float64, len(l.Seen))
	for i, o := range l.Seen {
		ratios[i] = float64(o.Point.ITL / p.Steady(o.Point.Batch, o.Point.Shape).ITL)
	}
	slices.Sort(ratios)
	return min(max(ratios[len(ratios)/2], math.Exp(-fitFactor)), math.Exp(fitFactor))
}

// Paced is the profile of which all times are so many times as long.
func (p Profile) Paced(pace float64) Profile {
	for _, t := range []*capacity.Milliseconds{
		&p.Base, &p.PerRequest, &p.PerResidentToken, &p.PerPrefillToken, &p.Overhead, &p.PerExchanged, &p.LongExchange,
		&p.PerPair, &p.PerPrompt, &p.Gamma, &p.First.Fixed, &p.First.Cold,
		&p.Experts.Reading, &p.Experts.PerToken, &p.Experts.PerExchanged,
	} {
		*t *= capacity.Milliseconds(pace)
	}
	return p
}
