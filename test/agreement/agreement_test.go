package agreement

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
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
	assert.Greater(t, sum.Preempted, *clusters/20, "some replicas should find room by preemption")
	assert.Greater(t, sum.Guarded, *clusters/200, "and some of them beside pods of a disruption budget")
	assert.Greater(t, sum.Refused, *clusters/20, "quotas should refuse some")
	assert.Greater(t, sum.Tolerated, *clusters/120, "some replicas should need a toleration that admission adds")
	assert.Greater(t, sum.Classed, *clusters/10, "some should be placed as their runtime class says")
	assert.Greater(t, sum.InSets, *clusters/4, "some should be those of StatefulSets")
	assert.Greater(t, sum.Own, *clusters/200, "some should go to devices without labels that their variant holds")
	assert.Greater(t, sum.Apart, *clusters/20, "some templates should fit elsewhere for the one thing in which they differ from another of the same inventory")
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
	// Preempted replicas found room by preemption, Guarded ones of them beside pods of a
	// disruption budget; quotas refused the Refused ones.
	Preempted, Guarded, Refused int
	// Tolerated replicas went to a node whose taints only admission made them tolerate, Classed
	// ones are what their runtime class made of them, and InSets are of a StatefulSet.
	Tolerated, Classed, InSets int
	// Settled are pods that were on nodes of which no label says what their devices are, and
	// Own the replicas that followed them there.
	Settled, Own int
	// Apart are templates of which another number fits than of the one from which they differ
	// in a single thing.
	Apart int
	// Nodes, verdicts and explanations that were compared, and Unread the counts without
	// what says what pods will be.
	Nodes, Verdicts, Reasons, Unread int
}

func (a *tally) add(b tally) {
	a.Exact += b.Exact
	a.Bounded += b.Bounded
	a.BoundedShort += b.BoundedShort
	a.Placed += b.Placed
	a.Full += b.Full
	a.Unserved += b.Unserved
	a.Preempted += b.Preempted
	a.Guarded += b.Guarded
	a.Refused += b.Refused
	a.Tolerated += b.Tolerated
	a.Classed += b.Classed
	a.InSets += b.InSets
	a.Settled += b.Settled
	a.Own += b.Own
	a.Apart += b.Apart
	a.Nodes += b.Nodes
	a.Verdicts += b.Verdicts
	a.Reasons += b.Reasons
	a.Unread += b.Unread
}

// game is one cluster in both views.
type game struct {
	*cluster
	*realScheduler
	tally *tally
	// cachedNodes and cachedPods are the same objects as the autoscaler sees them.
	cachedNodes []*corev1.Node
	cachedPods  []*corev1.Pod
	// open are the demands that may still be met.
	open []*turn
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
	for _, d := range g.newDemands() {
		if one := g.begin(t, d); one != nil {
			g.open = append(g.open, one)
		}
	}
	g.tellApart(t)
	for len(g.open) > 0 {
		i := g.rng.IntN(len(g.open))
		if !g.step(t, g.open[i]) {
			g.open = slices.Delete(g.open, i, i+1)
		}
	}
}

// tellApart counts the templates that fit elsewhere than the one that they are alike.
func (g *game) tellApart(t *testing.T) {
	t.Helper()
	for _, one := range g.open {
		i := slices.IndexFunc(g.open, func(other *turn) bool { return other.variant == one.twinOf })
		if i < 0 {
			continue
		}
		about := fmt.Sprintf("cluster %d, %s beside %s", g.number, one.variant.name, one.twinOf.name)
		if !slices.Equal(g.count(t, one, about).slots, g.count(t, g.open[i], about).slots) {
			g.tally.Apart++
		}
	}
}

// placed counts a replica by what made it fit on the node.
func (a *tally) placed(turn *turn, pod *corev1.Pod, node *corev1.Node) {
	a.Placed++
	if turn.accepts == nil && turn.variant.inSet {
		a.InSets++
	}
	refused := func(tolerations []corev1.Toleration) bool {
		_, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, keepsAway, false)
		return found
	}
	class := turn.template.Spec.RuntimeClassName != nil
	added := refused(turn.template.Spec.Tolerations) && !refused(pod.Spec.Tolerations)
	switch {
	case class && (added || pod.Spec.Overhead != nil || len(pod.Spec.NodeSelector) > len(turn.template.Spec.NodeSelector)):
		a.Classed++
	case !class && added:
		a.Tolerated++
	}
}

func keepsAway(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }

// objects are what the autoscaler reads an inventory from.
func (g *game) objects() inventory.Objects {
	return inventory.Objects{
		Nodes: g.cachedNodes, Pods: g.cachedPods, Quotas: g.quotas, Budgets: g.budgets, RuntimeClasses: runtimeClasses, PriorityClasses: priorityClasses,
	}
}

// admit is what the API server of this cluster makes of a new pod.
func (g *game) admit(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if g.generous {
		return admitted(t, g.generousAdmits, pod)
	}
	return admitted(t, g.usualAdmits, pod)
}

// show puts the cluster into the scheduler's caches.
func (g *game) show(t *testing.T) {
	t.Helper()
	for _, n := range g.nodes {
		g.Cache.AddNode(klog.Background(), n)
		g.cachedNodes = append(g.cachedNodes, kept(t, g.keep.node, n.DeepCopy()))
	}
	for _, b := range g.budgets {
		require.NoError(t, g.budgetStore().Add(b))
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
	for _, b := range g.budgets {
		require.NoError(t, g.budgetStore().Delete(b))
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
	// last is the last pod that was made of the template, as the autoscaler sees it. It is
	// nil where none was.
	last *corev1.Pod
}

// like is the pod that shows what the next one will be. Only pods of a variant are found
// by their owner.
func (g *game) like(one *turn) *corev1.Pod {
	if one.accepts == nil {
		if live := one.variant.revision().Newest(g.cachedPods); live != nil {
			return live
		}
	}
	return one.last
}

// own are the pods of the turn's variant.
func (g *game) own(one *turn) []*corev1.Pod {
	if one.accepts != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(g.cachedPods), func(pod *corev1.Pod) bool {
		return metav1.GetControllerOf(pod) == nil || pod.Labels["variant"] != one.variant.name
	})
}

// settle puts a pod of the variant on a node of which no label says what its devices are, as
// another scheduler may have done. Chances are drawn beside those of the rest.
func (g *game) settle(t *testing.T, one *turn) {
	t.Helper()
	if one.accepts != nil || !one.devices || len(one.bounds) > 0 || asksFor(one.template, link) {
		return
	}
	rng := rand.New(rand.NewPCG(seed+2, uint64(g.number)))
	for _, n := range g.nodes {
		offered := n.Status.Allocatable[one.variant.resource]
		if len(n.Labels) > unlabelled || offered.Sign() <= 0 || rng.IntN(2) == 0 {
			continue
		}
		g.serial++
		pod := g.admit(t, one.pod(g.serial))
		if !g.charge(t, pod) {
			continue
		}
		pod.Spec.NodeName, pod.Status.Phase = n.Name, corev1.PodRunning
		require.NoError(t, g.Cache.AddPod(klog.Background(), pod))
		g.pods = append(g.pods, pod)
		g.cachedPods = append(g.cachedPods, kept(t, g.keep.pod, pod.DeepCopy()))
		g.tally.Settled++
	}
}

// unlabelled is how many labels a node has that say nothing of its devices.
const unlabelled = 4

func asksFor(template *corev1.PodTemplateSpec, resource corev1.ResourceName) bool {
	return slices.ContainsFunc(template.Spec.Containers, func(c corev1.Container) bool {
		_, asks := c.Resources.Requests[resource]
		return asks
	})
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
	if g.chance(2) {
		// It has a pod on some node of which nothing is counted.
		g.serial++
		one.last = kept(t, g.keep.pod, g.admit(t, one.pod(g.serial)))
	}
	g.settle(t, one)
	if one.names = g.served(t, one); len(one.names) == 0 {
		g.serial++
		_, _, rejected := g.place(t, g.admit(t, one.pod(g.serial)))
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
	known := g.names.Read(g.objects())
	return slices.DeleteFunc(turn.names, func(name inventory.Name) bool {
		_, err := known.Request(turn.template, g.like(turn), name, g.own(turn)...)
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
	c := counted{inventory: g.names.Read(g.objects())}
	for _, other := range g.open {
		// One inventory answers for all: what it remembers of one must not be told of another.
		for _, name := range other.names {
			_, err := c.inventory.Request(other.template, g.like(other), name, g.own(other)...)
			require.NoError(t, err, about)
		}
	}
	for _, name := range turn.names {
		request, err := c.inventory.Request(turn.template, g.like(turn), name, g.own(turn)...)
		require.NoError(t, err, about)
		slots, err := c.inventory.Cluster.Slots(request)
		require.NoError(t, err, about)
		c.requests = append(c.requests, request)
		c.slots = append(c.slots, slots)
	}
	g.checkBound(t, turn, c.requests[0].Bound, about)
	if g.like(turn) == nil {
		g.compareUnread(t, turn, &c, about)
	}
	return c
}

// compareUnread: where the classes and quotas may not be read, a count is a bound, and no
// less than what there is.
func (g *game) compareUnread(t *testing.T, turn *turn, c *counted, about string) {
	t.Helper()
	unread := g.names.Read(inventory.Objects{Nodes: g.cachedNodes, Pods: g.cachedPods, Unread: inventory.Unread{
		RuntimeClasses: true, PriorityClasses: true, Budgets: true, Quotas: true,
	}})
	for i, name := range turn.names {
		request, err := unread.Request(turn.template, nil, name)
		require.NoError(t, err, about)
		most, err := unread.Cluster.Slots(request)
		require.NoError(t, err, about)
		require.GreaterOrEqual(t, most, c.slots[i], about)
		g.tally.Unread++
	}
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
		case got == string(turn.variant.resource)+" (no node offers it; resource claims are not counted)":
			require.False(t, slices.ContainsFunc(g.nodes, func(n *corev1.Node) bool {
				_, named := n.Status.Allocatable[turn.variant.resource]
				return named
			}), "%s: a node has a word of it", about)
		case got == "anti-affinity of other pods":
			require.True(t, slices.ContainsFunc(g.pods, repels), "%s: no pod repels others", about)
		case got == guarded:
			require.NotEmpty(t, g.budgets, about)
		case got == "what admission adds":
			require.Nil(t, g.like(turn), about)
		case got == "devices held under another resource":
			require.Contains(t, turn.variant.resource, "neuron", about)
		default:
			require.Fail(t, "the model knows all of the template", "%s: %s", about, got)
		}
	}
}

// guarded is what the count of a pod says that may preempt pods of a disruption budget. The
// scheduler breaks one rather than leave the pod waiting, so that here the count is exact.
const guarded = "disruption budgets"

func repels(pod *corev1.Pod) bool {
	return pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAntiAffinity != nil
}

// best is the first of the turn's names of which there are slots, or -1. The scheduler
// lets nobody yield while any would do that is free.
func (c *counted) best(t *testing.T) int {
	t.Helper()
	for i, r := range c.requests {
		alone := *r
		alone.Yields = nil
		free, err := c.inventory.Cluster.Slots(&alone)
		require.NoError(t, err)
		if free > 0 {
			return i
		}
	}
	return slices.IndexFunc(c.slots, func(slots int) bool { return slots > 0 })
}

// step asks for one more replica. It reports whether there is one.
func (g *game) step(t *testing.T, turn *turn) bool {
	t.Helper()
	about := fmt.Sprintf("cluster %d, replica %d of %s", g.number, turn.replicas+1, turn.variant.name)
	before := g.count(t, turn, about)
	exact := before.requests[0].Bound == "" || before.requests[0].Bound == guarded
	best := before.best(t)

	g.serial++
	pod := g.admit(t, turn.pod(g.serial))
	if !g.charge(t, pod) {
		g.tally.Refused++
		if exact {
			require.Negative(t, best, "%s: %v more were counted, and a quota refuses it: %v", about, before.slots, g.quotas)
		}
		return false
	}
	host, state, rejected := g.place(t, pod)
	g.compare(t, &before, about)
	g.compareVerdicts(t, turn, &before, pod, about)
	preempted := false
	if rejected != nil {
		var made string
		if made, preempted = g.makeRoom(t, pod, state, rejected); preempted {
			g.tally.Preempted++
			if before.requests[0].Bound == guarded {
				g.tally.Guarded++
			}
			host, _, rejected = g.place(t, pod)
			require.NoError(t, rejected, "%s: room was made on %s", about, made)
		}
	}
	if rejected != nil {
		g.refund(t, pod)
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
	if exact && !preempted {
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
	turn.last = kept(t, g.keep.pod, assumed.DeepCopy())
	g.cachedPods = append(g.cachedPods, turn.last)
	turn.replicas++
	g.tally.placed(turn, pod, before.inventory.Nodes[i])
	if own := before.requests[taken].Own; own != nil && own[i] {
		g.tally.Own++
	}
	if turn.accepts == nil && exact && (!preempted || len(before.requests[0].Charges) == 0) {
		after := g.count(t, turn, about)
		require.Equal(t, before.slots[0]-1, after.slots[0], "%s: one slot is taken", about)
	}
	return true
}

// makeRoom lets the scheduler preempt for a pod that it rejected, and takes the victims
// off their node. It reports false where that does not help.
func (g *game) makeRoom(t *testing.T, pod *corev1.Pod, state fwk.CycleState, rejected error) (node string, helps bool) {
	t.Helper()
	node, victims := g.preempt(t, pod, state, rejected)
	if node == "" {
		return "", false
	}
	for _, other := range g.pods {
		if other.Spec.NodeName == node && other.DeletionTimestamp != nil && *other.Spec.Priority < *pod.Spec.Priority && bound(other) {
			// One that ends need not be asked to.
			victims = append(victims, other)
		}
	}
	gone := map[types.UID]bool{}
	for _, victim := range victims {
		gone[victim.UID] = true
		require.NoError(t, g.Cache.RemovePod(klog.Background(), victim))
		if !strings.HasPrefix(victim.Name, "other-") {
			g.refund(t, victim)
		}
	}
	for i, other := range g.pods {
		if other.Status.NominatedNodeName != node || bound(other) || *other.Spec.Priority >= *pod.Spec.Priority {
			continue
		}
		// It waits for another node now.
		g.forget(t, other)
		waiting := other.DeepCopy()
		waiting.Status.NominatedNodeName = ""
		at := slices.IndexFunc(g.cachedPods, func(p *corev1.Pod) bool { return p.UID == other.UID })
		g.pods[i], g.cachedPods[at] = waiting, kept(t, g.keep.pod, waiting.DeepCopy())
	}
	left := func(p *corev1.Pod) bool { return gone[p.UID] }
	g.pods, g.cachedPods = slices.DeleteFunc(g.pods, left), slices.DeleteFunc(g.cachedPods, left)
	return node, true
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
	if !turn.devices || turn.accepts != nil || g.like(turn) == nil {
		// The plugin has no say, or answers for the type that it chooses, or sees what
		// admission added.
		return
	}
	ctx, state, infos := context.Background(), framework.NewCycleState(), g.nodeInfos(t)
	narrowed, status := g.plugin.PreFilter(ctx, state, pod, infos)
	require.True(t, status.IsSuccess(), status.Message())
	request := c.requests[0]
	for _, info := range infos {
		name := info.Node().Name
		i := slices.IndexFunc(c.inventory.Nodes, func(n *corev1.Node) bool { return n.Name == name })
		admitted := placement.Request{Shape: request.Shape, Own: request.Own}
		want := c.inventory.Cluster.Verdict(&admitted, i)
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
	if !turn.devices || turn.accepts != nil || g.like(turn) == nil {
		// The plugin sees a pod that was admitted; what the autoscaler does not know of it
		// counts as tolerated.
		return
	}
	ctx, state := context.Background(), framework.NewCycleState()
	_, status := g.plugin.PreFilter(ctx, state, pod, g.nodeInfos(t))
	require.True(t, status.IsSuccess(), status.Message())
	_, status = g.plugin.PostFilter(ctx, state, pod, nil)
	alone := *request
	alone.Charges = nil // the API server speaks of quotas, and never of preemption
	alone.Yields = nil
	require.Equal(t, c.inventory.Cluster.Explain(&alone).String(), status.Message(), about)
	g.tally.Reasons++
}
