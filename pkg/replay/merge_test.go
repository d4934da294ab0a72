package replay

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestMergedRequestsKnowTheirModels(t *testing.T) {
	stream, err := Merge([]Source{
		sourceOf(io.EOF, arrival(1, 10, 1), arrival(3, 11, 1)), nil, sourceOf(io.EOF, arrival(0.5, 30, 1), arrival(1, 31, 1), arrival(9, 32, 1)),
	})()
	require.NoError(t, err)
	var inputs, models []int
	for {
		r, err := stream.Next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		model, known := modelOf(stream)
		assert.True(t, known)
		inputs, models = append(inputs, r.Input), append(models, model)
	}
	assert.Equal(t, []int{30, 10, 31, 11, 32}, inputs)
	assert.Equal(t, []int{2, 0, 2, 0, 2}, models)

	broken := errors.New("broken")
	_, err = Merge([]Source{func() (workload.Stream, error) { return nil, broken }})()
	require.ErrorIs(t, err, broken)
	stream, err = Merge([]Source{sourceOf(io.EOF, arrival(1, 1, 1)), sourceOf(broken)})()
	require.NoError(t, err)
	_, err = stream.Next()
	require.ErrorIs(t, err, broken)
}

// Requests that know their models are dealt to nobody else, whatever the shares.
func TestEachModelHasTrafficOfItsOwn(t *testing.T) {
	s := two()
	s.Models[0].Share = 1000
	short := func(rate float64) *workload.Synthetic {
		return &workload.Synthetic{
			Rate:  []workload.Point{{Rate: rate}, {At: 5 * time.Minute, Rate: rate}},
			Input: workload.Lengths{Mean: 200, Max: 200}, Output: workload.Lengths{Mean: 60, Max: 60},
		}
	}
	assert.Nil(t, s.Sources(1), "nothing of its own")
	s.Models[0].Traffic, s.Models[1].Traffic = short(1), short(4)
	sources := s.Sources(1)
	require.Len(t, sources, 2)
	load, err := Measure(s, Merge(sources), 1)
	require.NoError(t, err)
	p := played(t, s, Merge(sources), "static:4", 10*time.Second)
	assert.Equal(t, load, p.load, "the same when it is held")
	done := p.perform()
	require.NoError(t, done.err)
	for m, rate := range []float64{1, 4} {
		asked, seen := 0.0, 0
		for _, minute := range load[m] {
			asked += float64(minute.Rate) * minute.Length.Seconds()
		}
		for _, sample := range done.recording.Models[m].Samples {
			seen += sample.Requests
		}
		assert.InEpsilon(t, rate*300, asked, 0.2)
		assert.InDelta(t, asked, float64(seen), 0.5)
	}
	other := s.Sources(2)
	again, err := Measure(s, Merge(other), 1)
	require.NoError(t, err)
	assert.NotEqual(t, load, again, "the seed decides")

	_, err = Measure(&Scenario{Models: make([]Model, 1)}, Merge(sources), 1)
	assert.EqualError(t, err, "there is a request of model 2; expected one of the 1 of the scenario")
}

// What happens while somebody learns counts for nothing: neither requests nor cost.
func TestLearningCountsForNothing(t *testing.T) {
	source := func(first float64) Source {
		return short(t, workload.Point{Rate: first}, workload.Point{At: 4 * time.Minute, Rate: first},
			workload.Point{At: 4 * time.Minute, Rate: 5}, workload.Point{At: 10 * time.Minute, Rate: 5})
	}
	s := small()
	s.Learning = 4 * time.Minute
	s.Models[0].Variants[0].Initial, s.Models[0].Variants[1].Initial = 2, 0
	p := played(t, s, source(60), "static:2", 10*time.Second)
	done := p.perform()
	require.NoError(t, done.err)
	r := done.result
	assert.InDelta(t, 240, r.LearningSeconds, 0)
	assert.InEpsilon(t, 6*60*5, r.Requests, 0.1)
	assert.Equal(t, p.Trial.requests, r.Requests)
	counted := (p.load.length() - s.Learning).Hours()
	assert.InDelta(t, 2*counted, r.ReplicaHours, 1e-6, "two replicas for some six minutes")
	assert.InDelta(t, 2*2*counted, r.Cost, 1e-6)
	assert.Less(t, r.Attainment, 0.9, "what the first part left behind is felt")

	// The bound costs what it would without the first part.
	later := small()
	alone := played(t, later, func() (workload.Stream, error) {
		stream, err := source(60)()
		return workload.From(stream, 4*time.Minute), err
	}, "static:1", 10*time.Second)
	whole := played(t, s, source(60), "static:1", 10*time.Second)
	assert.InDelta(t, alone.bound.Cost, whole.bound.Cost, 1e-9)
	assert.Positive(t, whole.bound.Cost)
	without := s
	without.Learning = 0
	assert.Greater(t, played(t, without, source(60), "static:1", 10*time.Second).bound.Cost, whole.bound.Cost)

	s.Learning = time.Hour
	_, _, err := Run(Options{Scenario: s, Source: source(60), Policies: []string{"static:1"}, Startups: []time.Duration{0}})
	require.EqualError(t, err, "no request comes after the first 1h0m0s, which are for learning; expected a longer trace")
	s.Learning = 90 * time.Second
	_, _, err = Run(Options{Scenario: s, Source: source(60), Policies: []string{"static:1"}, Startups: []time.Duration{0}})
	require.EqualError(t, err, "the learning takes 1m30s; expected whole minutes, at least 0")
}
