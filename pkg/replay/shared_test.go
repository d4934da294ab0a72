package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// attained is the share of requests that keep their latency when so many replicas of one
// variant serve a constant load whose requests come so many at a time.
func attained(t *testing.T, s *Scenario, variant, replicas int, rate, copies float64) float64 {
	t.Helper()
	const length = 20 * time.Minute
	requests, held, err := hold(func() (workload.Stream, error) {
		singles, err := chat(t, 7, workload.Point{Rate: rate / copies}, workload.Point{At: length, Rate: rate / copies})()
		if err != nil {
			return nil, err
		}
		return workload.Rate(singles, copies, workload.MinSpread, 3)
	})
	require.NoError(t, err)
	load, err := Measure(s, held, 1)
	require.NoError(t, err)
	bound, err := s.Bound(load)
	require.NoError(t, err)
	trial := &Trial{scenario: s, source: held, requests: requests, seed: 1, load: load, bound: bound, choice: []int{variant}}
	p := play{Trial: trial, policy: "static", startup: time.Minute}
	f := newFleet(s, p.choice, []int{replicas})
	done := p.with(f, f.replicas)
	require.NoError(t, done.err)
	require.Greater(t, float64(done.result.Requests), 0.8*rate*length.Seconds())
	return float64(done.result.Attainment)
}

// The rate that bursts are said to leave each replica is held against simulated servers:
// at it requests keep their latency, and at a quarter more, fewer do.
func TestSharedRateHoldsInTheSimulatedServers(t *testing.T) {
	const h200 = 2
	s := roomy()
	shape := capacity.TokenShape{Input: 1155, Output: 211}
	for _, c := range []struct {
		replicas int
		copies   float64
	}{{1, 1}, {2, 5}, {6, 1}, {6, 20}, {20, 20}, {30, 5}} {
		t.Run(fmt.Sprintf("%d replicas, %v at a time", c.replicas, c.copies), func(t *testing.T) {
			queue, ok := serving.NewQueue(s.Models[0].Variants[h200].Profile, shape, serving.Shared(c.copies, c.replicas))
			require.True(t, ok)
			each := queue.MaxRate(s.Models[0].SLO, 0.99)
			rate := each * capacity.Rate(c.replicas)
			shared, _ := serving.SharedRate(s.Models[0].Variants[h200].Profile, shape, 0.97*rate, c.copies, s.Models[0].SLO, 0.99)
			require.InDelta(t, c.replicas, serving.Sharing(0.97*rate, shared), 0.05*float64(c.replicas), "it is the rate of so many")

			kept := attained(t, s, h200, c.replicas, float64(rate), c.copies)
			more := attained(t, s, h200, c.replicas, 1.25*float64(rate), c.copies)
			assert.GreaterOrEqual(t, kept, 0.98)
			assert.Less(t, more, kept-0.03)
		})
	}
}
