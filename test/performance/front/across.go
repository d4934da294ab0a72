package front

import "math"

// Mean is the geometric mean of the verdicts of some trials: how much dearer or cheaper
// something is over all of them. owns and others are by trial. Its noise is found by
// leaving out one seed of all trials at a time, so that what their runs share does not
// count twice.
//
// Where some verdicts are only bounds to one side, so is the mean: its place is Above, at
// most so large, or Below, at least so large. Bounds to both sides say nothing: Nowhere.
func Mean(owns []Entry, others [][]Entry) (ratio, noise float64, place Place) {
	seeds, place := math.MaxInt, Within
	for i := range owns {
		seeds = min(seeds, len(owns[i].Runs))
		place = both(place, Judge(owns[i], others[i]).Place)
	}
	if len(owns) == 0 || place == Nowhere {
		return math.NaN(), math.NaN(), Nowhere
	}
	ratio, noise = jackknife(seeds, func(without int) float64 {
		sum := 0.0
		for i := range owns {
			own := owns[i].mean(without)
			cost, _ := frontOf(complete(others[i], len(owns[i].Runs)), without).CostAt(min(Enough, own.Attainment))
			sum += math.Log(own.Cost / cost)
		}
		return math.Exp(sum / float64(len(owns)))
	})
	return ratio, noise, place
}

// both is what is known of a mean of two numbers.
func both(a, b Place) Place {
	switch {
	case a == Within:
		return b
	case b == Within || a == b:
		return a
	}
	return Nowhere
}

// Together is one policy with one setting over several trials, as one entry: for each seed
// its mean attainment, and the geometric mean of its costs, each in units of its trial.
// All trials need runs of the same seeds.
func Together(trials []Entry, units []float64) Entry {
	all := Entry{Family: trials[0].Family, Setting: trials[0].Setting, Runs: make([]Point, len(trials[0].Runs))}
	n := float64(len(trials))
	for seed := range all.Runs {
		logs := 0.0
		for t := range trials {
			all.Runs[seed].Attainment += trials[t].Runs[seed].Attainment / n
			logs += math.Log(trials[t].Runs[seed].Cost/units[t]) / n
		}
		all.Runs[seed].Cost = math.Exp(logs)
	}
	return all
}
