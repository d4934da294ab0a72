package simulation_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// A replica that goes takes no more requests, finishes those in its batch and its
// queue, and what its grace period does not suffice for has failed.
func TestDraining(t *testing.T) {
	// Two prompts, one after the other, of a second each, then a token in 11 ms.
	profile := plain
	profile.BatchLimit, profile.PerPrefillToken = 1, 1
	alone := single(1)
	alone.Profile = profile
	const prompt, tokens = 989, 2
	for name, c := range map[string]struct {
		drain  time.Duration
		ended  []bool
		gone   time.Duration
		closed time.Duration
	}{
		"time enough":                        {drain: time.Minute, ended: []bool{false, false}, gone: 2020 * ms},
		"to the very end":                    {drain: 1520 * ms, ended: []bool{false, false}, gone: 2020 * ms},
		"too short for the one in the queue": {drain: s, ended: []bool{false, true}, gone: 1500 * ms},
		"none":                               {drain: 0, ended: []bool{true, true}, gone: 500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, simulation.WorldOptions{Drain: c.drain}, alone)
			w.arrive(t, 0, prompt, tokens)
			w.arrive(t, 0, prompt, tokens)
			w.Advance(500 * ms)
			w.Scale(only, 0, nil)
			w.arrive(t, 600*ms, prompt, tokens)
			assert.Equal(t, 1, w.Gateway(0).Queue, "nobody takes a new request")
			w.Advance(time.Hour)

			var ended []bool
			for _, d := range w.done {
				ended = append(ended, d.Failed)
				assert.Equal(t, d.Failed, d.Finished == 0 && d.FirstToken == 0)
				assert.Zero(t, d.Variant)
			}
			assert.Equal(t, c.ended, ended)
			last := w.moves[len(w.moves)-1]
			assert.Equal(t, simulation.Gone, last.Stage)
			assert.Equal(t, c.gone, last.At)
			assert.Equal(t, 8, w.Cluster().Nodes[0].Free.Devices)
		})
	}
}

func TestReplicasThatDoNotServeGoAtOnce(t *testing.T) {
	w := world(t, simulation.WorldOptions{Cluster: nodes(1), Startup: simulation.Startup{Mean: 30 * s}, Drain: time.Minute}, single(0))
	w.Scale(only, 2, nil)
	assert.Equal(t, 1, w.Unplaced())
	w.Advance(10 * s)
	w.Scale(only, 0, nil)
	assert.Zero(t, w.Unplaced())
	assert.Empty(t, w.Replicas(only))
	assert.Equal(t, []string{
		"0s small-00000 created on -1", "0s small-00001 created on -1", "0s small-00000 placed on 0",
		"10s small-00001 gone on -1", "10s small-00000 gone on 0",
	}, w.stages())
	w.Advance(time.Hour)
	assert.Len(t, w.moves, 5)
}

func TestIdleReplicaGoesAtOnce(t *testing.T) {
	w := world(t, simulation.WorldOptions{Drain: time.Minute}, single(1))
	w.Advance(s)
	w.Scale(only, -3, nil)
	assert.Equal(t, "1s small-00000 gone on 0", w.stages()[4])
	assert.Zero(t, w.Wanted(only))
}

func TestStartWithoutATime(t *testing.T) {
	w := world(t, simulation.WorldOptions{}, single(0))
	w.arrive(t, s, 100, 1)
	w.Scale(only, 1, nil)
	assert.Equal(t, simulation.Serving, w.Replicas(only)[0].Stage)
	assert.Zero(t, w.Gateway(0).Queue)
}

// Which ones go. Replicas 0 to 4 serve, on nodes of two devices: 0 and 1 on the first,
// 2 and 3 on the second, 4 on the third; where there are seven, 5 starts beside 4, and
// 6 has no node.
func TestWhoGoes(t *testing.T) {
	for name, c := range map[string]struct {
		from, to int
		named    []string
		stay     []string
	}{
		"first the one without a node":         {from: 7, to: 6, stay: []string{"0", "1", "2", "3", "4", "5"}},
		"then the one that starts":             {from: 7, to: 5, stay: []string{"0", "1", "2", "3", "4"}},
		"which counts where it was":            {from: 7, to: 4, stay: []string{"0", "1", "2", "3"}},
		"those beside others":                  {from: 5, to: 4, stay: []string{"0", "1", "2", "4"}},
		"as they were beside them before":      {from: 5, to: 3, stay: []string{"0", "1", "4"}},
		"the one that was alone at last":       {from: 5, to: 1, stay: []string{"4"}},
		"named ones before all others":         {from: 7, to: 5, named: []string{"4", "0"}, stay: []string{"1", "2", "3", "5", "6"}},
		"named ones in the order of the names": {from: 7, to: 6, named: []string{"2", "0"}, stay: []string{"0", "1", "3", "4", "5", "6"}},
		"names of nobody are of no account":    {from: 7, to: 5, named: []string{"9", "4"}, stay: []string{"0", "1", "2", "3", "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, simulation.WorldOptions{Cluster: nodes(2, 2, 2), Startup: simulation.Startup{Mean: s}}, single(5))
			w.Scale(only, c.from, nil)
			long := func(short []string) (names []string) {
				for _, n := range short {
					names = append(names, "small-0000"+n)
				}
				return names
			}
			var on []int
			for _, r := range w.Replicas(only) {
				on = append(on, r.Node)
			}
			require.Equal(t, []int{0, 0, 1, 1, 2, 2, -1}[:c.from], on)
			w.Scale(only, c.to, long(c.named))
			var stay []string
			for _, r := range w.Replicas(only) {
				stay = append(stay, r.Name)
			}
			assert.Equal(t, long(c.stay), stay)
		})
	}
}

// Among those on nodes as full, and among those that start, the newest go: by when
// they came to serve, not by when they were created.
func TestTheLastToServeGoesFirst(t *testing.T) {
	w := world(t, simulation.WorldOptions{
		Cluster: nodes(1, 1, 1, 1), Startup: simulation.Startup{Mean: 30 * s, Variation: 1}, Seed: 5,
	}, single(0))
	w.Scale(only, 4, nil)
	w.Advance(time.Hour)
	last, before := "", time.Duration(-1)
	for _, r := range w.Replicas(only) {
		if r.Ready > before {
			last, before = r.Name, r.Ready
		}
	}
	require.NotEqual(t, "small-00003", last, "the seed is chosen so that the youngest is not the last to serve")
	w.Scale(only, 3, nil)
	for _, r := range w.Replicas(only) {
		assert.NotEqual(t, last, r.Name)
	}
}

func TestFinish(t *testing.T) {
	t.Run("until nothing is left", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{}, single(1))
		w.arrive(t, s, 100, 3)
		w.Finish(time.Hour)
		require.Len(t, w.done, 1)
		assert.False(t, w.done[0].Failed)
		assert.Equal(t, s+42*ms, w.Now())
	})
	t.Run("what waits for a replica that starts is served", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Startup: simulation.Startup{Mean: time.Minute}}, single(0))
		w.arrive(t, 0, 100, 1)
		w.Scale(only, 1, nil)
		w.Finish(time.Hour)
		assert.Equal(t, time.Minute+20*ms, w.Now())
	})
	t.Run("what is left at the limit has failed", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Drain: time.Hour}, single(1))
		w.arrive(t, 0, 100, 1000)
		w.Advance(ms)
		w.Scale(only, 0, nil)
		w.arrive(t, s, 100, 3)
		w.Finish(2 * s)
		assert.Equal(t, 2*s, w.Now())
		assert.Equal(t, []simulation.Outcome{
			{Variant: -1, Arrived: s, Input: 100, Output: 3, Failed: true},
			{Input: 100, Output: 1000, Failed: true},
		}, w.done)
		assert.Empty(t, w.Replicas(only), "the one that drains has nothing more to do")
		assert.Zero(t, w.Gateway(0).Queue)
	})
	t.Run("a replica goes on afterwards, with all its room", func(t *testing.T) {
		v := single(1)
		v.Profile.KVTokens, v.Profile.PerResidentToken = 1200, 0.01
		w := world(t, simulation.WorldOptions{}, v)
		w.arrive(t, 0, 100, 1000)
		w.Finish(s)
		w.arrive(t, s, 1190, 3)
		w.Finish(2 * s)
		// 129 ms of prefill, then two tokens of 11 ms and 0.01 ms for each resident token.
		assert.Equal(t, simulation.Outcome{
			Arrived: s, FirstToken: s + 129*ms, Finished: s + 129*ms + 45830*time.Microsecond, Input: 1190, Output: 3,
		}, w.done[1])
	})
	t.Run("without an end", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{}, single(0))
		w.arrive(t, s, 100, 3)
		w.Finish(math.MaxInt64)
		assert.True(t, w.done[0].Failed)
	})
}

func TestStartupTimes(t *testing.T) {
	cluster := &placement.Cluster{}
	const replicas = 800
	for range 2 * replicas / 8 {
		cluster.Nodes = append(cluster.Nodes, nodes(8).Nodes...)
	}
	// times are the start-up times of the small variant, with others created between.
	times := func(seed uint64, variation float64, step, others int) (all []float64) {
		w := world(t, simulation.WorldOptions{
			Cluster: cluster, Seed: seed, Startup: simulation.Startup{Mean: time.Minute, Variation: variation},
		}, single(0), variant("other", 1, 0))
		for n := step; n <= replicas; n += step {
			w.Scale(second(1), others*n, nil)
			w.Scale(only, n, nil)
			w.Advance(w.Now() + s)
		}
		w.Advance(10 * time.Hour)
		for _, r := range w.Replicas(only) {
			all = append(all, (r.Ready - r.Placed).Seconds())
		}
		return all
	}
	all := times(1, 0.5, replicas, 0)
	require.Len(t, all, replicas)
	sum, squares := 0.0, 0.0
	for _, x := range all {
		sum += x
		squares += x * x
		assert.Positive(t, x)
	}
	mean := sum / replicas
	assert.InDelta(t, 60, mean, 2)
	assert.InDelta(t, 0.5, math.Sqrt(squares/replicas-mean*mean)/mean, 0.05)

	assert.Equal(t, all, times(1, 0.5, replicas/4, 1), "they depend on the seed and the number alone")
	assert.NotEqual(t, all, times(2, 0.5, replicas, 0))
	for _, x := range times(1, 0, replicas, 0) {
		assert.InDelta(t, 60, x, 0)
	}
}
