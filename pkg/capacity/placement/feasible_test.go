package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestFeasibleIsExactForSizesThatDivideEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 2_000 {
		c := &Cluster{}
		for i := range 50 + rng.IntN(100) {
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, rng.IntN(9)))
		}
		var wants []Want
		for _, size := range []int{8, 4, 2, 1} {
			wants = append(wants, Want{Request: gpus(size, "H100"), Count: rng.IntN(40)})
		}
		got := c.Feasible(wants)
		require.True(t, got.Exact, got.Binds)
		trial := c.Clone()
		for _, w := range wants {
			for range w.Count {
				_, placed := trial.Place(w.Request)
				require.True(t, placed || !got.OK)
				if !placed {
					trial = nil
					break
				}
			}
			if trial == nil {
				break
			}
		}
		require.Equal(t, trial != nil, got.OK, "largest first is exact here")
	}
}

func TestFeasibleSaysWhatBinds(t *testing.T) {
	four := func(free int) *Cluster {
		c := &Cluster{}
		for i := range 4 {
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, free))
		}
		return c
	}
	hungry := gpus(2, "H100")
	hungry.Shape.MilliCPU = 100_000
	fat := gpus(2, "H100")
	fat.Shape.MemoryBytes = 1 << 40
	bound := gpus(1, "H100")
	bound.Bound = "pod affinity"
	unknown := gpus(1, "")
	mixed := four(6)
	mixed.Nodes[0].Free.Devices = 8
	crowded := four(8)
	for i := range crowded.Nodes {
		crowded.Nodes[i].Free.Pods = 1
	}
	cases := []struct {
		name    string
		cluster *Cluster
		wants   []Want
		want    Feasibility
	}{
		{"nothing wanted", four(0), nil, Feasibility{OK: true, Exact: true}},
		{"a negative number is none", four(0), []Want{{gpus(8, "H100"), -3}}, Feasibility{OK: true, Exact: true}},
		{"holes too small", mixed, []Want{{gpus(8, "H100"), 3}},
			Feasibility{Exact: true, Binds: "8xH100: 3 wanted, 1 fit (4 nodes with 6 to 8 free)"}},
		{"the same everywhere", four(6), []Want{{gpus(8, "H100"), 3}},
			Feasibility{Exact: true, Binds: "8xH100: 3 wanted, 0 fit (4 nodes with 6 free each)"}},
		{"another type", four(8), []Want{{gpus(8, "A100"), 1}},
			Feasibility{Exact: true, Binds: "8xA100: 1 wanted, 0 fit (no node takes them)"}},
		{"CPU of one", four(8), []Want{{hungry, 5}},
			Feasibility{Exact: true, Binds: "2xH100: 5 wanted, 4 fit (CPU: 100 cores each, 4 nodes)"}},
		{"memory of one", four(8), []Want{{fat, 9}},
			Feasibility{Exact: true, Binds: "2xH100: 9 wanted, 8 fit (memory: 1024 GiB each, 4 nodes)"}},
		{"pod slots of one", crowded, []Want{{gpus(1, "H100"), 5}},
			Feasibility{Exact: true, Binds: "1xH100: 5 wanted, 4 fit (pod slots, 4 nodes)"}},
		{"two sizes together", four(6), []Want{{gpus(4, "H100"), 4}, {gpus(2, "H100"), 5}},
			Feasibility{Exact: true, Binds: "4xH100 + 2xH100: 13 wanted, counted in pieces of 2, 12 fit (4 nodes with 6 free each)"}},
		{"CPU of two", four(8), []Want{{hungry, 4}, {&Request{Shape: capacity.Shape{MilliCPU: 92_000}}, 5}},
			Feasibility{Exact: true, Binds: "CPU for 2xH100 + no devices: 860 cores wanted, 768 cores free on 4 nodes"}},
		{"each fits alone, all arrangements fail", &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 6), gpuNode("b", "H100", 8, 1), gpuNode("c", "H100", 8, 2)}},
			[]Want{{gpus(2, "H100"), 1}, {gpus(3, "H100"), 1}, {gpus(4, "H100"), 1}},
			Feasibility{Exact: true, Binds: "1 of 2xH100, 1 of 3xH100 and 1 of 4xH100: each fits alone, and no arrangement holds them all"}},
		{"more than the model knows", four(8), []Want{{bound, 1}},
			Feasibility{OK: true, Binds: "1xH100: pod affinity"}},
		{"unknown is not none", four(8), []Want{{unknown, 1}},
			Feasibility{Binds: "the shape of a replica is unknown: it has 1 devices of no known accelerator"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, c.cluster.Feasible(c.wants))
		})
	}
}

func BenchmarkFeasible(b *testing.B) {
	c := benchCluster(5_000)
	var chain, mixed []Want
	for i, size := range []int{8, 4, 2, 1} {
		chain = append(chain, Want{Request: gpus(size, "H100"), Count: 50 << i})
	}
	for _, e := range outlookOf(50) {
		mixed = append(mixed, Want{Request: &Request{Shape: e.Shape}, Count: 10})
	}
	for name, wants := range map[string][]Want{"chain": chain, "mixed": mixed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = c.Feasible(wants)
			}
		})
	}
}
