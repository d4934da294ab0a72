package placement

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVictimsOrder(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 0), gpuNode("b", "H100", 8, 0)}}
	r := gpus(2, "H100")
	replicas := []Replica{
		{Name: "busy", Node: 0, State: Ready, Load: 9},
		{Name: "idle", Node: 1, State: Ready, Load: 0},
		{Name: "starting", Node: 1, State: NotReady},
		{Name: "waiting-b", Node: -1, State: Unplaced},
		{Name: "crashing", Node: 1, State: NotReady, Failing: true, Load: 3},
		{Name: "waiting-a", Node: -1, State: Unplaced},
		{Name: "elsewhere", Node: 2, State: Ready},
		{Name: "creating", Node: 1, State: Pending},
		{Name: "without-image", Node: 1, State: Pending, Failing: true},
	}
	names := func(n int) (names []string) {
		for _, i := range c.Victims(r, replicas, n) {
			names = append(names, replicas[i].Name)
		}
		return names
	}
	assert.Nil(t, names(0))
	assert.Nil(t, names(-1))
	assert.Nil(t, c.Victims(nil, replicas, 1))
	assert.Equal(t, []string{"elsewhere", "waiting-a", "waiting-b"}, names(3), "what no node holds")
	assert.Equal(t, []string{"without-image"}, names(4)[3:], "what the controller takes before anything that runs, and is failing")
	assert.Equal(t, []string{"without-image", "creating", "crashing", "starting"}, names(7)[3:], "what does not serve")
	assert.Equal(t, []string{"idle"}, names(8)[7:], "what opens the larger hole, not what is nearest")
	assert.Len(t, names(50), len(replicas))

	replicas[0].Chosen, replicas[2].Chosen, replicas[3].Chosen, replicas[7].Chosen = true, true, true, true
	assert.Equal(t, []string{"waiting-b", "elsewhere", "waiting-a", "creating", "without-image", "starting", "crashing", "busy"}, names(8),
		"of one state, those chosen before stay chosen")
}

func TestVictimsEmptyAWholeNodeWhenTwoRemovalsCan(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 3), gpuNode("b", "H100", 8, 4), gpuNode("c", "H100", 8, 3)}}
	r := gpus(2, "H100")
	replicas := []Replica{
		{Name: "a-0", Node: 0, State: Ready, Load: 1},
		{Name: "b-0", Node: 1, State: Ready, Load: 8}, {Name: "b-1", Node: 1, State: Ready, Load: 8},
		{Name: "c-0", Node: 2, State: Ready, Load: 1},
	}
	c.Table = NewTable(Outlook{{Shape: gpus(8, "H100").Shape, Weight: 1}}, c)
	assert.ElementsMatch(t, []int{1, 2}, c.Victims(r, replicas, 2), "eight in one place, however busy")
	c.Table = NewTable(Outlook{{Shape: gpus(5, "H100").Shape, Weight: 1}}, c)
	assert.ElementsMatch(t, []int{0, 1}, c.Victims(r, replicas, 2), "five in two places, and the larger hole of two that are worth the same")
}

func TestVictimsAreTheLeastLoadedWhereRoomIsEqual(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 0), gpuNode("b", "H100", 8, 0)}}
	replicas := []Replica{
		{Name: "x", Node: 0, State: Ready, Load: math.NaN()}, {Name: "y", Node: 0, State: Ready, Load: 5},
		{Name: "w", Node: 1, State: Ready, Load: 4}, {Name: "v", Node: 1, State: Ready, Load: 4},
	}
	assert.Equal(t, []int{3}, c.Victims(gpus(4, "H100"), replicas, 1), "then by name")
	assert.Equal(t, []int{3, 2}, c.Victims(gpus(4, "H100"), replicas, 2))
	assert.Equal(t, []int{3, 2, 1}, c.Victims(gpus(4, "H100"), replicas, 3), "unknown load is not idle")
}

func TestVictimsAreTheBestOfAllChoices(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for round := range 1_500 {
		c := typedCluster(rng)
		c.Table = NewTable(typedOutlook(rng), c)
		if rng.IntN(4) == 0 {
			c.Table = nil
		}
		r := gpus(1+rng.IntN(3), "H100")
		r.Shape.MilliCPU = int64(rng.IntN(4)) * 4000
		var replicas []Replica
		for i := range c.Nodes {
			for range rng.IntN(4) {
				replicas = append(replicas, Replica{
					Name: fmt.Sprint("r", len(replicas)), Node: i, State: Ready, Load: float64(rng.IntN(3)),
				})
			}
		}
		if len(replicas) > 9 {
			replicas = replicas[:9]
		}
		if len(replicas) == 0 {
			continue
		}
		n := 1 + rng.IntN(len(replicas))
		victims := c.Victims(r, replicas, n)
		require.Len(t, victims, n)
		chosen := uint(0)
		for _, i := range victims {
			require.Zero(t, chosen&(1<<i), "each once")
			chosen |= 1 << i
		}
		got := gainOf(c, r, replicas, chosen)
		for set := range uint(1) << len(replicas) {
			if bits.OnesCount(set) == n {
				require.LessOrEqual(t, gainOf(c, r, replicas, set).compare(got), 0, "round %d: %b is better than %b", round, set, chosen)
			}
		}
	}
}

// gainOf is what removing a set brings, by removing it.
func gainOf(c *Cluster, r *Request, replicas []Replica, set uint) gain {
	after := c.Clone()
	var g gain
	for i := range replicas {
		if set&(1<<i) != 0 {
			there := *r
			there.Shape.Accelerator = c.Nodes[replicas[i].Node].Accelerator
			after.Remove(&there, replicas[i].Node)
			g.load += load(&replicas[i])
		}
	}
	for i := range c.Nodes {
		n, m := &c.Nodes[i], &after.Nodes[i]
		if n.Out != "" {
			continue
		}
		g.worth += c.Table.worthOf(m, nil, noPool, 0) - c.Table.worthOf(n, nil, noPool, 0)
		square := func(n *Node) int64 { return Unit * int64(n.Free.Devices*n.Free.Devices) / int64(n.Allocatable.Devices) }
		g.worth += square(m) - square(n)
	}
	return g
}

// The larger of two replicas takes its only place before the smaller one, which would
// rather be there.
func TestTheLargestMovesFirst(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 4), gpuNode("b", "H100", 8, 3), gpuNode("c", "H100", 8, 2)}}
	c.Table = NewTable(Outlook{{Shape: gpus(2, "H100").Shape, Weight: 1000}}, c)
	placed := []Placed{{"small", gpus(1, "H100"), 0}, {"large", gpus(3, "H100"), 0}}
	require.Greater(t, c.Table.Score(&c.Nodes[1], placed[0].Request.Shape, 0, 0), c.Table.Score(&c.Nodes[2], placed[0].Request.Shape, 0, 0))
	room, ok := c.Moves(gpus(8, "H100"), placed)
	require.True(t, ok)
	assert.Equal(t, Room{Node: 0, Moves: []Move{{Replica: 1, From: 0, To: 1}, {Replica: 0, From: 0, To: 2}}}, room)
}

func TestMoves(t *testing.T) {
	c := &Cluster{Nodes: []Node{
		gpuNode("a", "H100", 8, 4), gpuNode("b", "H100", 8, 5), gpuNode("c", "H100", 8, 2), gpuNode("d", "A100", 8, 8), gpuNode("e", "H100", 8, 7),
	}}
	c.Nodes[4].Out = "cordoned"
	one, two, eight := gpus(1, "H100"), gpus(2, "H100"), gpus(8, "H100")
	placed := []Placed{
		{"a-0", two, 0}, {"a-1", two, 0},
		{"b-0", one, 1}, {"b-1", one, 1}, {"b-2", one, 1},
		{"c-0", gpus(6, "H100"), 2},
		{"e-0", one, 4},
		{"nowhere", one, -1},
	}
	before := c.Clone()
	room, ok := c.Moves(eight, placed)
	require.True(t, ok)
	assert.Equal(t, 0, room.Node, "two moves are fewer than three; the cordoned node is no help")
	require.Len(t, room.Moves, 2)
	for _, m := range room.Moves {
		assert.Equal(t, 0, m.From)
		assert.Contains(t, []int{1, 2}, m.To)
		c.Remove(placed[m.Replica].Request, m.From)
		require.True(t, c.Fits(placed[m.Replica].Request, m.To))
		c.put(placed[m.Replica].Request, m.To, 1)
	}
	assert.True(t, c.Fits(eight, room.Node))

	c = before
	room, ok = c.Moves(gpus(5, "H100"), placed)
	assert.True(t, ok)
	assert.Equal(t, Room{Node: 1}, room, "it fits as it is")

	_, ok = c.Moves(gpus(8, "L4"), placed)
	assert.False(t, ok)
	_, ok = c.Moves(gpus(1, ""), placed)
	assert.False(t, ok)
}

func TestMovesMakeRoomAndAreFewest(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	helped := 0
	for round := range 3_000 {
		c := &Cluster{}
		var placed []Placed
		for i := range 2 + rng.IntN(4) {
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, 8))
		}
		for range rng.IntN(12) {
			r := gpus(1+rng.IntN(4), "H100")
			if node := rng.IntN(len(c.Nodes)); c.Fits(r, node) {
				c.put(r, node, 1)
				placed = append(placed, Placed{Request: r, Node: node})
			}
		}
		want := gpus(1+rng.IntN(8), "H100")
		before := c.Clone()
		room, ok := c.Moves(want, placed)
		require.Equal(t, before, c, "nothing changes")
		require.Equal(t, fewestMoves(c, want, placed), map[bool]int{true: len(room.Moves), false: -1}[ok], "round %d", round)
		if !ok {
			continue
		}
		if len(room.Moves) > 0 {
			helped++
		}
		for _, m := range room.Moves {
			c.Remove(placed[m.Replica].Request, m.From)
		}
		for _, m := range room.Moves {
			require.True(t, c.Fits(placed[m.Replica].Request, m.To))
			c.put(placed[m.Replica].Request, m.To, 1)
		}
		require.True(t, c.Fits(want, room.Node))
	}
	assert.Greater(t, helped, 100)
}

// arranged tries every node for each of the requests.
func arranged(c *Cluster, requests []*Request) bool {
	if len(requests) == 0 {
		return true
	}
	for i := range c.Nodes {
		if !c.Fits(requests[0], i) {
			continue
		}
		c.put(requests[0], i, 1)
		fits := arranged(c, requests[1:])
		c.Remove(requests[0], i)
		if fits {
			return true
		}
	}
	return false
}

// fewestMoves tries every set of up to four replicas of each node, and every place for
// each of them; -1 says that none helps.
func fewestMoves(c *Cluster, want *Request, placed []Placed) int {
	fewest := -1
	for node := range c.Nodes {
		for set := range uint(1) << len(placed) {
			count := bits.OnesCount(set)
			if count > movedAtOnce || fewest >= 0 && count >= fewest {
				continue
			}
			trial, others := c.Clone(), []*Request{}
			for i := range placed {
				if set&(1<<i) == 0 {
					continue
				}
				if placed[i].Node != node {
					trial = nil
					break
				}
				trial.Remove(placed[i].Request, node)
				r := *placed[i].Request
				r.Refused = make([]string, len(c.Nodes))
				r.Refused[node] = "it moves"
				others = append(others, &r)
			}
			if trial == nil || !trial.Fits(want, node) {
				continue
			}
			if trial.put(want, node, 1); arranged(trial, others) {
				fewest = count
			}
		}
	}
	return fewest
}

func BenchmarkVictims(b *testing.B) {
	c := benchCluster(5_000)
	c.Table = NewTable(outlookOf(200), c)
	r := gpus(1, "H100")
	var replicas []Replica
	for i := range 400 {
		replicas = append(replicas, Replica{Name: fmt.Sprint("r", i), Node: i / 4 * 5, State: Ready, Load: float64(i % 7)})
	}
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("of=400/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = c.Victims(r, replicas, n)
			}
		})
	}
}

// Where hardly anything is free, there is most to look for and least to find.
func BenchmarkMoves(b *testing.B) {
	cluster := func(withDevices int, free func(node int) int) *Cluster {
		c := &Cluster{}
		for i := range 5_000 {
			devices := 0
			if i < withDevices {
				devices = 8
			}
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", devices, free(i)))
		}
		return c
	}
	fill := func(c *Cluster, size int, cpu func(i int) int64) (placed []Placed) {
		for i := range c.Nodes {
			n := &c.Nodes[i]
			for j := range (n.Allocatable.Devices - n.Free.Devices) / size {
				r := gpus(size, "H100")
				r.Shape.MilliCPU = cpu(j)
				placed = append(placed, Placed{Request: r, Node: i})
			}
		}
		return placed
	}
	same := func(int) int64 { return 0 }
	different := func(i int) int64 { return int64(i + 1) }
	spread := cluster(5_000, func(i int) int { return i % 3 })
	full := cluster(700, func(int) int { return 0 })
	nearly := cluster(700, func(i int) int { return min(i/698, 1) })
	for _, bench := range []struct {
		name   string
		c      *Cluster
		placed []Placed
	}{
		{"room=some", spread, fill(spread, 2, same)},
		{"room=none", full, fill(full, 1, same)},
		{"room=two/requests=alike", nearly, fill(nearly, 1, same)},
		{"room=two/requests=different", nearly, fill(nearly, 1, different)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bench.c.Moves(gpus(4, "H100"), bench.placed)
			}
		})
	}
}

func TestWhatTakesNoPodsIsNoHole(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 3), gpuNode("b", "H100", 8, 8)}}
	c.Nodes[1].Out = "cordoned"
	assert.Equal(t, 3, c.LargestHole(gpus(1, "H100")))
	assert.Zero(t, c.LargestHole(gpus(1, "A100")))
	node, ok := c.Place(nil)
	assert.False(t, ok)
	assert.Equal(t, -1, node)
}

// Of nodes that are as good as each other it is the first.
func TestOfEqualNodesTheFirst(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8), gpuNode("b", "H100", 8, 8), gpuNode("c", "H100", 8, 8)}}
	trial := NewTrial(c.Clone())
	node, ok := c.Place(gpus(2, "H100"))
	require.True(t, ok)
	assert.Zero(t, node)
	for want, r := range []*Request{gpus(8, "H100"), gpus(8, "H100"), gpus(8, "H100")} {
		node, ok = trial.Place(r)
		require.True(t, ok)
		assert.Equal(t, want, node)
	}
}

// Of two nodes that one move each clears, the one whose replica has fewer devices.
func TestOfEquallyManyMovesThoseOfFewerDevices(t *testing.T) {
	for name, sizes := range map[string][2]int{"the first": {1, 3}, "the second": {3, 1}, "of equal ones the first": {2, 2}} {
		c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8-sizes[0]), gpuNode("b", "H100", 8, 8-sizes[1]), gpuNode("c", "H100", 8, 4)}}
		room, ok := c.Moves(gpus(8, "H100"), []Placed{{"a", gpus(sizes[0], "H100"), 0}, {"b", gpus(sizes[1], "H100"), 1}})
		require.True(t, ok, name)
		require.Len(t, room.Moves, 1, name)
		assert.Equal(t, map[int]int{1: 0, 3: 1, 2: 0}[sizes[0]], room.Node, name)
	}
}

// Four replicas may move at once, and five may not; who is on no node of the cluster is left
// alone; a quota that allows just one more is enough.
func TestMovesAtTheEndsOfTheirRange(t *testing.T) {
	for replicas, want := range map[int]bool{4: true, 5: false} {
		c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8-replicas), gpuNode("b", "H100", 8, 5)}, Quotas: []Quota{{Hard: 8, Left: 8}}}
		placed := []Placed{{"nowhere", gpus(1, "H100"), 2}, {"nor here", gpus(1, "H100"), -1}}
		for range replicas {
			placed = append(placed, Placed{"r", gpus(1, "H100"), 0})
		}
		whole := gpus(8, "H100")
		whole.Charges = []Amount{{Count: 8}}
		room, ok := c.Moves(whole, placed)
		assert.Equal(t, want, ok, "%d replicas", replicas)
		if ok {
			assert.Len(t, room.Moves, replicas)
		}
	}
}

// Of replicas that were chosen before and are failing, those go together that leave the
// most useful room, as of all that nodes hold.
func TestStuckVictimsThatWereChosenLeaveTheMostRoom(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 3), gpuNode("b", "H100", 8, 4)}}
	c.Table = NewTable(Outlook{{Shape: gpus(8, "H100").Shape, Weight: 1}}, c)
	failing := func(name string, node int) Replica {
		return Replica{Name: name, Node: node, State: Pending, Failing: true, Chosen: true}
	}
	replicas := []Replica{failing("a-0", 0), failing("b-0", 1), failing("b-1", 1)}
	assert.ElementsMatch(t, []int{1, 2}, c.Victims(gpus(2, "H100"), replicas, 2), "eight in one place, whatever their names")
}

// Only the last two of a node's replicas hold devices, and all differ. Of 362 replicas
// there are 65,341 pairs, and of 363 there are 65,703, which are too many: the two move
// with the first one, then, which is in as many sets as the others have pairs.
func TestMovesTriesSoManySetsAndNoMore(t *testing.T) {
	for replicas, moves := range map[int]int{362: 2, 363: 3, 364: 4, 365: 0} {
		c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 6), gpuNode("b", "H100", 8, 1), gpuNode("c", "H100", 8, 1)}}
		for i := range c.Nodes {
			c.Nodes[i].Allocatable.Pods, c.Nodes[i].Free.Pods = 1000, 500
		}
		var placed []Placed
		for i := range replicas {
			r := gpus(0, "")
			if i >= replicas-2 {
				r = gpus(1, "H100")
			}
			r.Shape.MilliCPU = int64(i + 1)
			placed = append(placed, Placed{"r", r, 0})
		}
		room, ok := c.Moves(gpus(8, "H100"), placed)
		assert.Equal(t, moves > 0, ok, "%d replicas", replicas)
		assert.Len(t, room.Moves, moves, "%d replicas", replicas)
	}
}

// Of two places that are worth the same the first node's is taken, also where the other one is
// known because somebody moved there before.
func TestWhoMovesLaterTakesTheFirstOfEqualPlaces(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 3), gpuNode("b", "H100", 8, 4), gpuNode("c", "H100", 8, 8)}}
	large, small := gpus(4, "H100"), gpus(1, "H100")
	large.Shape.MemoryBytes = 20 << 30
	c.Nodes[1].Free.MilliCPU -= large.Shape.MilliCPU
	c.Nodes[1].Free.MemoryBytes = 10 << 30
	want := gpus(8, "H100")
	want.Refused = []string{"", "not here", "not here"}
	room, ok := c.Moves(want, []Placed{{"small", small, 0}, {"large", large, 0}})
	require.True(t, ok)
	assert.Equal(t, Room{Node: 0, Moves: []Move{{Replica: 1, From: 0, To: 2}, {Replica: 0, From: 0, To: 1}}}, room)
}

// Four that move need five places to choose from: the best is on the node that they leave.
func TestFourThatMoveFindFourPlaces(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("own", "H100", 16, 12)}}
	var placed []Placed
	for i := range 4 {
		n := gpuNode(fmt.Sprint("n", i), "H100", 8, 8)
		n.Free.Pods = 1
		c.Nodes = append(c.Nodes, n)
		placed = append(placed, Placed{fmt.Sprint("r", i), gpus(1, "H100"), 0})
	}
	require.Greater(t, c.Table.Score(&c.Nodes[0], placed[0].Request.Shape, 0, 0), c.Table.Score(&c.Nodes[1], placed[0].Request.Shape, 0, 0))
	room, ok := c.Moves(gpus(16, "H100"), placed)
	require.True(t, ok)
	assert.Len(t, room.Moves, 4)
}
