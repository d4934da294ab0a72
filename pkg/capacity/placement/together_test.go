package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVictimsTogetherEmptyWhatNoRequestEmptiesAlone(t *testing.T) {
	// Alone, the pair leaves a node with 6 of 8 free either way, and the four a node
	// with 6 free; together they empty one.
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 4), gpuNode("b", "H100", 8, 2), gpuNode("c", "H100", 8, 4)}}
	two, four := gpus(2, "H100"), gpus(4, "H100")
	leaving := []Leaving{
		{Request: two, Count: 1, Replicas: []Replica{{Name: "a-two", Node: 0, State: Ready}, {Name: "b-two", Node: 1, State: Ready}}},
		{Request: four, Count: 1, Replicas: []Replica{{Name: "b-four", Node: 1, State: Ready}, {Name: "c-four", Node: 2, State: Ready, Load: 9}}},
	}
	c.Table = NewTable(Outlook{{Shape: gpus(8, "H100").Shape, Weight: 1}}, c)
	before := c.Clone()
	victims := c.VictimsTogether(leaving)
	assert.Equal(t, [][]int{{0}, {1}}, victims, "the four alone empties c, however busy")
	assert.Equal(t, before, c, "only a trial")

	leaving[1].Replicas = leaving[1].Replicas[:1]
	leaving[1].Replicas = append(leaving[1].Replicas, Replica{Name: "elsewhere", Node: 0, State: Ready})
	c.Nodes[0].Free.Devices, c.Nodes[2].Out = 2, "cordoned"
	assert.Equal(t, []int{0}, c.Victims(two, leaving[0].Replicas, 1), "alone: by name")
	assert.Equal(t, [][]int{{0}, {1}}, c.VictimsTogether(leaving), "a is emptied by both")
}

// Those that were chosen and are failing are a choice as well. Each alone leaves 6 of 8 free at
// most.
func TestVictimsTogetherChooseAmongStuckOnes(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 4), gpuNode("b", "H100", 8, 2), gpuNode("c", "H100", 8, 2)}}
	c.Table = NewTable(Outlook{{Shape: gpus(8, "H100").Shape, Weight: 1}}, c)
	failing := func(name string, node int) Replica {
		return Replica{Name: name, Node: node, State: Pending, Failing: true, Chosen: true}
	}
	assert.Equal(t, [][]int{{1}, {0}}, c.VictimsTogether([]Leaving{
		{Request: gpus(2, "H100"), Count: 1, Replicas: []Replica{failing("a-two", 0), failing("b-two", 1)}},
		{Request: gpus(4, "H100"), Count: 1, Replicas: []Replica{failing("b-four", 1), failing("c-four", 2)}},
	}))
}

func TestVictimsTogetherKeepTheOrderOfRemoval(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 0), gpuNode("b", "H100", 8, 6)}}
	r := gpus(2, "H100")
	replicas := []Replica{
		{Name: "a-busy", Node: 0, State: Ready, Load: 5}, {Name: "a-idle", Node: 0, State: Ready},
		{Name: "b", Node: 1, State: Ready, Load: 9},
		{Name: "waiting", Node: -1, State: Unplaced}, {Name: "starting", Node: 0, State: NotReady}, {Name: "lost", Node: 2, State: Ready},
	}
	names := func(n int) (names []string) {
		for _, i := range c.VictimsTogether([]Leaving{{Request: r, Replicas: replicas, Count: n}})[0] {
			names = append(names, replicas[i].Name)
		}
		return names
	}
	assert.Empty(t, names(0))
	assert.ElementsMatch(t, []string{"waiting", "lost"}, names(2))
	assert.Equal(t, "starting", names(3)[2])
	assert.Equal(t, []string{"starting", "b"}, names(4)[2:], "the whole node")
	assert.Equal(t, []string{"starting", "a-idle", "b"}, names(5)[2:])
	assert.Len(t, names(9), len(replicas))
	assert.Equal(t, [][]int{nil, {0}}, c.VictimsTogether([]Leaving{
		{Replicas: replicas, Count: 3}, {Request: r, Replicas: replicas[:1], Count: 1},
	}), "a request that is not known")
	assert.Empty(t, c.VictimsTogether(nil))
}

func TestVictimsTogetherKeepWhatWasChosen(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 0), gpuNode("b", "H100", 8, 6)}}
	r := gpus(2, "H100")
	leaving := []Leaving{{Request: r, Count: 1, Replicas: []Replica{
		{Name: "a-0", Node: 0, State: Ready, Load: 5, Chosen: true}, {Name: "a-1", Node: 0, State: Ready}, {Name: "b-0", Node: 1, State: Ready},
	}}}
	assert.Equal(t, [][]int{{0}}, c.VictimsTogether(leaving), "although the other node would be empty")
	leaving[0].Count = 2
	assert.Equal(t, [][]int{{0, 2}}, c.VictimsTogether(leaving), "the further one is a choice")
}

// Random requests that leave together: the choice is as many replicas as asked for,
// the same every time, and worth at least what choosing in turn is.
func TestVictimsTogetherAreWorthNoLessThanInTurn(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	better, worth := 0, int64(0)
	for round := range 2_000 {
		c := typedCluster(rng)
		if rng.IntN(4) > 0 {
			c.Table = NewTable(typedOutlook(rng), c)
		}
		leaving := randomLeaving(rng, c)
		together := c.VictimsTogether(leaving)
		require.Equal(t, together, c.VictimsTogether(leaving), "round %d: the same again", round)
		inTurn := c.Clone()
		alone := make([][]int, len(leaving))
		for i, l := range leaving {
			alone[i] = inTurn.Victims(l.Request, l.Replicas, l.Count)
			leave(inTurn, &l, alone[i])
			require.Len(t, together[i], len(alone[i]))
			require.Subset(t, indexes(len(l.Replicas)), together[i])
			require.Len(t, distinct(together[i]), len(together[i]), "each once")
		}
		gained := worthAfter(c, leaving, together) - worthAfter(c, leaving, alone)
		require.GreaterOrEqual(t, gained, int64(0), "round %d", round)
		if gained > 0 {
			better++
		}
		worth += gained
	}
	assert.Greater(t, better, 50, "choosing together changes something")
	assert.Equal(t, int64(610_836_783), worth, "what it is worth in all; it should not become less")
}

func randomLeaving(rng *rand.Rand, c *Cluster) []Leaving {
	var all []Leaving
	for range 1 + rng.IntN(4) {
		l := Leaving{Request: gpus(1<<rng.IntN(3), "H100")}
		l.Request.Shape.MilliCPU = int64(rng.IntN(3)) * 4000
		for i := range c.Nodes {
			for range rng.IntN(3) {
				l.Replicas = append(l.Replicas, Replica{
					Name: fmt.Sprint("r", len(l.Replicas)), Node: i, State: ReplicaState(rng.IntN(4)), Load: float64(rng.IntN(3)),
					Failing: rng.IntN(4) == 0, Chosen: rng.IntN(4) == 0,
				})
			}
		}
		l.Count = rng.IntN(len(l.Replicas) + 1)
		all = append(all, l)
	}
	return all
}

func leave(c *Cluster, l *Leaving, victims []int) {
	for _, i := range victims {
		c.release(l.Request, l.Replicas[i].Node, 1)
	}
}

// worthAfter is what the room of all nodes is worth without the victims.
func worthAfter(c *Cluster, leaving []Leaving, victims [][]int) int64 {
	after := c.Clone()
	for i := range leaving {
		leave(after, &leaving[i], victims[i])
	}
	worth := int64(0)
	for i := range after.Nodes {
		if n := &after.Nodes[i]; n.Out == "" {
			free := int64(max(n.Free.Devices, 0))
			worth += c.Table.worthOf(n, nil, noPool, 0) + Unit*free*free/int64(max(n.Allocatable.Devices, 1))
		}
	}
	return worth
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func distinct(of []int) map[int]bool {
	all := map[int]bool{}
	for _, i := range of {
		all[i] = true
	}
	return all
}

// What one node gives up can change what is best for one before it: they are gone over again.
func TestVictimsTogetherGoOverTheNodesAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(979, 99))
	c := typedCluster(rng)
	if rng.IntN(4) > 0 {
		c.Table = NewTable(typedOutlook(rng), c)
	}
	var leaving []Leaving
	for range 3 {
		leaving = append(leaving, randomLeaving(rng, c)...)
	}
	assert.Equal(t, int64(284_688_384), worthAfter(c, leaving, c.VictimsTogether(leaving)), "one round comes to 283,967,488")
}
