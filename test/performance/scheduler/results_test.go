package scheduler

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The quantiles are those of printed tables.
func TestStudentsQuantileIsTheTables(t *testing.T) {
	for degrees, want := range map[int]float64{1: 12.706, 5: 2.571, 10: 2.228, 11: 2.201, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000, 120: 1.980} {
		assert.InDelta(t, want, studentT(degrees), 0.0006, "%d degrees of freedom", degrees)
	}
	assert.True(t, math.IsInf(studentT(0), 1), "one pair says nothing about its spread")
}

// Three ratios of 1/2, 1 and 2: the mean of the logarithms is 0, their standard
// deviation ln 2, and t with two degrees of freedom 4.3027, so that the ends are
// 2^(-+4.3027/sqrt(3)).
func TestTheIntervalIsThatOfPairedLogarithms(t *testing.T) {
	got := ratioOf([]float64{math.Log(0.5), 0, math.Log(2)})
	assert.InDelta(t, 1, got.Estimate, 1e-12)
	assert.InDelta(t, math.Exp2(-4.3027/math.Sqrt(3)), got.Low, 1e-9)
	assert.InDelta(t, math.Exp2(4.3027/math.Sqrt(3)), got.High, 1e-9)

	same := ratioOf([]float64{math.Log(1.25), math.Log(1.25)})
	assert.InDelta(t, 1.25, same.Low, 1e-12, "without spread the interval is a point")
	assert.InDelta(t, 1.25, same.High, 1e-12)
}

func TestRunsAreComparedWithinTheirPair(t *testing.T) {
	run := func(pair int, workload, scheduler string, rate, cpu float64) measured {
		return measured{Pair: pair, Workload: workload, Scheduler: scheduler, PodsPerSecond: rate, SchedulerCPUSeconds: cpu}
	}
	// The machine is half as fast in the second pair: the ratio is 1.1 all the same.
	runs := []measured{
		run(1, "one GPU", stockName, 400, 10), run(1, "one GPU", oursName, 440, 5),
		run(1, "no devices", stockName, 500, 10), run(1, "no devices", oursName, 100, 10),
		run(2, "one GPU", oursName, 220, 10), run(2, "one GPU", stockName, 200, 20),
	}
	c := compare(workload{name: "one GPU", target: 1.05}, runs)
	require.InDelta(t, 1.1, c.Ratio.Estimate, 1e-9)
	assert.InDelta(t, 1.1, c.Ratio.Low, 1e-9)
	assert.InDelta(t, 0.5, c.CPURatio.Estimate, 1e-9)
	assert.InDelta(t, math.Sqrt(400*200), c.Stock, 1e-9)
	assert.True(t, c.Met)
	assert.False(t, compare(workload{name: "one GPU", target: 1.2}, runs).Met)
}
