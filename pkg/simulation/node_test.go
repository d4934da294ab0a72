package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

func variant(name string, devices, initial int) simulation.ServedVariant {
	return simulation.ServedVariant{Name: name, Profile: plain, Request: of(devices), Max: -1, Initial: initial}
}

func second(v int) simulation.VariantIndex { return simulation.VariantIndex{Variant: v} }

// Eight holes of one device hold no replica of eight. It waits, and gets the node that
// empties at that very time.
func TestHolesHoldNoLargeReplica(t *testing.T) {
	w := world(t, simulation.WorldOptions{
		Cluster: nodes(1, 1, 1, 1, 1, 1, 1, 8), Startup: simulation.Startup{Mean: s}, Drain: time.Minute,
	}, variant("seven", 7, 1), variant("eight", 8, 0))
	w.Scale(second(1), 2, nil)
	assert.Equal(t, 2, w.Unplaced())
	free := 0
	for _, n := range w.Cluster().Nodes {
		free += n.Free.Devices
	}
	require.Equal(t, 8, free)

	w.arrive(t, 10*s, 100, 3)
	w.Scale(only, 0, nil)
	assert.Equal(t, 2, w.Unplaced(), "a replica that drains still holds its node")
	w.Advance(time.Minute)
	assert.Equal(t, 1, w.Unplaced())
	first := w.Replicas(second(1))[0]
	assert.Equal(t, simulation.Replica{
		Name: "eight-00001", Stage: simulation.Serving, Node: 7, Placed: 10*s + 42*ms, Ready: 11*s + 42*ms,
	}, first)
	assert.Zero(t, w.Cluster().Nodes[7].Free.Devices)

	// The oldest that waits is first.
	w.Scale(second(1), 1, []string{first.Name})
	assert.Equal(t, time.Minute, w.Replicas(second(1))[0].Placed)
	assert.Zero(t, w.Unplaced())
}

func TestWhereReplicasGo(t *testing.T) {
	t.Run("not where a larger one is expected", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Cluster: nodes(8, 4)}, variant("small", 1, 1), variant("large", 8, 0))
		assert.Equal(t, 1, w.Replicas(only)[0].Node)
	})
	t.Run("the largest of the beginning first", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Cluster: nodes(8, 2)}, variant("small", 1, 2), variant("large", 8, 1))
		assert.Zero(t, w.Unplaced())
	})
	t.Run("those of a small variant beside others, where all else is equal", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Cluster: nodes(2, 1)}, variant("small", 1, 0), variant("other", 1, 1))
		require.Equal(t, 1, w.Replicas(second(1))[0].Node)
		w.Scale(only, 1, nil)
		w.Scale(second(1), 0, nil)
		w.Scale(only, 2, nil)
		assert.Equal(t, 1, w.Replicas(only)[1].Node)
	})
	t.Run("not where they are refused", func(t *testing.T) {
		v := variant("small", 1, 1)
		v.Request.Refused = []string{"a taint", ""}
		w := world(t, simulation.WorldOptions{Cluster: nodes(1, 8)}, v)
		assert.Equal(t, 1, w.Replicas(only)[0].Node)
	})
	t.Run("as placement has it when nothing is known of mates", func(t *testing.T) {
		c := nodes(8, 5, 3, 6)
		v := variant("small", 2, 0)
		v.Max = 20
		w := world(t, simulation.WorldOptions{Cluster: c}, v)
		w.Scale(only, 11, nil)
		trial := c.Clone()
		for placed := range 10 {
			trial.Table = placement.NewTable(placement.Outlook{placement.Expecting(v.Request.Shape, 11-placed, placed, 20)}, trial)
			node, ok := trial.Place(v.Request)
			require.True(t, ok)
			assert.Equal(t, node, w.Replicas(only)[placed].Node)
		}
		assert.Equal(t, 1, w.Unplaced())
		assert.Equal(t, trial.Nodes, w.Cluster().Nodes)
		assert.Equal(t, 5, c.Nodes[1].Free.Devices, "the world has a copy of its own")
	})
	t.Run("the beginning may have too little room", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Cluster: nodes(3)}, variant("small", 2, 2))
		assert.Equal(t, 1, w.Unplaced())
	})
}

func TestWorldsThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*simulation.WorldOptions, *simulation.ServedVariant)
		want   string
	}{
		"no cluster":      {func(o *simulation.WorldOptions, _ *simulation.ServedVariant) { o.Cluster = nil }, "there is no cluster"},
		"no model":        {func(o *simulation.WorldOptions, _ *simulation.ServedVariant) { o.Models = nil }, "there is no model"},
		"no variant":      {func(o *simulation.WorldOptions, _ *simulation.ServedVariant) { o.Models[0].Variants = nil }, `model "m" has no variant`},
		"negative drain":  {func(o *simulation.WorldOptions, _ *simulation.ServedVariant) { o.Drain = -s }, "the drain time is -1s"},
		"negative start":  {func(o *simulation.WorldOptions, _ *simulation.ServedVariant) { o.Startup.Mean = -s }, "the mean start-up time is -1s"},
		"negative spread": {func(o *simulation.WorldOptions, _ *simulation.ServedVariant) { o.Startup.Variation = -1 }, "the variation of the start-up times is -1"},
		"no request": {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) { v.Request = nil },
			`model "m", variant "small": the shape of a replica is unknown`},
		"unknown accelerator": {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) {
			v.Request = &placement.Request{Shape: capacity.Shape{Devices: 1}}
		}, "it has 1 devices of no known accelerator"},
		"several pods": {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) { v.Request.Shape.Pods = 2 }, "several pods"},
		"nodes of another cluster": {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) { v.Request.Refused = []string{"", ""} },
			"the request names 2 nodes that may refuse it; expected the 1 of the cluster"},
		"no profile":       {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) { v.Profile = serving.Profile{} }, "no base time"},
		"negative weight":  {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) { v.Weight = -1 }, "the weight is -1"},
		"negative initial": {func(_ *simulation.WorldOptions, v *simulation.ServedVariant) { v.Initial = -1 }, "there are -1 initial replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			o := simulation.WorldOptions{
				Cluster: nodes(8), Models: []simulation.ServedModel{{ID: "m", Variants: []simulation.ServedVariant{single(1)}}},
			}
			c.change(&o, &o.Models[0].Variants[0])
			_, err := simulation.NewWorld(o)
			assert.ErrorContains(t, err, "simulated world: ")
			assert.ErrorContains(t, err, c.want)
		})
	}
}
