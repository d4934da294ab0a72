package front

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry has the same runs but for a small change with each seed, up and down.
func entry(name string, attainment, cost, change float64, seeds int) Entry {
	e := Entry{Family: name, Setting: name}
	for i := range seeds {
		sign := float64(i%2*2 - 1)
		e.Runs = append(e.Runs, Point{attainment + 0.001*sign*change, cost * (1 + sign*change)})
	}
	return e
}

// rivals are the settings of a policy: dearer ones attain more.
func rivals(seeds int) []Entry {
	var all []Entry
	for i := range 9 {
		all = append(all, entry("rival", 0.90+0.01*float64(i), 100+10*float64(i), 0.001, seeds))
	}
	return all
}

func TestWhoDominatesAndWhoIsDominated(t *testing.T) {
	for name, tc := range map[string]struct {
		own            Entry
		ratio          float64
		place          Place
		cheap, notDear Answer
	}{
		// The front costs 150 at 95 %.
		"as good as the front":                 {entry("own", 0.95, 150, 0.001, 4), 1, Within, Fails, NotShown},
		"dominates: a fifth cheaper":           {entry("own", 0.95, 120, 0.001, 4), 0.8, Within, Holds, Holds},
		"dominated: a fifth dearer":            {entry("own", 0.95, 180, 0.001, 4), 1.2, Within, Fails, Fails},
		"between two settings of the rival":    {entry("own", 0.955, 0.8*155, 0.001, 4), 0.8, Within, Holds, Holds},
		"attains more than any, and cheaper":   {entry("own", 0.99, 144, 0.001, 4), 0.8, Above, Holds, Holds},
		"attains more than any, for more":      {entry("own", 0.99, 216, 0.001, 4), 1.2, Above, NotShown, NotShown},
		"attains less than any, and dearer":    {entry("own", 0.8, 120, 0.001, 4), 1.2, Below, Fails, Fails},
		"attains less than any, and cheaper":   {entry("own", 0.8, 80, 0.001, 4), 0.8, Below, NotShown, NotShown},
		"cheaper by less than the noise":       {entry("own", 0.95, 148, 0.1, 4), 148. / 150, Within, NotShown, NotShown},
		"one run, of which nobody knows the ±": {entry("own", 0.95, 120, 0, 1), 0.8, Within, NotShown, NotShown},
	} {
		t.Run(name, func(t *testing.T) {
			v := Judge(tc.own, rivals(len(tc.own.Runs)))
			assert.InDelta(t, tc.ratio, v.Ratio, 0.003)
			assert.Equal(t, tc.place, v.Place)
			assert.Equal(t, tc.cheap, v.AtMost(0.9), "at most 0.9, with %v", v)
			assert.Equal(t, tc.notDear, v.AtMost(1), "at most 1, with %v", v)
		})
	}
}

func TestWhoKeepsAllIsHeldAgainstWhatIsEnough(t *testing.T) {
	others := []Entry{entry("rival", 0.9, 100, 0, 2), entry("rival", 0.9996, 150, 0, 2)}
	for _, own := range []float64{0.9995, 0.9999, 1} {
		v := Judge(entry("own", own, 120, 0, 2), others)
		assert.Equal(t, Within, v.Place, own)
		assert.InDelta(t, 0.8, v.Ratio, 1e-3, own)
	}
}

func TestWhatTheFrontAttainsAtTheSameCost(t *testing.T) {
	v := Judge(entry("own", 0.95, 165, 0, 2), rivals(2))
	assert.InDelta(t, 0.965, v.FrontAttainment, 1e-4)
	assert.Equal(t, Within, v.CostPlace)
	v = Judge(entry("own", 0.95, 90, 0, 2), rivals(2))
	assert.Equal(t, Below, v.CostPlace, "the rival has nothing so cheap")
}

// What the front costs and attains is as unsure as the seeds make it: here each of its points,
// and ours with it, is a tenth dearer with one seed and a tenth cheaper with the other.
func TestTheNoiseOfWhatTheFrontCosts(t *testing.T) {
	others := []Entry{
		{Setting: "a", Runs: []Point{{0.9, 90}, {0.9, 110}}}, {Setting: "b", Runs: []Point{{0.96, 180}, {0.96, 220}}},
	}
	v := Judge(Entry{Runs: []Point{{0.93, 150}, {0.93, 150}}}, others)
	assert.InDelta(t, 150, v.FrontCost, 1e-9)
	assert.InDelta(t, 15, v.FrontNoise.Cost, 1e-9, "135 with one seed and 165 with the other")
	assert.InDelta(t, 0.93, v.FrontAttainment, 1e-9)
	low, high := 0.9+0.06*40/110, 0.9+0.06*60/90
	assert.InDelta(t, (high-low)/2, v.FrontNoise.Attainment, 1e-9)
	assert.InDelta(t, (150./135-150./165)/2, v.Noise, 1e-9)
	assert.True(t, math.IsNaN(Judge(Entry{Runs: []Point{{0.93, 150}}}, []Entry{{Runs: []Point{{0.93, 100}}}}).FrontNoise.Cost), "one seed says nothing of it")
}

func TestNobodyToBeJudgedAgainst(t *testing.T) {
	for name, others := range map[string][]Entry{"none": nil, "none with all seeds": rivals(2)} {
		t.Run(name, func(t *testing.T) {
			v := Judge(entry("own", 0.95, 90, 0, 3), others)
			assert.Equal(t, Nowhere, v.Place)
			assert.True(t, math.IsNaN(v.Ratio))
			assert.Equal(t, NotShown, v.AtMost(1))
		})
	}
}

// What all runs of a seed share, such as a hard day, is no noise of the ratio.
func TestNoiseIsPaired(t *testing.T) {
	own, others := entry("own", 0.95, 120, 0.1, 4), []Entry{entry("rival", 0.95, 150, 0.1, 4)}
	together := Judge(own, others)
	assert.InDelta(t, 0.8, together.Ratio, 1e-12)
	assert.InDelta(t, 0, together.Noise, 1e-9)
	others[0].Runs[0], others[0].Runs[1] = others[0].Runs[1], others[0].Runs[0]
	assert.Greater(t, Judge(own, others).Noise, 0.01)
}

func TestJackknifeIsTheStandardErrorOfAMean(t *testing.T) {
	values := []float64{1, 2, 4, 9}
	mean := func(without int) float64 {
		sum, n := 0.0, 0.0
		for i, v := range values {
			if i != without {
				sum, n = sum+v, n+1
			}
		}
		return sum / n
	}
	// Mean 4; squares 9+4+0+25 = 38; sd = sqrt(38/3); se = sd / 2.
	value, se := jackknife(len(values), mean)
	assert.InDelta(t, 4, value, 1e-12)
	assert.InDelta(t, math.Sqrt(38./3)/2, se, 1e-12)
	_, se = jackknife(1, func(int) float64 { return 7 })
	assert.True(t, math.IsNaN(se))
}

func TestMarginFollowsStudent(t *testing.T) {
	assert.InDelta(t, 6.314, margin(1, 2), 1e-9)
	assert.InDelta(t, 2.920, margin(1, 3), 1e-9)
	assert.InDelta(t, 1.833, margin(1, 10), 1e-9)
	assert.InDelta(t, 1.645, margin(1, 11), 1e-9)
	assert.True(t, math.IsInf(margin(math.NaN(), 1), 1))
}

func TestTheMeanOverTrials(t *testing.T) {
	one, two := entry("own", 0.95, 120, 0.001, 3), entry("own", 0.95, 300, 0.001, 3)
	ratio, noise, place := Mean([]Entry{one, two}, [][]Entry{rivals(3), rivals(3)})
	assert.InDelta(t, math.Sqrt(0.8*2), ratio, 0.003)
	assert.Equal(t, Within, place)
	assert.False(t, math.IsNaN(noise))

	above := entry("own", 0.99, 120, 0.001, 3)
	_, _, place = Mean([]Entry{one, above}, [][]Entry{rivals(3), rivals(3)})
	assert.Equal(t, Above, place, "one part is at most so large, so the mean is")
	below := entry("own", 0.5, 120, 0.001, 3)
	ratio, _, place = Mean([]Entry{below, above}, [][]Entry{rivals(3), rivals(3)})
	assert.Equal(t, Nowhere, place, "bounds to both sides bound nothing")
	assert.True(t, math.IsNaN(ratio))
}

func TestOneSettingOverSeveralTrials(t *testing.T) {
	a := Entry{Family: "f", Setting: "s", Runs: []Point{{0.9, 20}, {1, 40}}}
	b := Entry{Family: "f", Setting: "s", Runs: []Point{{0.5, 50}, {0.6, 100}}}
	all := Together([]Entry{a, b}, []float64{10, 100})
	require.Len(t, all.Runs, 2)
	assert.InDelta(t, 0.7, all.Runs[0].Attainment, 1e-12)
	assert.InDelta(t, 1, all.Runs[0].Cost, 1e-12, "twice its unit here, half of it there")
	assert.InDelta(t, 0.8, all.Runs[1].Attainment, 1e-12)
	assert.InDelta(t, 2, all.Runs[1].Cost, 1e-12)
}
