package churn

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// tiny is a world with nodes of 8 devices, by type, and variants to be given.
func tiny(nodes ...capacity.Accelerator) *world {
	w := &world{cluster: &placement.Cluster{}}
	for _, a := range nodes {
		all := placement.Resources{Devices: 8, Pods: podsPerNode}
		w.cluster.Nodes = append(w.cluster.Nodes, placement.Node{Name: string(a), Accelerator: a, Allocatable: all, Free: all})
	}
	return w
}

// with adds a variant that wants so many replicas and has one on each of the nodes.
func (w *world) with(devices, target int, accelerators []capacity.Accelerator, nodes ...int) *variant {
	v := &variant{kind: &kind{accelerators: accelerators, devices: devices}, target: target, wave: wave{mean: float64(target)}}
	for _, a := range accelerators {
		v.requests = append(v.requests, placement.Request{Shape: capacity.Shape{Accelerator: a, Devices: devices, Pods: 1}})
	}
	w.variants = append(w.variants, v)
	for _, node := range nodes {
		w.start(v, node)
	}
	return v
}

var (
	h100 = []capacity.Accelerator{"H100"}
	a100 = []capacity.Accelerator{"A100"}
	both = []capacity.Accelerator{"A100", "H100"}
)

func TestAccountingOfPending(t *testing.T) {
	w := tiny("H100", "H100", "A100")
	w.with(6, 2, h100, 0, 1) // leaves two free on each
	w.with(4, 2, h100)       // four are free in sum, not in one place
	w.with(8, 1, both, 2)    // takes the A100 node
	w.with(2, 3, a100)       // nothing is free
	w.with(5, 1, both)       // the four that are free do not suffice
	w.with(1, 0, h100, 0)    // one too many is not pending
	w.stop(w.variants[5], 0)
	var s sums
	s.add(w)
	assert.Equal(t, sums{wanted: 12 + 8 + 8 + 6 + 5, pending: 8 + 6 + 5, pendingThoughFree: 8}, s)
	assert.InDelta(t, 100*19.0/39, s.pct(s.pending), 1e-9)
	assert.Zero(t, sums{}.pct(0), "no demand")
}

func TestStopMovesTheLastReplicaIntoTheGap(t *testing.T) {
	w := tiny("H100", "H100", "H100")
	v := w.with(3, 0, h100, 0, 1, 2)
	w.stop(v, 0)
	assert.Equal(t, []int{2, 1}, v.nodes)
	assert.Equal(t, 8, w.cluster.Nodes[0].Free.Devices)
	leave(w, &fixed{[][]int{{0, 1}}})
	assert.Empty(t, v.nodes)
	assert.Equal(t, w.cluster.Nodes[0].Free, w.cluster.Nodes[2].Free)
}

type fixed struct{ all [][]int }

func (f *fixed) victims(*world) [][]int { return f.all }

// Every player keeps the books: nothing is given away twice, nobody runs more than
// is wanted, and nothing waits that has room.
func TestEveryPlayerKeepsTheBooks(t *testing.T) {
	for _, s := range scenarios() {
		for _, by := range players() {
			targets := stream(7, streamTargets)
			w := newWorld(&s, 92, targets)
			p, c := by.policy(w, stream(7, streamPolicy)), by.chooser(stream(7, streamVictims))
			order := stream(7, streamOrder)
			for step := range 25 {
				for _, v := range w.variants {
					v.target = v.wave.target(step, targets)
				}
				leave(w, c)
				for _, v := range w.variants {
					require.LessOrEqual(t, len(v.nodes), v.target, "%s: what is too many is gone", by.name)
				}
				place(w, p, order)
				checkBooks(t, &s, w, by.name)
			}
		}
	}
}

func checkBooks(t *testing.T, s *scenario, w *world, name string) {
	t.Helper()
	free := s.cluster()
	for _, v := range w.variants {
		for _, node := range v.nodes {
			require.GreaterOrEqual(t, v.kind.order(free.Nodes[node].Accelerator), 0, "%s: an accepted type", name)
			free.Nodes[node].Free = free.Nodes[node].Free.Minus(v.takes())
		}
	}
	for i := range free.Nodes {
		f := free.Nodes[i].Free
		require.Equal(t, f, w.cluster.Nodes[i].Free, name)
		require.True(t, f.Devices >= 0 && f.MilliCPU >= 0, "%s: %+v", name, f)
	}
	for _, v := range w.variants {
		for i := 0; v.missing() > 0 && i < len(free.Nodes); i++ {
			_, fits := w.fits(v, i)
			require.False(t, fits, "%s: nothing waits that has room", name)
		}
	}
}

func TestPlayersMeetTheSameTargets(t *testing.T) {
	s := oneType()
	s.steps, s.warmUp = 60, 10
	var wanted []int64
	for _, by := range players() {
		wanted = append(wanted, run(&s, 94, by, 3).wanted)
	}
	for _, w := range wanted {
		assert.Equal(t, wanted[0], w)
	}
	assert.NotEqual(t, run(&s, 94, players()[0], 4).wanted, wanted[0])
}

func TestQueueIsInRandomOrder(t *testing.T) {
	// Two pods for one place: each gets it about as often.
	first := 0
	for seed := range uint64(400) {
		w := tiny("H100")
		large, small := w.with(8, 1, h100), w.with(1, 1, h100)
		place(w, scored{mostAllocated, stream(seed, streamPolicy)}, stream(seed, streamOrder))
		require.Equal(t, 1, len(large.nodes)+len(small.nodes))
		first += len(large.nodes)
	}
	assert.InDelta(t, 200, first, 50)
}

func chanceForTest() *rand.Rand { return stream(9, streamPolicy) }
