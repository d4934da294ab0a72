package simulation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const s = time.Second

// nodes are nodes of eight H100 each, of which so many are free.
func nodes(free ...int) *placement.Cluster {
	c := &placement.Cluster{}
	for i, f := range free {
		all := placement.Resources{Devices: 8, MilliCPU: 64_000, MemoryBytes: 1 << 40, Pods: 110}
		left := all
		left.Devices = f
		c.Nodes = append(c.Nodes, placement.Node{
			Name: fmt.Sprintf("node-%d", i), Accelerator: "H100", Allocatable: all, Free: left,
		})
	}
	return c
}

// of is a request of so many H100.
func of(devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: "H100", Devices: devices, Pods: 1}}
}

// single is a variant of replicas with one device each.
func single(initial int) simulation.ServedVariant {
	return simulation.ServedVariant{Name: "small", Profile: plain, Request: of(1), Max: -1, Initial: initial}
}

// watched is a world and what it told.
type watched struct {
	*simulation.World
	done  []simulation.Outcome
	moves []simulation.Move
}

// world makes a world of one model.
func world(t testing.TB, o simulation.WorldOptions, variants ...simulation.ServedVariant) *watched {
	t.Helper()
	w := &watched{}
	if o.Models == nil {
		o.Models = []simulation.ServedModel{{ID: "model", SLO: promised(), Variants: variants}}
	}
	if o.Cluster == nil {
		o.Cluster = nodes(8)
	}
	if o.Done == nil {
		o.Done = func(d simulation.Outcome) { w.done = append(w.done, d) }
	}
	o.Moved = func(m simulation.Move) { w.moves = append(w.moves, m) }
	var err error
	w.World, err = simulation.NewWorld(o)
	require.NoError(t, err)
	return w
}

// promised is what some requests of the tests keep and others miss.
func promised() capacity.SLO { return capacity.SLO{TTFT: 100, ITL: 12} }

func (w *watched) arrive(t testing.TB, at time.Duration, input, output int) {
	t.Helper()
	require.NoError(t, w.Arrive(simulation.Arrival{Request: workload.Request{Arrival: at, Input: input, Output: output}}))
}

// stages says the moves in short.
func (w *watched) stages() []string {
	names := [...]string{"", "created", "placed", "serving", "leaving", "gone", "not ready"}
	var said []string
	for _, m := range w.moves {
		said = append(said, fmt.Sprintf("%v %s %s on %d", m.At, m.Replica, names[m.Stage], m.Node))
	}
	return said
}

var only = simulation.VariantIndex{}

func TestLifeOfAReplica(t *testing.T) {
	w := world(t, simulation.WorldOptions{Startup: simulation.Startup{Mean: 30 * s}, Drain: 5 * s}, single(0))
	w.Advance(10 * s)
	w.Scale(only, 1, nil)
	assert.Equal(t, 1, w.Wanted(only))
	w.arrive(t, 20*s, 100, 3)
	assert.Equal(t, simulation.Gateway{Queue: 1}, w.Gateway(0))
	w.Advance(39 * s)
	assert.Equal(t, []simulation.Replica{{
		Name: "small-00000", Stage: simulation.Placed, Created: 10 * s, Placed: 10 * s, Ready: -1,
	}}, w.Replicas(only))
	assert.Equal(t, 7, w.Cluster().Nodes[0].Free.Devices)

	// It serves at 40 s: 20 ms of prefill, then two tokens of 11 ms each.
	w.Advance(time.Minute)
	assert.Equal(t, []simulation.Outcome{{
		Arrived: 20 * s, FirstToken: 40*s + 20*ms, Finished: 40*s + 42*ms, Input: 100, Output: 3,
	}}, w.done)
	assert.Equal(t, simulation.Gateway{Dispatched: 1}, w.Gateway(0))

	w.arrive(t, 70*s, 100, 3)
	w.Scale(only, 0, nil)
	assert.Equal(t, simulation.Leaving, w.Replicas(only)[0].Stage)
	w.Advance(80 * s)
	assert.Empty(t, w.Replicas(only))
	assert.Equal(t, 8, w.Cluster().Nodes[0].Free.Devices)
	assert.Len(t, w.done, 2)
	assert.Equal(t, []string{
		"10s small-00000 created on -1",
		"10s small-00000 placed on 0",
		"40s small-00000 serving on 0",
		"1m10s small-00000 leaving on 0",
		"1m10.042s small-00000 gone on 0",
	}, w.stages())
}
