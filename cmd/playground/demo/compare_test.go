package demo

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

func TestTheRivalIsTheCheapestThatKeepsThePromiseAsOften(t *testing.T) {
	run := func(name string, attainment, cost float64) replay.Result {
		return replay.Result{Policy: name, Attainment: attainment, Cost: cost}
	}
	for name, c := range map[string]struct {
		others []replay.Result
		want   string
	}{
		"the cheapest of those as good":  {[]replay.Result{run("a", 0.99, 5), run("b", 0.95, 3), run("c", 0.94, 1)}, "b"},
		"in any order":                   {[]replay.Result{run("c", 0.94, 1), run("b", 0.95, 3), run("a", 0.99, 5)}, "b"},
		"none is as good: the best":      {[]replay.Result{run("a", 0.90, 5), run("b", 0.93, 9), run("c", 0.50, 1)}, "b"},
		"of equally good ones the least": {[]replay.Result{run("a", 0.90, 5), run("b", 0.90, 4)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, rival(run("ours", 0.95, 2), c.others).Policy)
		})
	}
}

// Both autoscalers have the same traffic, and each some success with it.
func TestComparisons(t *testing.T) {
	o, err := parse([]string{"--duration", "60s", "--mode", modeCapacityOnly}, io.Discard)
	require.NoError(t, err)
	all, err := plan{Options: o, models: scenario()}.comparisons()
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, c := range all {
		assert.Equal(t, modeCapacityOnly, c.Own.Policy)
		assert.Regexp(t, "^hpa:inflight=", c.HPA.Policy)
		for _, one := range []float64{c.Own.Attainment, c.HPA.Attainment} {
			assert.Greater(t, one, 0.2)
		}
		assert.GreaterOrEqual(t, c.Own.CostOverBound, 0.9)
		assert.GreaterOrEqual(t, c.HPA.CostOverBound, 0.9)
	}
}
