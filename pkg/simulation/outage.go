package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// NodeEvent is something that happens to a node, whatever the replicas do.
type NodeEvent struct {
	At time.Duration
	// Node is the index of the node.
	Node int
	Kind NodeEventKind
	// Notice is, for Reclaimed alone, how long the node has left from then on.
	Notice time.Duration
}

// NodeEventKind says what happens to a node.
type NodeEventKind uint8

// What can happen to a node.
const (
	// Cordoned: it takes no new replicas. Those that it has stay.
	Cordoned NodeEventKind = iota + 1
	// Drained: it is cordoned, and its replicas are evicted: they finish their requests
	// within the drain time, and others are created in their place at once.
	Drained
	// Failed: it stops without notice. The requests of its replicas fail at that instant,
	// and the router sends no more there, as a gateway does that meets a closed connection
	// and tries the next server. The cluster takes its time to know: NotReadyAfter the
	// node is not ready and neither are its replicas, and EvictedAfter that they are
	// deleted and others are created. Until it is known the scheduler may still send
	// replicas there, which do not start.
	Failed
	// Reclaimed: its owner wants it back, as a cloud does with spot nodes. At the notice
	// the node is tainted and its replicas are evicted. When the notice is over the node is
	// gone, with what is left on it.
	Reclaimed
	// Restored: it is there and ready, as at the beginning. Replicas that it still holds
	// after a failure start again.
	Restored
)

// The defaults of Kubernetes 1.36: --node-monitor-grace-period of the controller manager,
// and the tolerationSeconds for node.kubernetes.io/unreachable that pods get.
const (
	NotReadyAfter = 50 * time.Second
	EvictedAfter  = 300 * time.Second
)

// Why a node takes no new replicas, as the inventory of a real cluster says it
// (placement.Node.Out).
const (
	OutCordoned = "cordoned"
	OutNotReady = placement.NodeNotReady
	// OutReclaimed is what the taint karpenter.sh/disrupted means, which Karpenter gives a
	// spot node at its notice.
	OutReclaimed = "being removed by Karpenter"
	// OutGone is a node that is not there any more. It offers nothing.
	OutGone = "gone"
)

// outages are the nodes' events to come, and what became of those that were.
type outages struct {
	// due is in order of time.
	due []appointment
	// dead are the nodes that do not answer, by index; turn counts what happened to each,
	// so that what followed from something earlier is known to be over.
	dead []bool
	turn []int
}

// appointment is what is to happen, and when.
type appointment struct {
	at time.Duration
	do func()
}

// expect begins to wait for the events.
func (w *World) expect(events []NodeEvent) {
	w.dead, w.turn = make([]bool, len(w.cluster.Nodes)), make([]int, len(w.cluster.Nodes))
	for _, e := range events {
		w.appoint(e.At, func() { w.happen(e) })
	}
}

// appoint puts something behind all that is due until then.
func (w *World) appoint(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(w.due, at, func(a appointment, at time.Duration) int {
		return cmp.Or(cmp.Compare(a.at, at), -1)
	})
	w.due = slices.Insert(w.due, i, appointment{at: at, do: do})
}

// follows is what comes of an event after a time, unless something else has happened to
// the node by then.
func (w *World) follows(after time.Duration, node int, do func()) {
	turn := w.turn[node]
	w.appoint(later(w.now, after), func() {
		if w.turn[node] == turn {
			do()
		}
	})
}

// befall has the nodes meet what is due, and reports whether that was anything.
func (w *World) befall() bool {
	met := false
	for len(w.due) > 0 && w.due[0].at <= w.now {
		next := w.due[0]
		w.due = w.due[1:]
		next.do()
		met = true
	}
	return met
}

// happen has a node meet an event. One that is gone meets nothing but its return.
func (w *World) happen(e NodeEvent) {
	node := &w.cluster.Nodes[e.Node]
	if node.Out == OutGone && e.Kind != Restored {
		return
	}
	switch e.Kind {
	case Cordoned:
		node.Out = OutCordoned
	case Drained:
		node.Out = OutCordoned
		w.evict(e.Node, w.options.Drain)
	case Failed:
		w.turn[e.Node]++
		w.fall(e.Node)
	case Reclaimed:
		w.turn[e.Node]++
		node.Out = cmp.Or(node.Out, OutReclaimed)
		w.evict(e.Node, min(w.options.Drain, e.Notice))
		w.follows(e.Notice, e.Node, func() { w.remove(e.Node) })
	case Restored:
		w.turn[e.Node]++
		w.restore(e.Node)
	}
}

// on calls for every replica that a node holds, in order of creation.
func (w *World) on(node int, each func(*replica)) {
	for _, r := range w.live {
		if r.Node == node && r.Stage != Gone {
			each(r)
		}
	}
}

// evict deletes the replicas of a node, as a drain does.
func (w *World) evict(node int, within time.Duration) {
	w.on(node, func(r *replica) {
		if r.Stage != Leaving {
			w.leave(r, within)
		}
	})
}

// fall lets a node stop.
func (w *World) fall(node int) {
	if w.dead[node] {
		return
	}
	w.dead[node] = true
	w.on(node, func(r *replica) {
		switch r.Stage {
		case Leaving:
			w.end(r)
		case Serving:
			w.mute(r)
		default:
			r.Silent, r.serves = true, never
		}
	})
	w.follows(NotReadyAfter, node, func() {
		w.cluster.Nodes[node].Out = OutNotReady
		w.on(node, func(r *replica) {
			if r.Stage == Serving {
				r.Unready = w.now
				w.move(r, NotReady)
			}
		})
		w.follows(EvictedAfter, node, func() { w.evict(node, 0) })
	})
}

// mute lets the server of a replica stop: what it has fails, and it gets no more.
func (w *World) mute(r *replica) {
	w.withdraw(r)
	w.abandon(r)
	r.engine, r.sums, r.Silent = nil, Metrics{}, true
}

// remove takes a node out of the cluster with all that it holds.
func (w *World) remove(node int) {
	w.dead[node] = true
	w.on(node, func(r *replica) {
		if r.Stage != Leaving {
			w.leave(r, 0)
		} else {
			w.end(r)
		}
	})
	n := &w.cluster.Nodes[node]
	n.Out, n.Allocatable, n.Free = OutGone, placement.Resources{}, placement.Resources{}
}

// restore brings a node back.
func (w *World) restore(node int) {
	n, was := &w.cluster.Nodes[node], &w.options.Cluster.Nodes[node]
	if n.Out == OutGone {
		n.Allocatable, n.Free = was.Allocatable, was.Free
	}
	n.Out = was.Out
	if !w.dead[node] {
		return
	}
	w.dead[node] = false
	w.on(node, func(r *replica) {
		if r.Ready >= 0 {
			r.Restarts++
		}
		r.Silent, r.Unready, r.Ready = false, 0, -1
		w.start(r)
	})
}

// refill creates replicas in the place of those that were deleted, as a ReplicaSet does.
func (w *World) refill() {
	for i := range w.models {
		for j := range w.models[i].variants {
			v := &w.models[i].variants[j]
			for v.active < v.wanted {
				w.create(v)
			}
		}
	}
}

func (e *NodeEvent) check(c *placement.Cluster) error {
	switch {
	case e.Node < 0 || e.Node >= len(c.Nodes):
		return fmt.Errorf("an event at %v is of the node of index %d; expected one below %d", e.At, e.Node, len(c.Nodes))
	case e.At < 0:
		return fmt.Errorf("an event of node %s is at %v; expected at least 0", c.Nodes[e.Node].Name, e.At)
	case e.Kind < Cordoned || e.Kind > Restored:
		return fmt.Errorf("the event of node %s at %v is of kind %d; expected one from %d to %d", c.Nodes[e.Node].Name, e.At, e.Kind, Cordoned, Restored)
	case e.Notice < 0:
		return fmt.Errorf("the notice of node %s at %v is %v; expected at least 0", c.Nodes[e.Node].Name, e.At, e.Notice)
	}
	return nil
}
