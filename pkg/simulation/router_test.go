package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// inFlight are the requests of every replica of the model, by variant.
func (w *watched) inFlight(variants int) (all [][]int) {
	for v := range variants {
		var of []int
		for _, r := range w.Replicas(second(v)) {
			of = append(of, r.Metrics.Running+r.Metrics.Waiting)
		}
		all = append(all, of)
	}
	return all
}

func TestLeastLoaded(t *testing.T) {
	w := world(t, simulation.WorldOptions{}, single(3))
	for range 4 {
		w.arrive(t, 0, 100, 1000)
	}
	assert.Equal(t, [][]int{{2, 1, 1}}, w.inFlight(1), "of equals the oldest")
	w.arrive(t, s, 100, 1)
	w.arrive(t, s, 100, 1000)
	w.Advance(s + 500*ms)
	assert.Equal(t, [][]int{{2, 1, 2}}, w.inFlight(1), "the short one has ended")
	w.arrive(t, s+500*ms, 100, 1000)
	assert.Equal(t, [][]int{{2, 2, 2}}, w.inFlight(1))
}

func TestWeights(t *testing.T) {
	double := variant("double", 1, 1)
	double.Weight = 2
	w := world(t, simulation.WorldOptions{}, single(1), double)
	for range 9 {
		w.arrive(t, 0, 100, 100)
	}
	assert.Equal(t, [][]int{{3}, {6}}, w.inFlight(2))
}

// Requests wait in order of arrival while nothing serves, and go out when the first
// replica comes to serve. What came to the router early has waited for its first token.
func TestWaitingAtTheRouter(t *testing.T) {
	w := world(t, simulation.WorldOptions{Startup: simulation.Startup{Mean: 10 * s}}, single(0))
	const requests = 40
	for i := range requests {
		w.arrive(t, time.Duration(i)*100*ms, 100, 1+i)
	}
	assert.Equal(t, simulation.Gateway{Queue: requests}, w.Gateway(0))
	w.Scale(only, 2, nil)
	w.Advance(w.Now() + 10*s)
	assert.Equal(t, simulation.Gateway{Dispatched: requests}, w.Gateway(0))
	w.Finish(time.Hour)
	for i, d := range w.done {
		assert.Equal(t, 1+i, d.Output, "in order of arrival")
		assert.Equal(t, time.Duration(i)*100*ms, d.Arrived)
	}
	first := w.Replicas(only)[0].Metrics
	assert.EqualValues(t, requests, first.Finished, "the first to serve got all of them")
	assert.Less(t, first.FirstToken/requests, 2*s, "the server counts from when a request came to it")
}

func TestRequestsThatNeverFit(t *testing.T) {
	small := single(1)
	small.Profile.KVTokens = 100
	w := world(t, simulation.WorldOptions{}, small)
	w.arrive(t, s, 100, 2)
	assert.Equal(t, []simulation.Outcome{{Arrived: s, Input: 100, Output: 2, Failed: true}}, w.done)
	w.arrive(t, s, 100, 1)
	assert.Equal(t, [][]int{{1}}, w.inFlight(1))
	w.Finish(2 * s)
	assert.Len(t, w.done, 2)
}

func TestRefusedArrivals(t *testing.T) {
	w := world(t, simulation.WorldOptions{}, single(1))
	w.Advance(s)
	for want, a := range map[string]simulation.Arrival{
		"for the model of index 1":  {Model: 1, Request: workload.Request{Arrival: s, Input: 1, Output: 1}},
		"for the model of index -1": {Model: -1, Request: workload.Request{Arrival: s, Input: 1, Output: 1}},
		"of 0 prompt":               {Request: workload.Request{Arrival: s, Output: 1}},
		"0 generated tokens":        {Request: workload.Request{Arrival: s, Input: 1}},
		"it is 1s already":          {Request: workload.Request{Arrival: s - 1, Input: 1, Output: 1}},
	} {
		assert.ErrorContains(t, w.Arrive(a), want)
	}
	w.Finish(s)
	assert.Empty(t, w.done)
	assert.Equal(t, s, w.Now())
}
