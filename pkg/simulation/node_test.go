package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
		w := world(t, simulation.WorldOptions{Cluster: nodes(8)}, variant("small", 1, 2), variant("large", 8, 1))
		assert.Equal(t, 2, w.Unplaced())
		assert.Zero(t, w.Replicas(second(1))[0].Node)
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
	t.Run("the beginning may have too little room", func(t *testing.T) {
		w := world(t, simulation.WorldOptions{Cluster: nodes(3)}, variant("small", 2, 2))
		assert.Equal(t, 1, w.Unplaced())
	})
}

// Every replica goes to the node with the best score of a table made for the moment,
// the oldest first, and the world leaves the cluster of its options alone.
func TestReplicasGoWhereTheScoreSays(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 3))
		free := make([]int, 10)
		for i := range free {
			free[i] = random.IntN(9)
		}
		f := field{wanted: make([]int, 4), held: make([]int, 4), on: make([][]int, 4)}
		for i, devices := range []int{1, 2, 4, 8} {
			v := variant(fmt.Sprint("v", i), devices, 0)
			v.Max = random.IntN(12) - 1
			f.variants = append(f.variants, v)
			f.on[i] = make([]int, len(free))
		}
		c := nodes(free...)
		f.Cluster = c.Clone()
		w := world(t, simulation.WorldOptions{Cluster: c}, f.variants...)
		for range 20 {
			at := random.IntN(len(f.variants))
			var victims []string
			if r := w.Replicas(second(at)); f.held[at] > 0 && random.IntN(2) == 0 {
				r = slices.DeleteFunc(r, func(r simulation.Replica) bool { return r.Node < 0 })
				victim := r[random.IntN(len(r))]
				victims = append(victims, victim.Name)
				f.wanted[at]--
				f.change(at, victim.Node, -1)
			} else {
				for range 1 + random.IntN(3) {
					f.wanted[at]++
					f.waiting = append(f.waiting, at)
				}
			}
			w.Scale(second(at), f.wanted[at], victims)
			f.place()
			assert.Equal(t, f.Nodes, w.Cluster().Nodes, "seed %d", seed)
			assert.Equal(t, len(f.waiting), w.Unplaced(), "seed %d", seed)
		}
		assert.Equal(t, nodes(free...), c)
	}
}

// field is the slow reference of nodes and the replicas on them.
type field struct {
	*placement.Cluster
	variants []simulation.ServedVariant
	// wanted and held count the replicas of each variant, on those on each node.
	wanted, held []int
	on           [][]int
	// waiting are the variants of the replicas without a node, the oldest first.
	waiting []int
}

func (f *field) change(v, node, by int) {
	if by > 0 {
		f.Put(f.variants[v].Request, node)
	} else {
		f.Remove(f.variants[v].Request, node)
	}
	f.held[v] += by
	f.on[v][node] += by
}

func (f *field) place() {
	var left []int
	for _, v := range f.waiting {
		if node := f.best(v); node >= 0 {
			f.change(v, node, 1)
		} else {
			left = append(left, v)
		}
	}
	f.waiting = left
}

// best is the best node for one more replica of a variant, or -1.
func (f *field) best(v int) int {
	var outlook placement.Outlook
	for i, o := range f.variants {
		outlook = append(outlook, placement.Expecting(o.Request.Shape, f.wanted[i]-f.held[i], f.held[i], o.Max))
	}
	table := placement.NewTable(outlook, f.Cluster)
	best, most := -1, int64(0)
	for i := range f.Nodes {
		if !f.Fits(f.variants[v].Request, i) {
			continue
		}
		mates := 0
		if f.wanted[v] == 2 || f.wanted[v] == 3 {
			mates = f.on[v][i]
		}
		if score := table.Score(&f.Nodes[i], f.variants[v].Request.Shape, 0, mates); best < 0 || score > most {
			best, most = i, score
		}
	}
	return best
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
