package demo

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEveryVariantKeepsItsPromiseAtOneRequest(t *testing.T) {
	for _, m := range scenario() {
		for _, v := range m.Variants {
			at := v.Profile.Steady(1, m.tokens())
			assert.Less(t, at.TTFT, m.SLO.TTFT, v.Name)
			assert.Less(t, at.ITL, m.SLO.ITL, v.Name)
			assert.Positive(t, v.Profile.MaxRate(m.tokens(), m.SLO, 1), v.Name)
			assert.Positive(t, v.Profile.Concurrency(m.tokens()), v.Name)
		}
	}
}

func TestTheMeasureOfTheTrafficReachesItsBatchLimitWithinThePromise(t *testing.T) {
	for _, m := range scenario() {
		v := m.Variants[0]
		at := v.Profile.Steady(batchLimit, m.tokens())
		assert.LessOrEqual(t, at.ITL, m.SLO.ITL, v.Name)
		assert.InDelta(t, 4*float64(at.Rate), peak(m), 1e-6, v.Name)
	}
}

func TestVariantsAreNamedAsTheObjectsDemand(t *testing.T) {
	form := regexp.MustCompile(`^.+-[A-Za-z0-9_-]+-[1-9][0-9]*$`)
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	seen := map[string]bool{}
	for _, m := range scenario() {
		assert.LessOrEqual(t, len(m.ID), 128)
		for _, v := range m.Variants {
			assert.Regexp(t, form, v.variantID(m))
			assert.Regexp(t, name, v.Name)
			assert.False(t, seen[v.Name], "%s comes twice", v.Name)
			seen[v.Name] = true
		}
	}
}

func TestEveryVariantHasNodesThatItFitsOn(t *testing.T) {
	for _, m := range scenario() {
		for _, v := range m.Variants {
			slots := 0
			for _, g := range nodeGroups {
				if g.Shape.Product == v.Product {
					slots += g.Count * (g.Shape.GPUs / v.Devices)
				}
			}
			assert.GreaterOrEqual(t, slots, 2, v.Name)
		}
	}
}

func TestKVTokensMeetsWhatTheEngineLogs(t *testing.T) {
	got := kvTokens(1, h100Memory, llama8BWeights, llama8BPerToken)
	assert.InEpsilon(t, 447_936, float64(got), 0.001)
}

func TestScaledProfileFollowsTheStatedFigures(t *testing.T) {
	from, to := llama8BOnH100(), llama8BOnL40S()
	// 6.46*1.939 = 12.524, and 65 sums of 19.8 us with one gathering of 7.6: 1.295
	assert.InDelta(t, 13.818, float64(to.Base), 0.001)
	assert.InEpsilon(t, 1.939, float64(to.PerResidentToken/from.PerResidentToken), 0.001)
	// 65*4096*2 bytes at 0.44*31.5 GB/s are 0.03842 ms; half of 128256*2 are 0.00925.
	assert.InDelta(t, 0.022*1.3664+0.03842, float64(to.PerPrefillToken), 1e-5)
	assert.InDelta(t, 0.03842+0.00925, float64(to.PerRequest), 1e-5)
}

// The published four-parameter form of a profile must predict what the profile
// itself does at the shape that it was made for.
func TestFourParametersAgreeAtTheMeanShape(t *testing.T) {
	for _, m := range scenario() {
		for _, v := range m.Variants {
			line := fourParameters(v.Profile, m.tokens()).Profile()
			for _, n := range []float64{1, 16, 64, batchLimit} {
				want, got := v.Profile.Steady(n, m.tokens()), line.Steady(n, m.tokens())
				assert.InEpsilon(t, float64(want.Rate), float64(got.Rate), 1e-9, "%s at %v", v.Name, n)
				assert.InEpsilon(t, float64(want.ITL), float64(got.ITL), 1e-9, "%s at %v", v.Name, n)
			}
		}
	}
}
