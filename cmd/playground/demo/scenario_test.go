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
	assert.InDelta(t, 12.52, float64(to.Base), 0.01)
	assert.InEpsilon(t, 1.939, float64(to.PerResidentToken/from.PerResidentToken), 0.001)
	assert.InEpsilon(t, 1.366, float64(to.PerPrefillToken/from.PerPrefillToken), 0.001)
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
