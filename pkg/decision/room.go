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

// reserve takes the room of replicas that were asked for and hold no node yet, of
// those that no pod shows yet, and of the surge of rolling updates, so that nothing
// is given away twice.
func (r *round) reserve() {
	r.each(func(v *variant) { v.next.NoPod = r.noPodSince(v) })
	if r.snapshot.Cluster == nil {
		return
	}
	r.trial, r.keeping = placement.NewTrial(r.snapshot.Cluster.Clone()), map[capacity.Accelerator]*variant{}
	r.trial.Expect(r.outlook())
	all := r.byImportance()
	for _, v := range all {
		waiting, awaited := v.in.unscheduled(), r.awaitingPod(v)
		// Quotas count the pods that are there already, whether a node holds them or not.
		r.trial.Charge(v.in.Request, -waiting)
		held := r.place(v, waiting)
		r.trial.Charge(v.in.Request, waiting-len(held))
		held = append(held, r.take(v, awaited)...)
		v.plan.Unplaced = waiting + awaited - len(held)
		v.kept = len(held)
		v.next.Refused = r.release(v, held, waiting+awaited)
		if v.kept > 0 {
			device := v.in.Request.Shape.Accelerator
			if most := r.keeping[device]; most == nil || v.kept > most.kept {
				r.keeping[device] = v
			}
		}
		r.take(v, v.in.Surge)
	}
	r.nominate(all)
}

// nominated is room that is kept for one replica: the node, whether it fits there now, and whether
// who gives it goes.
type nominated struct {
	Nomination
	node       int
	fits, goes bool
}

// nominate keeps the room for whom it was made, as long as a scale-down waits, also while who
// gives it still holds a part of it, unless there is room elsewhere by then.
func (r *round) nominate(variants []*variant) {
	var has map[Key]int
	for _, v := range variants {
		for i, given := range v.old.Nominated {
			if has == nil {
				has = map[Key]int{}
				r.each(func(v *variant) { has[v.key] = v.in.Current })
			}
			node, known := r.nodes()[given.Node]
			left, found := has[given.By]
			age, goes := r.snapshot.Time.Sub(given.At), found && left <= given.To
			// One that waits has its room.
			entered := i == 0 && v.in.unscheduled() > 0 && v.plan.Unplaced == 0
			if !known || entered || age >= v.policy.Down.Window && (!goes || age >= nodePatience) || r.unknown(v) != nil {
				continue
			}
			made := nominated{given, node, r.trial.Cluster().Fits(v.in.Request, node) && r.allowed(v) > 0, goes}
			if !made.fits {
				// Kubernetes may remove another replica than the one that was to go.
				if held := r.place(v, 1); held != nil {
					v.nominated = append(v.nominated, nominated{given, held[0], true, goes})
					continue
				}
			}
			r.trial.Put(v.in.Request, node)
			v.nominated = append(v.nominated, made)
		}
	}
}

// withoutNominated is the cluster without the room that is kept for whom it was made: it may be
// made anew, and who gives it may hold it still.
func (r *round) withoutNominated() *placement.Cluster {
	room := r.trial.Cluster().Clone()
	r.each(func(v *variant) {
		for _, made := range v.nominated {
			room.Remove(v.in.Request, made.node)
		}
	})
	return room
}

// enter has a replica take the room that was made for it, once it fits there. Who wants none
// any more leaves the room to others.
func (r *round) enter(m *model, found answer) {
	m.each(func(v *variant) {
		kept := v.nominated[:0]
		for _, made := range v.nominated {
			few := v.target < v.policy.Min
			wants := few || r.lacksOne(m) || m.need.want == wantMore && !v.rate.unfit() && m.toBuy() > 0
			switch {
			case wants && (!made.fits || v.fleet.paused > 0 || r.mayAdd(v) == 0 && !few):
				kept = append(kept, made)
			case wants:
				v.step(StageAllocation, v.target+1, m.need.reason, "%s: uses the room that other models gave up for it", m.need.detail)
				found.ideal[v] = v.target
			default:
				r.trial.Remove(v.in.Request, made.node)
			}
		}
		v.nominated = kept
	})
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

// place takes the room of up to n replicas and returns the nodes that keep it.
func (r *round) place(v *variant, n int) []int {
	var held []int
	for range n {
		node, ok := r.trial.Place(v.in.Request)
		if !ok {
			break
		}
		held = append(held, node)
	}
	return held
}

// take is place for replicas whose pods come whether a node has room for them or not: they
// count against quotas as far as these let them come.
func (r *round) take(v *variant, n int) []int {
	held := r.place(v, n)
	if r.unknown(v) == nil {
		r.trial.Charge(v.in.Request, min(n-len(held), r.allowed(v)))
	}
	return held
}

// release gives away the room of pods that the scheduler has refused for a while
// although the model would place them: something that is not modelled keeps them
// away, and others may have what they cannot use. It returns since when it refuses them.
func (r *round) release(v *variant, held []int, wanting int) (since time.Time) {
	refused := 0
	for i := range v.in.Starting {
		if s := &v.in.Starting[i]; s.unscheduled() && s.Unschedulable {
			refused++
		}
	}
	usable := wanting - refused
	if len(held) <= usable {
		return time.Time{}
	}
	since = r.since(v.old.Refused)
	if r.snapshot.Time.Sub(since) > placementPatience {
		for _, node := range held[usable:] {
			r.trial.Remove(v.in.Request, node)
			r.trial.Charge(v.in.Request, 1)
		}
		v.kept = usable
	}
	return since
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
		waiting := in.unscheduled()
		e := placement.Expecting(in.Request.Shape, waiting+r.awaitingPod(v), in.Current-waiting-in.noPod(), v.policy.Max)
		at, ok := index[in.Request.Shape]
		if !ok {
			index[in.Request.Shape] = len(all)
			all = append(all, e)
			return
		}
		all[at].Weight += e.Weight
		all[at].Waiting += e.Waiting
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

// fitting is how many replicas a variant may add now: by maxReplicas and scaleUp, and by
// what fits.
func (r *round) fitting(v *variant) int { return r.fittingOf(v, r.mayAdd(v)) }

// eventually is how many it may add in the course of time, however few scaleUp allows now.
func (r *round) eventually(v *variant) int {
	if v.policy.Up.Select == SelectDisabled {
		return 0
	}
	return r.fittingOf(v, v.below(mostReplicas))
}

// fittingOf is how many of up to so many more replicas fit.
func (r *round) fittingOf(v *variant, limit int) int {
	if r.unknown(v) == nil {
		return min(limit, r.slots(v.in.Request))
	}
	return limit
}

// mayAdd is how many replicas a variant may add now, whatever fits.
func (r *round) mayAdd(v *variant) int {
	most, _ := r.mayReach(v)
	return v.below(most)
}

// below is how many more replicas a variant may have that may have so many.
func (v *variant) below(most int) int { return v.oneAtATime(max(0, v.bounded(most)-v.target)) }

// slots is how many more replicas fit of which one takes so much.
func (r *round) slots(q *placement.Request) int {
	slots, _ := r.trial.Slots(q)
	return slots
}

// allowed is how many more replicas of the variant quotas allow, which no new node changes.
func (r *round) allowed(v *variant) int {
	if r.unknown(v) != nil {
		return math.MaxInt
	}
	allowed, _ := r.trial.Allowed(v.in.Request)
	return allowed
}

// full reports whether no more replicas of the variant fit now; it is false when nobody
// knows.
func (r *round) full(v *variant) bool { return r.unknown(v) == nil && r.slots(v.in.Request) == 0 }

// crowded says, with numbers, that no more replicas of the variant fit now; empty
// when some do or nobody knows.
func (r *round) crowded(v *variant) string {
	if !r.full(v) {
		return ""
	}
	return r.noRoom(v)
}

// noRoom says why no more replicas of the variant fit. Room that is kept for others looks
// free to whoever looks at the nodes: it says who has the most of it, by name within one namespace alone.
func (r *round) noRoom(v *variant) string {
	why := r.trial.Explain(v.in.Request).String()
	if most := r.keeping[v.in.Request.Shape.Accelerator]; most != nil && most != v {
		why += fmt.Sprintf("; room is kept for %s of %s without a node", plural(most.kept, "replica", "replicas"), most.as(v.key.Namespace))
	}
	return why
}

// look puts what is known of the variant's room into its plan.
func (r *round) look(v *variant) {
	if err := r.unknown(v); err != nil {
		effect := "no replica is added"
		if r.guesses(v) {
			effect = "replicas are added as if they fitted"
		}
		v.fact(ReasonCapacityUnknown, "%v; %s", err, effect)
		return
	}
	hole := r.trial.LargestHole(v.in.Request)
	v.plan.Slots, v.plan.LargestHole = &Slots{Count: r.slots(v.in.Request), Bound: v.in.Request.Bound}, &hole
}
