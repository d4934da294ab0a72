package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// tenant is a pod of somebody else on a node.
type tenant struct{ priority, devices int }

// tenancy is a scene whose nodes others share, pods of lower and of higher priority, in a
// namespace with a quota, and some of whose variants make one replica after the other.
type tenancy struct {
	Snapshot
	policy  Policy
	tenants [][]tenant
	// ranks are the priorities of the variants' pods.
	ranks map[string]int
	// charged are the variants that the quota counts, of whose devices so many are left.
	charged map[string]bool
	left    int
}

func newTenancy(c scene) *tenancy {
	s, policy := c.build()
	random := rand.New(rand.NewPCG(c.seed, 13))
	w := &tenancy{Snapshot: s, policy: policy, ranks: map[string]int{}, charged: map[string]bool{}, left: random.IntN(40) - 2}
	for i := range s.Cluster.Nodes {
		n := &s.Cluster.Nodes[i]
		var list []tenant
		for n.Free.Devices = 8; random.IntN(4) > 0; {
			one := tenant{[]int{-5, 0, 0, 7, 1000}[random.IntN(5)], 1 + random.IntN(4)}
			list, n.Free.Devices = append(list, one), n.Free.Devices-one.devices
		}
		w.tenants = append(w.tenants, list)
	}
	s.Cluster.Quotas = []placement.Quota{{Namespace: "ns", Name: "gpus", Resource: "requests.nvidia.com/gpu", Hard: 100, Left: int64(w.left)}}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			v := &s.Models[i].Variants[j]
			v.Ordered = random.IntN(3) == 0
			w.ranks[v.Name] = []int{-5, 0, 5, 9}[random.IntN(4)]
			v.Request.Yields = w.yields(w.ranks[v.Name])
			if w.charged[v.Name] = random.IntN(2) == 0; w.charged[v.Name] {
				v.Request.Charges = []placement.Amount{{Count: int64(v.Request.Shape.Devices)}}
			}
		}
	}
	return w
}

// yields is what the tenants hold that give way to that priority.
func (w *tenancy) yields(rank int) []placement.Yield {
	list := make([]placement.Yield, len(w.tenants))
	for i, tenants := range w.tenants {
		for _, t := range tenants {
			if t.priority < rank {
				list[i].Devices += t.devices
				list[i].Pods++
			}
		}
	}
	return list
}

// wanted is a replica that must find a place.
type wanted struct {
	accelerator   capacity.Accelerator
	rank, devices int
}

// fits reports whether all find a place, by trying: a node takes them where nobody of
// their priority or above has to go. It gives up, and says yes, after many tries.
func (w *tenancy) fits(wants []wanted) bool {
	on, tries := make([][]wanted, len(w.tenants)), 0
	holds := func(node int) bool {
		sum, rank := 0, -1<<30
		for _, o := range on[node] {
			sum, rank = sum+o.devices, max(rank, o.rank)
		}
		for _, t := range w.tenants[node] {
			if t.priority >= rank {
				sum += t.devices
			}
		}
		return sum <= 8
	}
	var put func(int) bool
	put = func(k int) bool {
		if tries++; k == len(wants) || tries > 100_000 {
			return true
		}
		for node := range on {
			if w.Cluster.Nodes[node].Accelerator != wants[k].accelerator {
				continue
			}
			on[node] = append(on[node], wants[k])
			if holds(node) && put(k+1) {
				return true
			}
			on[node] = on[node][:len(on[node])-1]
		}
		return false
	}
	slices.SortStableFunc(wants, func(a, b wanted) int { return b.devices - a.devices })
	return put(0)
}

// What is asked for finds a place beside what was asked for before, where others share the
// nodes and give way or do not; and in either mode no quota refuses it.
func TestWhatIsAskedForIsPlacedAmongOthers(t *testing.T) {
	added, short := 0, 0
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 1 + int(seed%4), load: 0.5 + float64(seed%9), limited: seed%3 > 0}
		w := newTenancy(c)
		plan, _ := Decide(w.Snapshot, w.policy, Memory{}, []Round{RoundFull, RoundFast, RoundEvent}[seed%3])
		var wants []wanted
		grown, awaited := 0, 0
		for i := range plan.Models {
			for j, v := range plan.Models[i].Variants {
				in := &w.Models[i].Variants[j]
				plus := max(0, *v.Desired-in.Current)
				held := in.Unscheduled() + in.NoPod() - v.Unplaced
				for range plus + held {
					wants = append(wants, wanted{in.Request.Shape.Accelerator, w.ranks[in.Name], in.Request.Shape.Devices})
				}
				if w.charged[in.Name] {
					grown += plus * in.Request.Shape.Devices
					awaited += in.NoPod() * in.Request.Shape.Devices
				}
				added += plus
			}
		}
		about := fmt.Sprintf("%v, limited %v: %v, %v, %d left", c, c.limited, wants, w.tenants, w.left)
		if grown > 0 && awaited <= w.left {
			require.LessOrEqual(t, grown+awaited, w.left, about)
			short++
		}
		if c.limited {
			require.True(t, w.fits(wants), about)
		}
	}
	assert.Greater(t, added, cases())
	assert.Greater(t, short, cases()/4)
}
