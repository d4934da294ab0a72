package replay

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// played is a play of the scenario with no luck in it.
func played(t *testing.T, s *Scenario, source Source, policy string, startup time.Duration) play {
	t.Helper()
	plays, err := prepare(&Options{
		Scenario: s, Source: source, Policies: []string{policy}, Startups: []time.Duration{startup}, Seed: 1, Record: true,
	})
	require.NoError(t, err)
	return plays[0]
}

// staged is a run that has not begun.
func staged(t *testing.T, s *Scenario, length time.Duration, policy Policy) *stage {
	t.Helper()
	p := played(t, s, sourceOf(io.EOF, arrival(length.Seconds()-0.5, 10, 10)), "static:1", time.Minute)
	stage, err := newStage(&p, policy, p.initial())
	require.NoError(t, err)
	return stage
}

// answered is a request of so many tokens with its latencies in milliseconds.
func answered(arrived time.Duration, output int, ttft, itl float64) simulation.Outcome {
	first := arrived + time.Duration(ttft*float64(time.Millisecond))
	return simulation.Outcome{
		Arrived: arrived, FirstToken: first, Finished: first + time.Duration(itl*float64(output-1)*float64(time.Millisecond)),
		Input: 10, Output: output,
	}
}

func TestAttainment(t *testing.T) {
	failed := simulation.Outcome{Arrived: time.Second, Input: 10, Output: 10, Failed: true, Variant: -1}
	tests := map[string]struct {
		slo  capacity.SLO
		of   simulation.Outcome
		want bool
	}{
		"both kept":                        {capacity.SLO{TTFT: 1000, ITL: 40}, answered(0, 11, 999, 39), true},
		"both just kept":                   {capacity.SLO{TTFT: 1000, ITL: 40}, answered(0, 11, 1000, 40), true},
		"the first token too late":         {capacity.SLO{TTFT: 1000, ITL: 40}, answered(0, 11, 1001, 39), false},
		"the others too slow":              {capacity.SLO{TTFT: 1000, ITL: 40}, answered(0, 11, 999, 40.1), false},
		"one token has no others":          {capacity.SLO{TTFT: 1000, ITL: 40}, answered(0, 1, 999, 0), true},
		"one token too late":               {capacity.SLO{TTFT: 1000, ITL: 40}, answered(0, 1, 1001, 0), false},
		"nothing promised of first tokens": {capacity.SLO{ITL: 40}, answered(0, 11, 99_999, 39), true},
		"nothing promised of the others":   {capacity.SLO{TTFT: 1000}, answered(0, 11, 999, 9999), true},
		"failed":                           {capacity.SLO{TTFT: 1000, ITL: 40}, failed, false},
		"failed without a promise":         {capacity.SLO{}, failed, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := small()
			s.Models[0].SLO = test.slo
			stage := staged(t, s, time.Minute, fleet{})
			stage.measure.outcome(test.of)
			result, recording := stage.measure.finish(stage)
			want := 0.0
			if test.want {
				want = 1
			}
			assert.InDelta(t, want, result.Attainment, 0)
			assert.Equal(t, 1, result.Requests)
			assert.Equal(t, test.of.Failed, result.Failed == 1)
			assert.Equal(t, 1, recording.Models[0].Samples[0].Requests)
			assert.Equal(t, int(want), recording.Models[0].Samples[0].Met)
		})
	}
}

func TestLatenciesAreOfTheRequestsThatEnded(t *testing.T) {
	stage := staged(t, small(), time.Minute, fleet{})
	for i := range 100 {
		stage.measure.outcome(answered(0, 11, float64(100-i), float64(i+1)/2))
	}
	stage.measure.outcome(answered(0, 1, 7, 0))
	stage.measure.outcome(simulation.Outcome{Output: 10, Failed: true})
	result, _ := stage.measure.finish(stage)
	// 101 first tokens: 1 to 100 ms, and a second one of 7 ms.
	assert.Equal(t, Percentiles{P50: 50, P95: 95, P99: 99}, result.TTFT)
	assert.Equal(t, Percentiles{P50: 25, P95: 47.5, P99: 49.5}, result.ITL, "a request of one token has no time between tokens")
	assert.Equal(t, []int{102, 1}, []int{result.Requests, result.Failed})
	assert.InDelta(t, 0.794118, result.Attainment, 0, "81 of 102: one failed, and twenty took more than 40 ms per token")
}

func TestPercentiles(t *testing.T) {
	assert.Equal(t, Percentiles{}, percentilesOf(nil))
	assert.Equal(t, Percentiles{P50: 3, P95: 3, P99: 3}, percentilesOf([]float32{3}))
	assert.Equal(t, Percentiles{P50: 1, P95: 2, P99: 2}, percentilesOf([]float32{2, 1}))
	// Nearest rank says: the smallest value that so many per cent do not exceed.
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]float32, 1+random.IntN(150))
		for i := range values {
			values[i] = float32(random.IntN(50))
		}
		slow := func(percent int) float64 {
			for least := range 50 {
				below := 0
				for _, v := range values {
					if v <= float32(least) {
						below++
					}
				}
				if 100*below >= percent*len(values) {
					return float64(least)
				}
			}
			return -1
		}
		want := Percentiles{P50: slow(50), P95: slow(95), P99: slow(99)}
		require.Equal(t, want, percentilesOf(slices.Clone(values)))
	}
}

// moves tells a measure of the steps of one replica.
func moves(m *measure, variant int, name string, steps ...simulation.Move) {
	for _, step := range steps {
		step.Replica, step.Variant = name, simulation.VariantIndex{Variant: variant}
		m.move(step)
	}
}

func TestReplicasCostFromTheirNodeToTheirEnd(t *testing.T) {
	s := small()
	s.Models[0].Variants[1].Request.Shape.Devices = 4
	stage := staged(t, s, time.Hour, fleet{})
	m := stage.measure
	clear(m.since) // the replicas of the start are not the point here
	at := func(minutes int, stage simulation.Stage) simulation.Move {
		return simulation.Move{At: time.Duration(minutes) * time.Minute, Stage: stage}
	}
	// 30 minutes: what it waits for a node is free, what it starts and drains is not.
	moves(m, 0, "a", at(2, simulation.Created), at(10, simulation.Placed), at(15, simulation.Serving), at(38, simulation.Leaving), at(40, simulation.Gone))
	// None: no node ever held it.
	moves(m, 0, "b", at(2, simulation.Created), at(20, simulation.Gone))
	// 15 minutes: it drains beyond the end of the trace.
	moves(m, 1, "c", at(45, simulation.Placed), at(58, simulation.Leaving), at(65, simulation.Gone))
	// None: it got its node after the end.
	moves(m, 1, "d", at(61, simulation.Placed), at(64, simulation.Gone))
	result, _ := m.finish(stage)
	assert.InDelta(t, 0.75, result.ReplicaHours, 0)
	assert.InDelta(t, 0.5*1+0.25*4, result.GPUHours, 0)
	assert.InDelta(t, 0.5*2+0.25*3, result.Cost, 0)
	assert.InDelta(t, result.Cost/stage.bound.Cost, result.CostOverBound, 1e-4)
}

func TestReplicasThatStayCostToTheEndOfTheTrace(t *testing.T) {
	p := played(t, small(), short(t, workload.Point{Rate: 1}, workload.Point{At: 10 * time.Minute, Rate: 1}), "static:3", time.Minute)
	performed := p.perform()
	require.NoError(t, performed.err)
	length := p.load.length()
	// One serves from the start; two more are asked for at once and hold a node at once.
	assert.InDelta(t, 3*length.Hours(), performed.result.ReplicaHours, 1e-6)
	assert.InDelta(t, 3*length.Hours(), performed.result.GPUHours, 1e-6)
	assert.InDelta(t, 6*length.Hours(), performed.result.Cost, 1e-6)
	assert.Equal(t, []int{1, 0, 0}, []int{performed.result.ScaleEvents, performed.result.Flips, performed.result.UnplaceableReplicas})
}

func TestScaleEventsAndFlips(t *testing.T) {
	tests := map[string]struct {
		wants         []int
		events, flips int
	}{
		"nothing":               {[]int{1, 1, 1}, 0, 0},
		"up in steps":           {[]int{2, 4, 4, 5}, 3, 0},
		"down first":            {[]int{0, 3}, 2, 1},
		"up, down and up":       {[]int{3, 2, 1, 2}, 4, 2},
		"a pause is no new way": {[]int{3, 3, 5, 5, 4}, 3, 1},
		"back and forth":        {[]int{2, 1, 2, 1}, 4, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			script := &scripted{every: 10 * time.Second, answer: func(round int, _ *View) Answer {
				n := test.wants[min(round, len(test.wants)-1)]
				return Answer{Replicas: [][]int{{n, 1}}}
			}}
			p := played(t, small(), sourceOf(io.EOF, arrival(0, 1, 1), arrival(100, 1, 1)), "static:1", time.Minute)
			performed := p.with(script, [][]int{{1, 1}})
			require.NoError(t, performed.err)
			assert.Equal(t, test.events, performed.result.ScaleEvents)
			assert.Equal(t, test.flips, performed.result.Flips)
			assert.Len(t, performed.recording.Decisions, test.events)
		})
	}
}

func TestEachVariantFlipsForItself(t *testing.T) {
	answers := [][]int{{2, 1}, {2, 0}, {3, 0}, {3, 1}}
	script := &scripted{every: 10 * time.Second, answer: func(round int, _ *View) Answer {
		return Answer{Replicas: [][]int{answers[min(round, len(answers)-1)]}}
	}}
	p := played(t, small(), sourceOf(io.EOF, arrival(0, 1, 1), arrival(100, 1, 1)), "static:1", time.Minute)
	performed := p.with(script, [][]int{{1, 1}})
	require.NoError(t, performed.err)
	assert.Equal(t, 4, performed.result.ScaleEvents)
	assert.Equal(t, 1, performed.result.Flips)
}

func TestTimeWithTooFewReplicas(t *testing.T) {
	// What is asked for at once is there after half a minute of start-up.
	s := small()
	s.Variation = 0
	p := played(t, s, short(t, workload.Point{Rate: 40}, workload.Point{At: 2 * time.Minute, Rate: 40}), "static:1", 30*time.Second)
	least := p.initial()[0]
	require.Greater(t, least[0], 1, "the load needs more than one replica")
	script := func(n int) *scripted {
		return &scripted{every: time.Hour, answer: func(int, *View) Answer { return Answer{Replicas: [][]int{{n, least[1]}}} }}
	}
	few := p.with(script(least[0]-1), [][]int{{least[0] - 1, least[1]}})
	late := p.with(script(least[0]+4), [][]int{{least[0] - 1, least[1]}})
	enough := p.with(script(least[0]+4), [][]int{{least[0] + 4, least[1]}})
	assert.InDelta(t, p.load.length().Seconds(), few.result.UnderProvisionedSeconds, 0)
	assert.InDelta(t, 30, late.result.UnderProvisionedSeconds, 1)
	assert.Zero(t, enough.result.UnderProvisionedSeconds)
}

func TestMostReplicasWithoutANode(t *testing.T) {
	answers := []int{8, 11, 9, 3}
	script := &scripted{every: 10 * time.Second, answer: func(round int, _ *View) Answer {
		return Answer{Replicas: [][]int{{answers[min(round, len(answers)-1)], 0}}}
	}}
	p := played(t, small(), sourceOf(io.EOF, arrival(0, 1, 1), arrival(100, 1, 1)), "static:1", time.Minute)
	performed := p.with(script, [][]int{{1, 0}})
	require.NoError(t, performed.err)
	assert.Equal(t, 3, performed.result.UnplaceableReplicas, "eight devices hold eight of eleven replicas")
}

func TestLengthOfARunIsThatOfItsLoad(t *testing.T) {
	for _, last := range []float64{0, 0.999, 1, 59.2, 60, 61.5, 125} {
		p := played(t, small(), sourceOf(io.EOF, arrival(0, 10, 10), arrival(last, 10, 10)), "static:1", time.Minute)
		performed := p.perform()
		require.NoError(t, performed.err)
		want := time.Duration(int(last)+1) * time.Second
		assert.Equal(t, want, p.load.length())
		assert.Equal(t, want, performed.recording.Length)
		assert.Equal(t, 2, performed.result.Requests, "all requests are within it")
	}
}

func TestRequestsThatNobodyServesHaveFailed(t *testing.T) {
	p := played(t, small(), sourceOf(io.EOF, arrival(0, 10, 10), arrival(70, 10, 10)), "static:0", time.Minute)
	performed := p.with(&scripted{every: time.Hour, answer: func(int, *View) Answer { return Answer{Replicas: [][]int{{0, 0}}} }}, [][]int{{0, 0}})
	require.NoError(t, performed.err)
	r := performed.result
	assert.Equal(t, []int{2, 2}, []int{r.Requests, r.Failed})
	assert.Zero(t, r.Attainment)
	assert.Zero(t, r.Cost)
	assert.Equal(t, Percentiles{}, r.TTFT)
	assert.InDelta(t, 71, r.UnderProvisionedSeconds, 0)
}
