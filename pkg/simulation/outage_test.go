package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// long is a request of 20 s: its prompt takes 20 ms and each token 11 ms.
const longInput, longOutput = 100, 1800

func outs(w *watched) (all []string) {
	for _, n := range w.Cluster().Nodes {
		all = append(all, n.Out)
	}
	return all
}

func failures(w *watched) (failed int) {
	for _, d := range w.done {
		if d.Failed {
			failed++
		}
	}
	return failed
}

// A node stops at 10 s with two of three replicas. Their requests fail at once and no
// more go there. The cluster knows 50 s later, and gives up its pods after another 300 s.
func TestFailedNode(t *testing.T) {
	w := world(t, simulation.WorldOptions{
		Cluster: nodes(2, 1), Startup: simulation.Startup{Mean: 30 * s}, Drain: time.Minute,
		Events: []simulation.NodeEvent{{At: 10 * s, Node: 0, Kind: simulation.Failed}},
	}, single(3))
	for range 3 {
		w.arrive(t, 5*s, longInput, longOutput)
	}
	w.Advance(10 * s)
	assert.Equal(t, 2, failures(w), "two have one request each")
	var shown []simulation.Stage
	for _, r := range w.Replicas(only) {
		shown = append(shown, r.Stage)
		assert.Equal(t, r.Node == 0, r.Silent)
		assert.Equal(t, r.Node == 1, r.Answers())
	}
	assert.Equal(t, []simulation.Stage{simulation.Serving, simulation.Serving, simulation.Serving}, shown, "nobody knows yet")
	assert.Equal(t, []string{"", ""}, outs(w))

	for range 4 {
		w.arrive(t, 20*s, longInput, longOutput)
	}
	w.Advance(60*s - 1)
	assert.Len(t, w.done, 7, "the third replica has served all of them")
	assert.Equal(t, 2, failures(w))
	assert.Equal(t, []string{"", ""}, outs(w))
	w.Advance(60 * s)
	assert.Equal(t, []string{"not ready", ""}, outs(w))
	for _, r := range w.Replicas(only) {
		if r.Node == 0 {
			assert.Equal(t, simulation.NotReady, r.Stage)
			assert.Equal(t, 60*s, r.Unready)
		}
	}
	assert.Zero(t, w.Unplaced(), "a replica that is not ready is one of those that are wanted")
	w.Advance(360*s - 1)
	assert.Len(t, w.Replicas(only), 3)
	assert.Zero(t, w.Unplaced())
	w.Advance(360 * s)
	assert.Len(t, w.Replicas(only), 3)
	assert.Equal(t, 2, w.Unplaced(), "others are wanted in the place of the two")
	assert.Equal(t, 2, w.Cluster().Nodes[0].Free.Devices)
}

// What the scheduler sends to a node that nobody knows to be dead does not start.
func TestNobodyKnowsYetThatANodeFailed(t *testing.T) {
	w := world(t, simulation.WorldOptions{
		Cluster: nodes(1), Startup: simulation.Startup{Mean: s},
		Events: []simulation.NodeEvent{{At: 0, Node: 0, Kind: simulation.Failed}, {At: 400 * s, Node: 0, Kind: simulation.Restored}},
	}, single(0))
	w.Advance(5 * s)
	w.Scale(only, 1, nil)
	w.Advance(350*s - 1)
	require.Len(t, w.Replicas(only), 1)
	assert.Equal(t, simulation.Placed, w.Replicas(only)[0].Stage)
	assert.Equal(t, "small-00000", w.Replicas(only)[0].Name)
	w.Advance(350 * s)
	assert.Equal(t, "small-00001", w.Replicas(only)[0].Name, "another one in its place")
	assert.Equal(t, 1, w.Unplaced())
	w.Advance(401 * s)
	assert.True(t, func() bool { r := w.Replicas(only)[0]; return r.Answers() }(), "when the node is back")
	assert.Equal(t, []string{""}, outs(w))
}

// A node that comes back before its replicas were given up starts them again.
func TestFailedNodeThatComesBackSoon(t *testing.T) {
	for name, back := range map[string]time.Duration{"before anybody knew": 30 * s, "before they were evicted": 200 * s} {
		t.Run(name, func(t *testing.T) {
			w := world(t, simulation.WorldOptions{
				Cluster: nodes(1), Startup: simulation.Startup{Mean: 30 * s},
				Events: []simulation.NodeEvent{{At: 10 * s, Kind: simulation.Failed}, {At: back, Kind: simulation.Restored}},
			}, single(1))
			w.arrive(t, 5*s, longInput, longOutput)
			w.arrive(t, 15*s, longInput, longOutput)
			w.Advance(back)
			assert.Equal(t, []simulation.Replica{{
				Name: "small-00000", Stage: simulation.Placed, Placed: back, Ready: -1, Restarts: 1,
			}}, w.Replicas(only))
			w.Advance(time.Hour)
			assert.Equal(t, 1, failures(w))
			assert.Len(t, w.done, 2, "the second request has waited at the router")
			assert.Equal(t, back+30*s, w.Replicas(only)[0].Ready)
			assert.Equal(t, []string{""}, outs(w))
		})
	}
}

func TestCordonedNode(t *testing.T) {
	w := world(t, simulation.WorldOptions{
		Cluster: nodes(4), Startup: simulation.Startup{Mean: s},
		Events: []simulation.NodeEvent{{At: 10 * s, Kind: simulation.Cordoned}, {At: 20 * s, Kind: simulation.Restored}},
	}, single(1))
	w.arrive(t, 5*s, longInput, longOutput)
	w.Advance(12 * s)
	w.Scale(only, 2, nil)
	assert.Equal(t, []string{"cordoned"}, outs(w))
	assert.Equal(t, 1, w.Unplaced())
	w.Advance(time.Minute)
	assert.Zero(t, w.Unplaced())
	assert.Zero(t, failures(w), "who is there stays")
	assert.Equal(t, 20*s, w.Replicas(only)[1].Placed)
}

func TestDrainedNode(t *testing.T) {
	w := world(t, simulation.WorldOptions{
		Cluster: nodes(1, 2), Startup: simulation.Startup{Mean: 30 * s}, Drain: 18 * s,
		Events: []simulation.NodeEvent{{At: 10 * s, Node: 0, Kind: simulation.Drained}},
	}, single(2))
	require.Equal(t, 1, w.Replicas(only)[1].Node, "on different nodes")
	w.arrive(t, 5*s, longInput, longOutput)
	w.arrive(t, 5*s, longInput, longOutput)
	w.arrive(t, 9500*ms, longInput, longOutput)
	w.Advance(10 * s)
	assert.Len(t, w.Replicas(only), 3, "another one is created at once")
	assert.Equal(t, simulation.Leaving, w.Replicas(only)[0].Stage)
	assert.Equal(t, []string{"cordoned", ""}, outs(w))
	assert.Equal(t, 1, w.Replicas(only)[2].Node)
	w.Advance(time.Hour)
	assert.Len(t, w.Replicas(only), 2)
	assert.Equal(t, 1, failures(w), "what came half a second before had no time to end")
	assert.Equal(t, 1, w.Cluster().Nodes[0].Free.Devices)
}

// A spot node is taken away with two minutes' notice, and comes back.
func TestReclaimedNode(t *testing.T) {
	for name, c := range map[string]struct {
		drain  time.Duration
		failed int
	}{
		"drain until the end of the notice": {5 * time.Minute, 1},
		"drain of a minute":                 {time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, simulation.WorldOptions{
				Cluster: nodes(1, 1), Startup: simulation.Startup{Mean: 30 * s}, Drain: c.drain,
				Events: []simulation.NodeEvent{
					{At: 10 * s, Kind: simulation.Reclaimed, Notice: 120 * s}, {At: 300 * s, Kind: simulation.Restored},
				},
			}, single(1))
			require.Zero(t, w.Replicas(only)[0].Node)
			// Of 20, 100 and 200 s.
			w.arrive(t, 5*s, 100, 1800)
			w.arrive(t, 5*s, 100, 9_000)
			w.arrive(t, 5*s, 100, 18_000)
			w.Advance(10 * s)
			assert.Equal(t, []string{"being removed by Karpenter", ""}, outs(w))
			assert.Equal(t, simulation.Leaving, w.Replicas(only)[0].Stage)
			assert.Equal(t, 1, w.Replicas(only)[1].Node, "the other one goes elsewhere")
			w.Scale(only, 2, nil)
			assert.Equal(t, 1, w.Unplaced(), "the node takes no more")
			w.Advance(130*s - 1)
			assert.Equal(t, 8, w.Cluster().Nodes[0].Allocatable.Devices, "until the notice is over")
			w.Advance(130 * s)
			assert.Equal(t, c.failed, failures(w))
			assert.Equal(t, []string{"gone", ""}, outs(w))
			assert.Equal(t, placement.Resources{}, w.Cluster().Nodes[0].Allocatable)
			slots, err := w.Cluster().Slots(of(1))
			require.NoError(t, err)
			assert.Zero(t, slots)
			assert.Equal(t, 1, w.Unplaced())
			w.Advance(time.Hour)
			assert.Equal(t, []string{"", ""}, outs(w))
			assert.Equal(t, 300*s, w.Replicas(only)[1].Placed)
			assert.Equal(t, placement.Resources{Devices: 8, MilliCPU: 64_000, MemoryBytes: 1 << 40, Pods: 110}, w.Cluster().Nodes[0].Allocatable)
			assert.Zero(t, w.Cluster().Nodes[0].Free.Devices)
		})
	}
}

// Who is scaled down goes first where it is not ready, and last where nobody knows.
func TestScaleDownTakesWhatIsNotReady(t *testing.T) {
	for at, gone := range map[time.Duration]string{20 * s: "small-00001", 70 * s: "small-00000"} {
		w := world(t, simulation.WorldOptions{
			Cluster: nodes(1, 1), Startup: simulation.Startup{Mean: s},
			Events: []simulation.NodeEvent{{At: 10 * s, Kind: simulation.Failed}},
		}, single(2))
		require.Zero(t, w.Replicas(only)[0].Node)
		w.Advance(at)
		w.Scale(only, 1, nil)
		assert.Equal(t, gone, w.moves[len(w.moves)-1].Replica, "at %s", at)
		assert.Len(t, w.Replicas(only), 1)
	}
}

func TestImpossibleNodeEvents(t *testing.T) {
	for says, e := range map[string]simulation.NodeEvent{
		"is of the node of index 1; expected one below 1": {Node: 1, Kind: simulation.Failed},
		"node-0 is at -1s; expected at least 0":           {At: -s, Kind: simulation.Failed},
		"is of kind 0; expected one from 1 to 5":          {},
		"is of kind 6; expected one from 1 to 5":          {Kind: 6},
		"the notice of node node-0 at 0s is -1s":          {Kind: simulation.Reclaimed, Notice: -s},
	} {
		_, err := simulation.NewWorld(simulation.WorldOptions{
			Cluster: nodes(8), Models: []simulation.ServedModel{{ID: "m", Variants: []simulation.ServedVariant{single(0)}}},
			Events: []simulation.NodeEvent{e},
		})
		assert.ErrorContains(t, err, says)
	}
}
