package decision

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// visibility is how long a replica that was asked for may have no pod before it is
// taken not to come: a quota or an admission rule keeps it away.
const visibility = 2 * time.Minute

// reserve takes the room of replicas that were asked for and hold no node yet, of
// those that no pod shows yet, and of the surge of rolling updates, so that nothing
// is given away twice.
func (r *round) reserve() {
	r.each(r.watchNoPod)
	if r.snapshot.Cluster == nil {
		return
	}
	cluster := r.snapshot.Cluster.Clone()
	cluster.Table = placement.NewTable(r.outlook(), cluster)
	r.trial = placement.NewTrial(cluster)
	for _, v := range r.byImportance() {
		waiting, awaited := v.in.unscheduled(), r.awaitingPod(v)
		held := r.holdMade(v.in, waiting)
		held = append(held, r.hold(v.in, awaited)...)
		v.plan.Unplaced = waiting + awaited - len(held)
		r.release(v, held, waiting+awaited)
		r.place(v.in, v.in.Surge)
	}
}

// holdMade is hold for pods that are there: quotas count them already, whether a node
// holds them or not.
func (r *round) holdMade(v *Variant, n int) []int {
	r.trial.Charge(v.Request, -n)
	held := r.hold(v, n)
	r.trial.Charge(v.Request, n-len(held))
	return held
}

// byImportance are the variants in the order in which their waiting replicas take room:
// the more important first, and of those the larger.
func (r *round) byImportance() []*variant {
	var all []*variant
	r.each(func(v *variant) {
		if v.in.Request != nil {
			all = append(all, v)
		}
	})
	slices.SortStableFunc(all, func(a, b *variant) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.in.Request.Shape.Devices, a.in.Request.Shape.Devices))
	})
	return all
}

// hold takes the room of up to n replicas and returns the nodes that keep it.
func (r *round) hold(v *Variant, n int) []int {
	var held []int
	for range n {
		node, ok := r.trial.Place(v.Request)
		if !ok {
			break
		}
		held = append(held, node)
	}
	return held
}

// release gives away the room of pods that the scheduler has refused for a while
// although the model would place them: something that is not modelled keeps them
// away, and others may have what they cannot use.
func (r *round) release(v *variant, held []int, wanting int) {
	usable := wanting - v.in.refused()
	if v.in.refused() == 0 || len(held) <= usable {
		return
	}
	v.next.Refused = v.old.Refused
	if v.old.Refused.IsZero() {
		v.next.Refused = r.snapshot.Time
	}
	if r.snapshot.Time.Sub(v.next.Refused) <= placementPatience {
		return
	}
	for _, node := range held[usable:] {
		r.trial.Remove(v.in.Request, node)
		r.trial.Charge(v.in.Request, 1)
	}
}

// refused is the number of waiting pods for which the scheduler found no node.
func (v *Variant) refused() int {
	n := 0
	for i := range v.Starting {
		if s := &v.Starting[i]; s.unscheduled() && s.Unschedulable {
			n++
		}
	}
	return n
}

// each calls f for every variant.
func (r *round) each(f func(*variant)) {
	for _, m := range r.models {
		for _, v := range m.variants {
			f(v)
		}
	}
}

// place takes the room of up to n replicas and returns of how many.
func (r *round) place(v *Variant, n int) int { return len(r.hold(v, n)) }

// unscheduled is the number of pods for which no node keeps room.
func (v *Variant) unscheduled() int {
	n := 0
	for i := range v.Starting {
		if v.Starting[i].unscheduled() {
			n++
		}
	}
	return n
}

func (s *Starting) unscheduled() bool { return !s.Placed && !s.Held }

// noPod is the number of replicas that were asked for and of which there is no
// pod.
func (v *Variant) noPod() int {
	if v.Target != TargetFound && v.Target != TargetConflict {
		return 0
	}
	return max(0, v.Current-v.Ready-len(v.Starting))
}

// watchNoPod keeps since when replicas have no pod. A larger number is a new start, and
// those that wait for their turn begin to be late when it has come.
func (r *round) watchNoPod(v *variant) {
	if v.in.noPod() == 0 {
		return
	}
	v.next.NoPod = v.old.NoPod
	if before, _ := v.old.before(); v.old.NoPod.IsZero() || before.Replicas < v.in.Current || r.waitTheirTurn(v) {
		v.next.NoPod = r.snapshot.Time
	}
}

// waitTheirTurn reports whether replicas without a pod get one once those that start now
// serve, and these are in time.
func (r *round) waitTheirTurn(v *variant) bool {
	deadline := r.startupDeadline(v)
	late := func(s Starting) bool { return r.stateOf(v, &s, deadline) != statePending }
	return v.in.Ordered && len(v.in.Starting) > 0 && !slices.ContainsFunc(v.in.Starting, late)
}

// awaitingPod is the number of replicas without a pod that may still get one: a write is
// not visible at once.
func (r *round) awaitingPod(v *variant) int {
	if v.next.NoPod.IsZero() || r.snapshot.Time.Sub(v.next.NoPod) > visibility+v.in.Settling {
		return 0
	}
	return v.in.noPod()
}

// outlook is the replicas still expected. That of all variants of one shape is one
// entry.
func (r *round) outlook() placement.Outlook {
	index := map[capacity.Shape]int{}
	var all placement.Outlook
	r.each(func(v *variant) {
		in := v.in
		if in.Request.Countable() != nil || in.Request.Shape.Devices == 0 {
			return
		}
		e := placement.Expecting(in.Request.Shape, in.unscheduled()+r.awaitingPod(v), in.Current-in.unscheduled()-in.noPod(), v.policy.Max)
		at, ok := index[in.Request.Shape]
		if !ok {
			index[in.Request.Shape] = len(all)
			all = append(all, e)
			return
		}
		all[at].Weight += e.Weight
	})
	return all
}

// errNodesUnknown says that the cluster could not be read.
var errNodesUnknown = errors.New("nodes, or the pods of all namespaces, may not be read")

// unknown says why nobody knows how many more replicas of the variant fit; nil means
// that it is known.
func (r *round) unknown(v *variant) error {
	if err := v.in.Request.Countable(); err != nil {
		return err
	}
	if r.trial == nil {
		return errNodesUnknown
	}
	return nil
}

// guesses reports whether the variant is decided about as if its replicas fitted while
// nobody knows; else they are held, and it is not managed.
func (r *round) guesses(v *variant) bool {
	switch v.policy.OnUnknown {
	case OnUnknownAllow:
		return true
	case OnUnknownHold:
		return false
	default:
		return v.in.Request.Countable() == nil && !r.policy.Limited
	}
}

// fitting bounds what a variant may buy: its own bound and behavior, and what fits now.
// Negative means no bound.
func (r *round) fitting(v *variant) int {
	limit := r.atMost(v, r.mayAdd(v, 0))
	if r.unknown(v) != nil {
		return limit
	}
	return fewer(limit, r.slots(v)+v.minimum.held)
}

// fewer is the lower of an upper bound, negative for none, and another number.
func fewer(bound, n int) int {
	if bound < 0 {
		return n
	}
	return min(bound, n)
}

// mayAdd is how many replicas beyond those already bought the variant's own bound and its
// behavior allow, those of its minimum in any case; negative means no bound.
func (r *round) mayAdd(v *variant, bought int) int {
	most, _ := r.mayReach(v)
	if v.policy.Max >= 0 {
		most = min(most, v.policy.Max)
	}
	return max(0, v.minimum.held, most-v.target) - bought
}

// slots is how many more replicas fit of a variant that is not unknown.
func (r *round) slots(v *variant) int {
	slots, err := r.trial.Slots(v.in.Request)
	if err != nil {
		return 0
	}
	return slots
}

// onNodes is how many more of it the nodes take, whatever quotas allow.
func (r *round) onNodes(v *variant) int {
	free := *v.in.Request
	free.Charges = nil
	slots, err := r.trial.Slots(&free)
	if err != nil {
		return 0
	}
	return slots
}

// allowed is how many more replicas of the variant quotas allow, which no new node changes.
func (r *round) allowed(v *variant) int {
	if r.unknown(v) != nil {
		return math.MaxInt
	}
	allowed, _ := r.trial.Cluster().Allowed(v.in.Request)
	return allowed
}

// full reports whether no more replicas of the variant fit now; it is false when nobody
// knows.
func (r *round) full(v *variant) bool { return r.unknown(v) == nil && r.slots(v) == 0 }

// crowded says, with numbers, that no more replicas of the variant fit now; empty
// when some do or nobody knows.
func (r *round) crowded(v *variant) string {
	if !r.full(v) {
		return ""
	}
	return r.trial.Explain(v.in.Request).String()
}

// look puts what is known of the variant's room into its plan.
func (r *round) look(v *variant) {
	if err := r.unknown(v); err != nil {
		v.plan.Facts = append(v.plan.Facts, Fact{ReasonCapacityUnknown, unknownDetail(err, r.guesses(v))})
		return
	}
	hole := r.trial.LargestHole(v.in.Request)
	v.plan.Slots, v.plan.LargestHole = &Slots{Count: r.slots(v), Bound: v.in.Request.Bound}, &hole
}

func unknownDetail(why error, guesses bool) string {
	if guesses {
		return fmt.Sprintf("%v; replicas are added as if they fitted", why)
	}
	return fmt.Sprintf("%v; no replica is added", why)
}
