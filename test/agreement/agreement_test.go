package agreement

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

var (
	only     = flag.Int("cluster", -1, "Play the cluster of this number and no other.")
	clusters = flag.Int("clusters", 6000, "Number of clusters to play.")
)

// schedulers share the clusters, each with a processor of its own. The second one has
// names of accelerators that its cluster gave it.
const schedulers = 2

// The autoscaler's count of what fits is what the real scheduler then places, on
// every cluster, replica after replica.
func TestTheSchedulerPlacesWhatTheInventoryCounts(t *testing.T) {
	if *only >= 0 {
		play(t, newRealScheduler(t, *only%schedulers == 1), *only, &tally{})
		return
	}
	var sums [schedulers]tally
	t.Run("clusters", func(t *testing.T) {
		for shard := range schedulers {
			t.Run([]string{"even", "odd"}[shard], func(t *testing.T) {
				t.Parallel()
				s := newRealScheduler(t, shard == 1)
				for number := shard; number < *clusters && !t.Failed(); number += schedulers {
					play(t, s, number, &sums[shard])
				}
			})
		}
	})
	var sum tally
	for _, one := range sums {
		sum.add(one)
	}
	t.Logf("%+v", sum)
	// The proof would be none if most clusters took nothing, or most templates were
	// beyond the model.
	assert.Greater(t, sum.Placed, *clusters, "replicas should find a place")
	assert.Greater(t, sum.Full, *clusters/4, "clusters should hold something for variants and then be full")
	assert.Greater(t, sum.Exact, sum.Bounded, "most templates should be modelled")
	assert.Positive(t, sum.BoundedShort, "some unmodelled constraint should bind")
}

// tally counts what the clusters held.
type tally struct {
	// Demands with an exact count, with an upper bound, and upper bounds that were
	// not reached.
	Exact, Bounded, BoundedShort int
	// Placed replicas, and demands that were met at least once before the cluster was
	// full.
	Placed, Full int
	// Unserved demands are for devices that no node offers.
	Unserved int
	// Nodes, verdicts and explanations that were compared.
	Nodes, Verdicts, Reasons int
}

func (a *tally) add(b tally) {
	a.Exact += b.Exact
	a.Bounded += b.Bounded
	a.BoundedShort += b.BoundedShort
	a.Placed += b.Placed
	a.Full += b.Full
	a.Unserved += b.Unserved
	a.Nodes += b.Nodes
	a.Verdicts += b.Verdicts
	a.Reasons += b.Reasons
}

// game is one cluster in both views.
type game struct {
	*cluster
	*realScheduler
	tally *tally
	// cachedNodes and cachedPods are the same objects as the autoscaler sees them.
	cachedNodes []*corev1.Node
	cachedPods  []*corev1.Pod
}

// play lets the variants of one random cluster ask for replicas in turns until no
// variant gets another one.
func play(t *testing.T, s *realScheduler, number int, sum *tally) {
	t.Helper()
	g := &game{cluster: newCluster(number), realScheduler: s, tally: sum}
	defer func() {
		if t.Failed() {
			t.Logf("to play it again: go test ./test/agreement -args -cluster=%d", number)
		}
	}()
	g.show(t)
	defer g.hide(t)
	var open []*turn
	for _, d := range g.newDemands() {
		if one := g.begin(t, d); one != nil {
			open = append(open, one)
		}
	}
	for len(open) > 0 {
		i := g.rng.IntN(len(open))
		if !g.step(t, open[i]) {
			open = slices.Delete(open, i, i+1)
		}
	}
}

// show puts the cluster into the scheduler's caches.
func (g *game) show(t *testing.T) {
	t.Helper()
	for _, n := range g.nodes {
		g.Cache.AddNode(klog.Background(), n)
		g.cachedNodes = append(g.cachedNodes, kept(t, g.keep.node, n.DeepCopy()))
	}
	for _, pod := range g.pods {
		g.cachedPods = append(g.cachedPods, kept(t, g.keep.pod, pod.DeepCopy()))
		switch {
		case bound(pod):
			require.NoError(t, g.Cache.AddPod(klog.Background(), pod))
		case pod.Status.NominatedNodeName != "":
			g.nominate(t, pod)
		}
	}
}

// hide takes it out again.
func (g *game) hide(t *testing.T) {
	t.Helper()
	for _, pod := range g.pods {
		switch {
		case bound(pod):
			require.NoError(t, g.Cache.RemovePod(klog.Background(), pod))
		case pod.Status.NominatedNodeName != "":
			g.forget(t, pod)
		}
	}
	for _, n := range g.nodes {
		require.NoError(t, g.Cache.RemoveNode(klog.Background(), n))
	}
}

// turn is a demand that is being met.
type turn struct {
	demand
	// names are what would do, the best one first: one for a variant.
	names    []inventory.Name
	replicas int
}

// begin resolves a demand as the autoscaler does.
func (g *game) begin(t *testing.T, d demand) *turn {
	t.Helper()
	one := &turn{demand: d}
	for _, name := range d.accepts {
		one.names = append(one.names, g.names.Of(name))
	}
	if d.accepts == nil {
		name, _, err := g.names.Resolve(cmp.Or(d.variant.accelerator, d.variant.resolved), "", d.template, nil)
		require.NoError(t, err, "cluster %d, variant %s", g.number, d.variant.name)
		one.names = []inventory.Name{name}
	}
	if one.names = g.served(t, one); len(one.names) == 0 {
		g.serial++
		_, rejected := g.place(t, one.pod(g.serial))
		require.Error(t, rejected, "cluster %d, variant %s: no node offers its devices", g.number, d.variant.name)
		g.tally.Unserved++
		return nil
	}
	if len(d.bounds) == 0 {
		g.tally.Exact++
	} else {
		g.tally.Bounded++
	}
	return one
}

// served are the names of the turn but those of devices that labels announce and no
// node offers: how many there are is not known, and none is there to be placed on.
func (g *game) served(t *testing.T, turn *turn) []inventory.Name {
	t.Helper()
	known := g.names.Read(g.cachedNodes, g.cachedPods)
	return slices.DeleteFunc(turn.names, func(name inventory.Name) bool {
		_, err := known.Request(turn.template, name)
		return errors.Is(err, inventory.ErrClaims)
	})
}

// counted is what the inventory says of one turn.
type counted struct {
	inventory *inventory.Inventory
	// requests are by the names of the turn.
	requests []*placement.Request
	slots    []int
}

// count reads the API objects anew, as the autoscaler does in every round.
func (g *game) count(t *testing.T, turn *turn, about string) counted {
	t.Helper()
	c := counted{inventory: g.names.Read(g.cachedNodes, g.cachedPods)}
	for _, name := range turn.names {
		request, err := c.inventory.Request(turn.template, name)
		require.NoError(t, err, about)
		slots, err := c.inventory.Cluster.Slots(request)
		require.NoError(t, err, about)
		c.requests = append(c.requests, request)
		c.slots = append(c.slots, slots)
	}
	g.checkBound(t, turn, c.requests[0].Bound, about)
	return c
}

// checkBound: what a template asks for beyond the model must be named, and nothing
// else, so that no count is a mere bound without need.
func (g *game) checkBound(t *testing.T, turn *turn, bound, about string) {
	t.Helper()
	var named []string
	if bound != "" {
		named = strings.Split(bound, ", ")
	}
	for _, want := range turn.bounds {
		require.Contains(t, named, want, about)
	}
	for _, got := range named {
		switch {
		case slices.Contains(turn.bounds, got):
		case got == "anti-affinity of other pods":
			require.True(t, slices.ContainsFunc(g.pods, repels), "%s: no pod repels others", about)
		case got == "devices held under another resource":
			require.Contains(t, turn.variant.resource, "neuron", about)
		default:
			require.Fail(t, "the model knows all of the template", "%s: %s", about, got)
		}
	}
}

func repels(pod *corev1.Pod) bool {
	return pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAntiAffinity != nil
}

// best is the first of the turn's names of which there are slots, or -1.
func (c *counted) best() int {
	return slices.IndexFunc(c.slots, func(slots int) bool { return slots > 0 })
}

// step asks for one more replica. It reports whether there is one.
func (g *game) step(t *testing.T, turn *turn) bool {
	t.Helper()
	about := fmt.Sprintf("cluster %d, replica %d of %s", g.number, turn.replicas+1, turn.variant.name)
	before := g.count(t, turn, about)
	exact := before.requests[0].Bound == ""
	best := before.best()

	g.serial++
	pod := turn.pod(g.serial)
	host, rejected := g.place(t, pod)
	g.compare(t, &before, about)
	g.compareVerdicts(t, turn, &before, pod, about)
	if rejected != nil {
		if exact {
			require.Negative(t, best, "%s: %v more were counted, and the scheduler says: %v", about, before.slots, rejected)
		}
		if best >= 0 {
			g.tally.BoundedShort++
		}
		if turn.replicas > 0 {
			g.tally.Full++
		}
		g.compareReasons(t, turn, &before, pod, about)
		return false
	}
	require.GreaterOrEqual(t, best, 0, "%s: none was counted, and the scheduler placed it on %s", about, host)
	i := slices.IndexFunc(before.inventory.Nodes, func(n *corev1.Node) bool { return n.Name == host })
	require.GreaterOrEqual(t, i, 0, about)
	taken := slices.IndexFunc(before.requests, func(r *placement.Request) bool { return before.inventory.Cluster.Fits(r, i) })
	require.GreaterOrEqual(t, taken, 0, "%s: it does not fit on %s", about, host)
	if exact {
		require.Equal(t, best, taken, "%s: on %s it is not of the best type that fits", about, host)
	}
	if turn.devices {
		require.True(t, usable(before.inventory.Nodes[i]), "%s: node %s takes no new pods", about, host)
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = host
	if g.chance(2) { // its binding has come back from the API server
		require.NoError(t, g.Cache.AddPod(klog.Background(), assumed))
	}
	g.pods = append(g.pods, assumed)
	g.cachedPods = append(g.cachedPods, kept(t, g.keep.pod, assumed.DeepCopy()))
	turn.replicas++
	g.tally.Placed++
	if turn.accepts == nil {
		after := g.count(t, turn, about)
		require.Equal(t, before.slots[0]-1, after.slots[0], "%s: one slot is taken", about)
	}
	return true
}

// usable is said once more here because both sides ask the same function about it.
func usable(n *corev1.Node) bool {
	removed := slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == "ToBeDeletedByClusterAutoscaler" || taint.Key == "karpenter.sh/disrupted"
	})
	return n.DeletionTimestamp == nil && !n.Spec.Unschedulable && n.Status.Conditions[0].Status == corev1.ConditionTrue && !removed
}

// compare holds the inventory's nodes against those of the framework's snapshot.
func (g *game) compare(t *testing.T, c *counted, about string) {
	t.Helper()
	for _, info := range g.nodeInfos(t) {
		name := info.Node().Name
		i := slices.IndexFunc(c.inventory.Nodes, func(n *corev1.Node) bool { return n.Name == name })
		require.GreaterOrEqual(t, i, 0, "%s: the inventory has no node %s", about, name)
		requested := info.GetRequested()
		seen := g.names.Carried(info.Node()).View(inventory.Used{
			MilliCPU: requested.GetMilliCPU(), MemoryBytes: requested.GetMemory(),
			Pods: len(info.GetPods()), Devices: requested.GetScalarResources(),
		}, nil)
		counted := c.inventory.Cluster.Nodes[i]
		for _, links := range counted.Other {
			require.Equal(t, info.GetAllocatable().GetScalarResources()[link], links.Allocatable, about)
			require.Equal(t, links.Allocatable-requested.GetScalarResources()[link], links.Free, about)
		}
		counted.Other = nil
		require.Equal(t, seen, counted, "%s: node %s", about, name)
		require.Equal(t, usable(info.Node()), seen.Out == "", "%s: node %s is out: %q", about, name, seen.Out)
		allocatable := info.GetAllocatable()
		require.Equal(t, allocatable.GetMilliCPU(), seen.Allocatable.MilliCPU, about)
		require.Equal(t, allocatable.GetMemory(), seen.Allocatable.MemoryBytes, about)
		require.Equal(t, allocatable.GetAllowedPodNumber(), seen.Allocatable.Pods, about)
		g.tally.Nodes++
	}
}

// compareVerdicts asks the plugin about every node of the framework's snapshot.
func (g *game) compareVerdicts(t *testing.T, turn *turn, c *counted, pod *corev1.Pod, about string) {
	t.Helper()
	if !turn.devices || turn.accepts != nil {
		return // the plugin has no say, or answers for the type that it chooses
	}
	ctx, state, infos := context.Background(), framework.NewCycleState(), g.nodeInfos(t)
	narrowed, status := g.plugin.PreFilter(ctx, state, pod, infos)
	require.True(t, status.IsSuccess(), status.Message())
	request := c.requests[0]
	for _, info := range infos {
		name := info.Node().Name
		i := slices.IndexFunc(c.inventory.Nodes, func(n *corev1.Node) bool { return n.Name == name })
		want := c.inventory.Cluster.Nodes[i].Verdict(request.Shape)
		verdict := placement.Fits.String()
		if own := g.plugin.Filter(ctx, state, pod, info); !own.IsSuccess() {
			verdict = own.Message()
		}
		if c.inventory.Carried[i].Elsewhere(request.Shape.Device(), turn.variant.resource) != "" {
			// For the inventory the pod is refused there, which may not be the first reason.
			want = placement.WrongAccelerator
		}
		require.Equal(t, want.String(), verdict, "%s: node %s", about, name)
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			require.NotEqual(t, placement.Fits, want, "%s: the plugin does not look at node %s", about, name)
		}
		g.tally.Verdicts++
	}
}

// compareReasons holds what the pod's event says against what the autoscaler says.
func (g *game) compareReasons(t *testing.T, turn *turn, c *counted, pod *corev1.Pod, about string) {
	t.Helper()
	request := c.requests[0]
	for i, carried := range c.inventory.Carried {
		elsewhere := carried.Elsewhere(request.Shape.Device(), turn.variant.resource) != ""
		if elsewhere || len(g.SchedulingQueue.NominatedPodsForNode(c.inventory.Nodes[i].Name)) > 0 {
			// The plugin explains the nodes as they are, without the pods that are to come,
			// and calls devices of another resource another type.
			return
		}
	}
	if !turn.devices || turn.accepts != nil {
		return
	}
	ctx, state := context.Background(), framework.NewCycleState()
	_, status := g.plugin.PreFilter(ctx, state, pod, g.nodeInfos(t))
	require.True(t, status.IsSuccess(), status.Message())
	_, status = g.plugin.PostFilter(ctx, state, pod, nil)
	require.Equal(t, c.inventory.Cluster.Explain(request).String(), status.Message(), about)
	g.tally.Reasons++
}
