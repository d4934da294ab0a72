package closedloop

import (
	"math"
	"math/rand/v2"
)

// chance is how the requests of a model come where they come by chance.
type chance struct {
	random *rand.Rand
	// cost and capacity are sums over the steps since the load should have settled: what the
	// replicas cost that hold devices, and what those serve that serve.
	cost, capacity float64
	steps          int
}

// arrivals are those of one step, of which so many are to be expected: some come together,
// independently of the others.
func (c *chance) arrivals(mean, together float64) float64 {
	return together * c.poisson(mean/together)
}

// poisson draws a number around a mean: by the gaps between events, and where they are
// many, by the normal distribution that comes near to it.
func (c *chance) poisson(mean float64) float64 {
	const many = 64
	if mean > many {
		return max(0, math.Round(mean+math.Sqrt(mean)*c.random.NormFloat64()))
	}
	n := -1.0
	for at := 0.0; at <= mean; n++ {
		at += c.random.ExpFloat64()
	}
	return n
}

// watchChance adds what there is in one step.
func (w *world) watchChance(m *modelState) {
	if w.now <= w.scenario.settled() {
		return
	}
	for _, v := range m.variants {
		m.chance.cost += float64(v.placed()) * float64(v.cost)
		m.chance.capacity += float64(v.serves()) * v.truth.saturation.most
	}
	m.chance.steps++
}

// What may be asked of a decision that sees nothing but chance, for hours: some changes are
// right, because nobody can tell chance from the beginning of a rise.
const (
	// chanceChanges are the most in an hour, of one variant.
	chanceChanges = 20
	// chanceCost is the most that it may cost in the mean, times the cheapest mix, beside
	// chanceSpare replicas more.
	chanceCost, chanceSpare = 1.5, 2
)

// checkChance asserts that chance alone moves little, costs little and leaves nobody
// short.
func (w *world) checkChance(m *modelState) {
	hours := (watch + w.scenario.Longer).Hours()
	for _, v := range m.variants {
		changes := 0
		for _, write := range v.writes {
			if write.at > w.scenario.settled() {
				changes++
			}
		}
		if float64(changes) > chanceChanges*hours && !w.mayTurn(v, changes) {
			w.fail(CheckCycle, "%s changed %d times in %.1f hours of a load that is constant but for chance", v.key.Name, changes, hours)
		}
	}
	load := m.final()
	if load == 0 || m.unborn() || m.blind() {
		return
	}
	steps := float64(m.chance.steps)
	if mean := m.chance.capacity / steps; mean < load*(1-rounding) {
		for i, v := range m.variants {
			if each := m.saturations(mostOf)[i]; w.canAdd(v, missing(load-mean, each)) {
				w.fail(CheckShort, "%s has %.4g requests/s, what serves is saturated at %.4g in the mean, and another %s may be added (%.4g each)", m.Name, load, mean, v.key.Name, each)
				return
			}
		}
		return
	}
	if !m.halfBlind() && !w.foundLately(m) {
		w.checkDear(m, m.chance.cost/steps, chanceCost, chanceSpare)
	}
}
