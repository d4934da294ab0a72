package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// With whole devices only, what the pods of this study lose is what the scheduler's
// model says, and the choice is the one that it would make.
func TestOnWholeDevicesTheLossIsThatOfPlacement(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	compared := 0
	for range 40 {
		s := syntheticOf(t, random, 3+random.IntN(8), 12+random.IntN(20), []int{whole})
		o := newOurs(s)
		c := newCluster(s, random.Perm(len(s.Nodes)))
		for i := range c.Members {
			m := &c.Members[i]
			m.take(&Class{MilliCPU: int64(random.IntN(int(m.MilliCPU)/2000)) * 2000, Devices: random.IntN(int(m.Count) + 1), Share: whole}, 0)
		}
		o.Start(c, 0)
		cluster, outlook := asCluster(s, c), asOutlook(s)
		tables := placement.NewTable(outlook, cluster)
		for class := range s.Classes {
			compared += compare(t, o, class, cluster, tables)
		}
	}
	assert.Greater(t, compared, 1500)
}

// compare compares every node that the class fits on, and returns how many there were.
func compare(t *testing.T, o *ours, class int, cluster *placement.Cluster, tables *placement.Table) int {
	t.Helper()
	choice, found := o.Choose(&Pod{}, class)
	k := &o.study.Classes[class]
	scarce := o.scarcity(k)
	compared, least := 0, math.Inf(1)
	for i := range cluster.Nodes {
		n := &cluster.Nodes[i]
		if !o.cluster.Members[i].fits(k, &Pod{}) {
			continue
		}
		shape := capacity.Shape{Devices: k.Devices, Pods: 1, MilliCPU: k.MilliCPU}
		if k.Devices > 0 {
			shape.Accelerator = n.Accelerator
		}
		want := float64(tables.Loss(n, shape)) / placement.Unit
		got := o.loss(i, o.outcomesOf(i, class)[0], scarce)
		require.InDelta(t, want, got, 1e-4*max(1, math.Abs(want)), "%+v on %+v", k, n)
		least = min(least, got)
		compared++
	}
	require.Equal(t, compared > 0, found)
	if found {
		require.InDelta(t, least, o.loss(choice.Node, o.outcomesOf(choice.Node, class)[0], scarce), 1e-9*max(1, math.Abs(least)))
	}
	return compared
}

func asCluster(s *Study, c *Cluster) *placement.Cluster {
	cluster := &placement.Cluster{}
	for i := range c.Members {
		m := &c.Members[i]
		all := placement.Resources{Devices: int(m.Count), MilliCPU: 1 << 20, MemoryBytes: 1 << 50, Pods: 1 << 10}
		free := all
		free.Devices, free.MilliCPU = m.empty(), int64(m.MilliCPU)
		cluster.Nodes = append(cluster.Nodes, placement.Node{Accelerator: capacity.Accelerator(s.names[m.Model]), Allocatable: all, Free: free})
	}
	return cluster
}

func asOutlook(s *Study) placement.Outlook {
	var outlook placement.Outlook
	for i := range s.Classes {
		c := &s.Classes[i]
		e := placement.Expected{Shape: capacity.Shape{Devices: c.Devices, Pods: 1, MilliCPU: c.MilliCPU}, Weight: c.Count}
		if c.Devices > 0 {
			for j, name := range strings.Split(c.accepts, "|") {
				if j == 0 {
					e.Shape.Accelerator = capacity.Accelerator(name)
				} else {
					e.Also = append(e.Also, capacity.Accelerator(name))
				}
			}
		}
		outlook = append(outlook, e)
	}
	return outlook
}

// Sums that are kept from pod to pod are those of a fresh start.
func TestWhatIsKeptFromPodToPodIsRight(t *testing.T) {
	s := synthetic(t, 12, 200)
	kept, fresh := newOurs(s), newOurs(s)
	c := newCluster(s, s.stream(1).Nodes)
	kept.Start(c, 0)
	for _, i := range s.stream(1).Pods {
		p, class := &s.Pods[i], s.classOf[i]
		choice, found := kept.Choose(p, class)
		fresh.Start(c, 0)
		want, also := fresh.Choose(p, class)
		require.Equal(t, also, found)
		require.Equal(t, want, choice)
		if found {
			before := c.Members[choice.Node].State
			c.place(p, &s.Classes[class], choice)
			kept.Placed(choice.Node, &before)
		}
	}
	fresh.Start(c, 0)
	require.Equal(t, fresh.slots.sums, kept.slots.sums)
	require.Equal(t, fresh.freeOf, kept.freeOf)
}

func TestSlotsWithShares(t *testing.T) {
	classes := []Class{
		{MilliCPU: 4000, Devices: 1, Share: 300, Models: 1}, {MilliCPU: 8000, Devices: 1, Share: whole, Models: 1},
		{MilliCPU: 8000, Devices: 2, Share: whole, Models: 1}, {MilliCPU: 1000, Devices: 1, Share: 500, Models: 2}, {MilliCPU: 1000},
	}
	k := newSlotCounter(&Study{Classes: classes})
	for _, test := range []struct {
		name  string
		state State
		want  []uint16
	}{
		{"each device for itself", stateOf(0, 9000, 290, 700, whole, whole, whole), []uint16{0 + 2 + 9, 3, 1, 0}},
		{"the CPU suffices for one of them", stateOf(0, 4000, whole, whole), []uint16{6, 0, 0, 0}},
		{"CPU just suffices", stateOf(0, 8000, whole, whole), []uint16{6, 2, 1, 0}},
		{"another model", stateOf(1, 9000, 600, whole), []uint16{0, 0, 0, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, k.counts[k.of(&test.state)])
		})
	}
	a, b := stateOf(0, 8000, whole), stateOf(0, 8001, whole)
	assert.Equal(t, k.of(&a), k.of(&b), "CPU that suffices for the same is the same")
}

func TestOffer(t *testing.T) {
	half, one, two, cpu := offered{1000, 1, 500}, offered{1000, 1, whole}, offered{1000, 2, whole}, offered{3000, 0, 0}
	for _, test := range []struct {
		name  string
		state State
		order []offered
		want  int
	}{
		{"shares go to the tightest device", stateOf(0, 9000, 600, whole), []offered{half, one}, 100},
		{"what does not fit is passed over", stateOf(0, 9000, 0, 600, whole), []offered{two, one, half}, 100},
		{"two need two", stateOf(0, 9000, whole, whole, whole), []offered{two, half, two}, 500},
		{"pods without devices take the CPU", stateOf(0, 3500, whole), []offered{cpu, one}, 1000},
		{"it ends when nothing is free", stateOf(0, 2000, whole, whole), []offered{two, two, cpu}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, offer(test.state, test.state.free(), test.order))
		})
	}
}

// With shares of 0.65, 0.32 and 0.23 the best cutting has 0.65 and 0.32 on one device, so
// that a rest of 0.35 is worth what a 0.32 costs, and a rest of 0.12 nothing.
func TestGapValues(t *testing.T) {
	classes := []Class{
		{Devices: 1, Share: 650, Popularity: 0.3}, {Devices: 1, Share: 320, Popularity: 0.4},
		{Devices: 1, Share: 230, Popularity: 0.2}, {Devices: 4, Share: whole, Popularity: 0.1}, {Popularity: 1},
	}
	gaps := gapValues(classes)
	assert.InDelta(t, 1, gaps[whole], 1e-9)
	assert.InDelta(t, 1.0/3, gaps[350], 1e-9)
	assert.InDelta(t, 2.0/3, gaps[650], 1e-9)
	assert.InDelta(t, 1.0/4, gaps[230], 1e-9, "four to a device")
	assert.Zero(t, gaps[229])
	assert.True(t, slices.IsSorted(gaps), "more is never worth less")
}

func TestGapValuesOfMixes(t *testing.T) {
	for _, test := range []struct {
		name   string
		shares []int
	}{
		{"whole devices alone", []int{whole}},
		{"halves", []int{500}},
		{"thousandths", []int{1}},
		{"many", []int{50, 110, 140, 160, 220, 230, 270, 290, 320, 330, 350, 370, 440, 460, 470, 480, 550, 590, 650, 810, whole}},
	} {
		t.Run(test.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			var classes []Class
			for _, share := range test.shares {
				classes = append(classes, Class{Devices: 1, Share: share, Popularity: random.Float64()})
			}
			gaps := gapValues(classes)
			assert.InDelta(t, 1, gaps[whole], 1e-9)
			for gap := range gaps {
				for _, share := range test.shares {
					if rest := gap - share; rest >= 0 {
						require.LessOrEqual(t, gaps[rest]+gaps[share], gaps[gap]+1e-9, "parts are never worth more than the whole")
					}
				}
			}
		})
	}
}

func TestOursKeepsThePatternsOfTheBestCutting(t *testing.T) {
	pods := []Pod{}
	for i := range 60 {
		pods = append(pods, Pod{Name: string(rune('A' + i)), Devices: 1, Share: []int{650, 320, 320, 230}[i%4]})
	}
	s, err := newStudy([]Node{{Name: "n", Model: "A", Devices: 8}}, pods)
	require.NoError(t, err)
	o := newOurs(s)
	c := newCluster(s, []int{0})
	c.Members[0].State = stateOf(0, 0, 350, 770)
	o.Start(c, 0)
	choice, found := o.Choose(&Pod{}, slices.IndexFunc(s.Classes, func(c Class) bool { return c.Share == 230 }))
	require.True(t, found)
	assert.Equal(t, Choice{Node: 0, Free: 770}, choice, "although the gap of 350 is tighter")
}
