package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// firstFit takes the first node and the tightest device.
type firstFit struct {
	study   *Study
	cluster *Cluster
	told    int
}

func (f *firstFit) Start(c *Cluster, _ uint64) { f.cluster = c }

func (f *firstFit) Placed(int, *State) { f.told++ }

func (f *firstFit) Choose(p *Pod, class int) (Choice, bool) {
	c := &f.study.Classes[class]
	for i := range f.cluster.Members {
		if m := &f.cluster.Members[i]; m.fits(c, p) {
			return Choice{Node: i, Free: m.Free[m.options(c, nil)[0]]}, true
		}
	}
	return Choice{}, false
}

func TestCurveIsTheMeanOverTheArrivalsOfAPercent(t *testing.T) {
	// One device of a hundred makes a percent; pods without devices arrive too.
	nodes := []Node{{Name: "a", Devices: 8, Model: "A", MilliCPU: 100_000}, {Name: "b", Devices: 2, Model: "A"}}
	pods := []Pod{{Name: "a", Devices: 1, Share: whole}, {Name: "b", MilliCPU: 1000}, {Name: "c", Devices: 8, Share: whole}, {Name: "d", Devices: 1, Share: 500}}
	s, err := newStudy(nodes, pods)
	require.NoError(t, err)
	f := &firstFit{study: s}
	curve := replay(s, Stream{Pods: []int{0, 1, 2, 3, 1, 3}, Nodes: []int{0, 1}}, 0, f)
	assert.Zero(t, curve[9])
	assert.InDelta(t, 10, curve[10], 1e-9)
	assert.InDelta(t, 10, curve[89], 1e-9, "no arrival rounds to it: the last before")
	assert.InDelta(t, 10, curve[90], 1e-9, "eight no longer fit")
	assert.InDelta(t, 15, curve[95], 1e-9, "the mean of the share and of the pod without devices")
	assert.InDelta(t, 20, curve[100], 1e-9)
	assert.InDelta(t, 20, curve[130], 1e-9)
	assert.Equal(t, 5, f.told)
}

func TestEveryPolicyPlacesWhatFits(t *testing.T) {
	s := synthetic(t, 20, 150)
	for _, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			policy := p.make(s)
			checked := &checker{t: t, study: s, policy: policy}
			first := replay(s, s.stream(7), 7, checked)
			assert.Equal(t, first, replay(s, s.stream(7), 7, p.make(s)), "everything follows from the seed")
			assert.Equal(t, first, replay(s, s.stream(7), 7, policy), "what a policy remembers of other replays changes nothing")
			assert.Positive(t, checked.placed)
			assert.Greater(t, first[130], 60.0)
		})
	}
}

// checker passes on what a policy chooses, and fails when a pod that fits is refused or
// put where it does not fit.
type checker struct {
	t       *testing.T
	study   *Study
	policy  Policy
	cluster *Cluster
	placed  int
}

func (c *checker) Start(cluster *Cluster, seed uint64) {
	c.cluster = cluster
	c.policy.Start(cluster, seed)
}

func (c *checker) Placed(node int, before *State) {
	c.policy.Placed(node, before)
	c.placed++
	m := &c.cluster.Members[node]
	require.GreaterOrEqual(c.t, m.MilliCPU, int32(0))
	sum := 0
	for i := range m.devices() {
		sum += int(m.Order[i])
		require.LessOrEqual(c.t, m.Free[i], uint16(whole))
	}
	require.Equal(c.t, m.free(), sum, "both ways of counting")
}

func (c *checker) Choose(p *Pod, class int) (Choice, bool) {
	k := &c.study.Classes[class]
	choice, found := c.policy.Choose(p, class)
	fits := false
	for i := range c.cluster.Members {
		fits = fits || c.cluster.Members[i].fits(k, p)
	}
	require.Equal(c.t, fits, found)
	if found {
		require.True(c.t, c.cluster.Members[choice.Node].fits(k, p))
		if k.partial() {
			require.GreaterOrEqual(c.t, int(choice.Free), k.Share)
		}
	}
	return choice, found
}

func TestBestFitByHand(t *testing.T) {
	// After the pod: 100 * (1 - 0.5*12/128 - 0.5*7.5/8) = 48.4 and 100 * (1 - 0.5*28/128 - 0.5*3.5/8) = 67.2.
	nodes := []Node{{Name: "a", Devices: 8, Model: "A", MilliCPU: 16_000}, {Name: "b", Devices: 4, Model: "A", MilliCPU: 32_000}}
	s, err := newStudy(nodes, []Pod{{Name: "p", MilliCPU: 4000, Devices: 1, Share: 500}})
	require.NoError(t, err)
	b := &bestFit{study: s}
	c := newCluster(s, []int{0, 1})
	b.Start(c, 0)
	choice, found := b.Choose(&s.Pods[0], 0)
	require.True(t, found)
	assert.Equal(t, Choice{Node: 1, Free: whole}, choice)
	c.Members[0].State = stateOf(0, 16_000, 0, 0, 0, 0, 0, 0, 510, 900)
	choice, _ = b.Choose(&s.Pods[0], 0)
	assert.Equal(t, Choice{Node: 0, Free: 510}, choice, "the tightest device")
	c.Members[1].State = c.Members[0].State
	choice, _ = b.Choose(&s.Pods[0], 0)
	assert.Zero(t, choice.Node, "ties go by the order of the nodes")
}
