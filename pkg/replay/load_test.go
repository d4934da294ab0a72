package replay

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// given is a stream of given requests that ends with an error.
type given struct {
	requests []workload.Request
	err      error
}

func (g *given) Next() (workload.Request, error) {
	if len(g.requests) == 0 {
		return workload.Request{}, g.err
	}
	r := g.requests[0]
	g.requests = g.requests[1:]
	return r, nil
}

func sourceOf(err error, requests ...workload.Request) Source {
	return func() (workload.Stream, error) { return &given{requests: requests, err: err}, nil }
}

func arrival(seconds float64, input, output int) workload.Request {
	return workload.Request{Arrival: time.Duration(seconds * float64(time.Second)), Input: input, Output: output}
}

func TestMeasure(t *testing.T) {
	some := func(length time.Duration, rate capacity.Rate, input, output capacity.Tokens) Minute {
		return Minute{Length: length, Rate: rate, Shape: capacity.TokenShape{Input: input, Output: output}}
	}
	for name, tc := range map[string]struct {
		requests []workload.Request
		want     []Minute
	}{
		"whole, empty and partial minutes": {
			[]workload.Request{arrival(0, 100, 10), arrival(30, 300, 20), arrival(59.999, 200, 30), arrival(120, 10, 1), arrival(149.2, 20, 3)},
			[]Minute{some(time.Minute, 3.0/60, 200, 20), {Length: time.Minute}, some(30*time.Second, 2.0/30, 15, 2)},
		},
		"a last minute too short for a rate": {
			[]workload.Request{arrival(1, 100, 10), arrival(61.5, 100, 10)},
			[]Minute{some(time.Minute, 1.0/60, 100, 10), some(2*time.Second, 1.0/10, 100, 10)},
		},
		"the last second counts in full": {
			[]workload.Request{arrival(60, 7, 9)},
			[]Minute{{Length: time.Minute}, some(time.Second, 1.0/10, 7, 9)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			load, err := Measure(&Scenario{Models: make([]Model, 1)}, sourceOf(io.EOF, tc.requests...), 1)
			require.NoError(t, err)
			require.Len(t, load, 1)
			require.Len(t, load[0], len(tc.want))
			for i, want := range tc.want {
				assert.Equal(t, want.Length, load[0][i].Length)
				assert.InDelta(t, float64(want.Rate), float64(load[0][i].Rate), 1e-12)
				assert.Equal(t, want.Shape, load[0][i].Shape)
			}
		})
	}
}

func TestMeasureFails(t *testing.T) {
	s := &Scenario{Models: make([]Model, 1)}
	broken := errors.New("line 7 is broken")
	_, err := Measure(s, sourceOf(broken, arrival(0, 1, 1)), 1)
	require.ErrorIs(t, err, broken)
	_, err = Measure(s, func() (workload.Stream, error) { return nil, broken }, 1)
	require.ErrorIs(t, err, broken)
	_, err = Measure(s, sourceOf(io.EOF), 1)
	require.EqualError(t, err, "the trace has no requests; expected at least one")
}

func TestRequestsAreDealtByShares(t *testing.T) {
	s := &Scenario{Models: []Model{{Share: 0.5}, {}, {Share: 2.5}}}
	var requests []workload.Request
	for i := range 40_000 {
		requests = append(requests, arrival(float64(i)/1000, 1+i%7, 3))
	}
	load, err := Measure(s, sourceOf(io.EOF, requests...), 5)
	require.NoError(t, err)
	require.Len(t, load, 3)
	sum := 0.0
	for m, want := range []float64{5000, 10_000, 25_000} {
		require.Len(t, load[m], 1, "all models have the same minutes")
		got := float64(load[m][0].Rate) * load[m][0].Length.Seconds()
		assert.InDelta(t, want, got, 300)
		sum += got
	}
	assert.InDelta(t, 40_000, sum, 1e-6)

	again, err := Measure(s, sourceOf(io.EOF, requests...), 5)
	require.NoError(t, err)
	assert.Equal(t, load, again)
	other, err := Measure(s, sourceOf(io.EOF, requests...), 6)
	require.NoError(t, err)
	assert.NotEqual(t, load, other)

	one := (&Scenario{Models: []Model{{Share: 0.1}}}).deal(1)
	for range 100 {
		require.Zero(t, one(requests[0]))
	}
}

func TestServesIsWhatTheDecisionReckonsWith(t *testing.T) {
	s := roomy()
	shape := capacity.TokenShape{Input: 1155, Output: 211}
	for v := range s.Models[0].Variants {
		queue, ok := serving.NewQueue(s.Models[0].Variants[v].Profile, shape, serving.Arrivals{})
		require.True(t, ok)
		want := float64(queue.MaxRate(s.Models[0].SLO, s.Policy.Share))
		assert.InEpsilon(t, want, float64(s.Serves(0, v, shape)), 0.01)
	}
	assert.Zero(t, s.Serves(0, 0, capacity.TokenShape{}))

	load := Load{{{Length: time.Minute, Rate: 1, Shape: shape}, {Length: time.Minute}, {Length: time.Minute, Rate: 2, Shape: capacity.TokenShape{Input: 2000, Output: 50}}}}
	rates := s.Rates(load)
	require.Len(t, rates[0], 3)
	for at := range load[0] {
		for v := range s.Models[0].Variants {
			assert.Equal(t, s.Serves(0, v, load[0][at].Shape), rates[0][at][v])
		}
	}
}

func TestTheCheapestVariantIsThatForTheLoad(t *testing.T) {
	s := oneModel(6, 14)
	one, two := s.Serves(0, 0, someShape), s.Serves(0, 1, someShape)
	load := loadOf(s, 0, 1, 0, 3)
	for name, tc := range map[string]struct {
		first, second capacity.Cost
		want          int
	}{
		"the first":          {6, 6.1 * capacity.Cost(two/one), 0},
		"the second":         {6, 5.9 * capacity.Cost(two/one), 1},
		"of equal ones":      {6, 6 * capacity.Cost(two/one), 0},
		"one that is a gift": {6, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s.Models[0].Variants[0].Cost, s.Models[0].Variants[1].Cost = tc.first, tc.second
			assert.Equal(t, []int{tc.want}, s.cheapest(load))
		})
	}
	s.Models[0].Variants[0].Cost, s.Models[0].Variants[1].Cost = 6, 5
	assert.Equal(t, []int{1}, s.cheapest(loadOf(s, 0, 0)), "without any load the price decides")
	s.Models[0].Variants[1].Profile.Base = 100
	assert.Equal(t, []int{0}, s.cheapest(load), "what keeps no promise is not cheap")
}
