package limit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
)

// Reserve takes the room of replicas that were asked for and hold no node yet, of
// those that no pod shows yet, and of the surge of rolling updates, so that nothing
// is given away twice.
func (r *Round) Reserve() {
	r.Each(func(v *Variant) { v.Next.NoPod = v.NoPodSince() })
	if r.Snapshot.Cluster == nil {
		return
	}
	r.Trial, r.keeping = placement.NewTrial(r.Snapshot.Cluster.Clone()), map[capacity.Accelerator]*Variant{}
	r.Trial.Expect(r.outlook())
	all := r.byImportance()
	for _, v := range all {
		waiting, awaited := v.In.Unscheduled(), v.AwaitingPod()
		// Quotas count the pods that are there already, whether a node holds them or not.
		r.Trial.Charge(v.In.Request, -waiting)
		held := r.place(v, waiting)
		r.Trial.Charge(v.In.Request, waiting-len(held))
		held = append(held, r.Take(v, awaited)...)
		v.Plan.Unplaced = waiting + awaited - len(held)
		v.kept = len(held)
		v.Next.Refused = r.release(v, held, waiting+awaited)
		if v.kept > 0 {
			device := v.In.Request.Shape.Accelerator
			if most := r.keeping[device]; most == nil || v.kept > most.kept {
				r.keeping[device] = v
			}
		}
		r.Take(v, v.In.Surge)
	}
	r.nominate(all)
}

// Nominated is room that is kept for one replica: the node, whether it fits there now, and whether
// who gives it goes.
type Nominated struct {
	contract.ReservedRoom

	// Index is that of the node.
	Index      int
	Fits, Goes bool
}

// nominate keeps the room for whom it was made, as long as a scale-down waits, also while who
// gives it still holds a part of it, unless there is room elsewhere by then.
func (r *Round) nominate(variants []*Variant) {
	var has map[contract.Key]int
	for _, v := range variants {
		for i, given := range v.Old.Nominated {
			if has == nil {
				has = map[contract.Key]int{}
				r.Each(func(v *Variant) { has[v.Key] = v.In.Current })
			}
			node, known := r.Nodes()[given.Node]
			left, found := has[given.By]
			age, goes := r.Snapshot.Time.Sub(given.At), found && left <= given.To
			// One that waits has its room.
			entered := i == 0 && v.In.Unscheduled() > 0 && v.Plan.Unplaced == 0
			if !known || entered || age >= v.Policy.Down.Window && (!goes || age >= fleet.NodePatience) || v.Unknown() != nil {
				continue
			}
			made := Nominated{given, node, r.Trial.Cluster().Fits(v.In.Request, node) && r.Allowed(v) > 0, goes}
			if !made.Fits {
				// Kubernetes may remove another replica than the one that was to go.
				if held := r.place(v, 1); held != nil {
					v.Nominated = append(v.Nominated, Nominated{given, held[0], true, goes})
					continue
				}
			}
			r.Trial.Put(v.In.Request, node)
			v.Nominated = append(v.Nominated, made)
		}
	}
}

// WithoutNominated is the cluster without the room that is kept for whom it was made: it may be
// made anew, and who gives it may hold it still.
func (r *Round) WithoutNominated() *placement.Cluster {
	room := r.Trial.Cluster().Clone()
	r.Each(func(v *Variant) {
		for _, made := range v.Nominated {
			room.Remove(v.In.Request, made.Index)
		}
	})
	return room
}

// byImportance are the variants in the order in which their waiting replicas take room:
// the more important first, and of those the larger.
func (r *Round) byImportance() []*Variant {
	var all []*Variant
	r.Each(func(v *Variant) {
		if v.In.Request != nil {
			all = append(all, v)
		}
	})
	slices.SortStableFunc(all, func(a, b *Variant) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.In.Request.Shape.Devices, a.In.Request.Shape.Devices))
	})
	return all
}

// place takes the room of up to n replicas and returns the nodes that keep it.
func (r *Round) place(v *Variant, n int) []int {
	var held []int
	for range n {
		node, ok := r.Trial.Place(v.In.Request)
		if !ok {
			break
		}
		held = append(held, node)
	}
	return held
}

// Take is place for replicas whose pods come whether a node has room for them or not: they
// count against quotas as far as these let them come.
func (r *Round) Take(v *Variant, n int) []int {
	held := r.place(v, n)
	if v.Unknown() == nil {
		r.Trial.Charge(v.In.Request, min(n-len(held), r.Allowed(v)))
	}
	return held
}

// release gives away the room of pods that the scheduler has refused for a while
// although the model would place them: something that is not modelled keeps them
// away, and others may have what they cannot use. It returns since when it refuses them.
func (r *Round) release(v *Variant, held []int, wanting int) (since time.Time) {
	refused := 0
	for i := range v.In.Starting {
		if s := &v.In.Starting[i]; s.Unscheduled() && s.Unschedulable {
			refused++
		}
	}
	usable := wanting - refused
	if len(held) <= usable {
		return time.Time{}
	}
	since = r.Since(v.Old.Refused)
	if r.Snapshot.Time.Sub(since) > fleet.PlacementPatience {
		for _, node := range held[usable:] {
			r.Trial.Remove(v.In.Request, node)
			r.Trial.Charge(v.In.Request, 1)
		}
		v.kept = usable
	}
	return since
}

// outlook is the replicas still expected. That of all variants of one shape is one
// entry.
func (r *Round) outlook() placement.Outlook {
	index := map[capacity.Shape]int{}
	var all placement.Outlook
	r.Each(func(v *Variant) {
		in := v.In
		if in.Request.Countable() != nil || in.Request.Shape.Devices == 0 {
			return
		}
		waiting := in.Unscheduled()
		e := placement.Expecting(in.Request.Shape, waiting+v.AwaitingPod(), in.Current-waiting-in.NoPod(), v.Policy.Max)
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

// Fitting is how many replicas a variant may add now: by maxReplicas and scaleUp, and by
// what fits.
func (r *Round) Fitting(v *Variant) int { return r.fittingOf(v, r.MayAdd(v)) }

// Eventually is how many it may add in the course of time, however few scaleUp allows now.
func (r *Round) Eventually(v *Variant) int {
	if v.Policy.Up.Select == contract.SelectDisabled {
		return 0
	}
	return r.fittingOf(v, v.below(MostReplicas))
}

// fittingOf is how many of up to so many more replicas fit.
func (r *Round) fittingOf(v *Variant, limit int) int {
	if v.Unknown() == nil {
		return min(limit, r.Slots(v.In.Request))
	}
	return limit
}

// MayAdd is how many replicas a variant may add now, whatever fits.
func (r *Round) MayAdd(v *Variant) int {
	most, _ := r.MayReach(v)
	return v.below(most)
}

// below is how many more replicas a variant may have that may have so many.
func (v *Variant) below(most int) int { return v.OneAtATime(max(0, v.Bounded(most)-v.Target)) }

// Slots is how many more replicas fit of which one takes so much.
func (r *Round) Slots(q *placement.Request) int {
	slots, _ := r.Trial.Slots(q)
	return slots
}

// Allowed is how many more replicas of the variant quotas allow, which no new node changes.
func (r *Round) Allowed(v *Variant) int {
	if v.Unknown() != nil {
		return math.MaxInt
	}
	allowed, _ := r.Trial.Allowed(v.In.Request)
	return allowed
}

// Full reports whether no more replicas of the variant fit now; it is false when nobody
// knows.
func (r *Round) Full(v *Variant) bool { return v.Unknown() == nil && r.Slots(v.In.Request) == 0 }

// Crowded says, with numbers, that no more replicas of the variant fit now; nothing
// when some do or nobody knows.
func (r *Round) Crowded(v *Variant) contract.Finding {
	if !r.Full(v) {
		return contract.Finding{}
	}
	return r.noRoom(v)
}

// noRoom says why no more replicas of the variant fit. Room that is kept for others looks
// free to whoever looks at the nodes: it says who has the most of it, by name within one namespace alone.
func (r *Round) noRoom(v *Variant) contract.Finding {
	why := contract.Words(r.Trial.Explain(v.In.Request).String())
	if most := r.keeping[v.In.Request.Shape.Accelerator]; most != nil && most != v {
		why = contract.Clauses(why, contract.SaysRoomKept.With(most.kept, most.Key.As(v.Key.Namespace)))
	}
	return why
}

// Look puts what is known of the variant's room into its plan.
func (r *Round) Look(v *Variant) {
	if err := v.Unknown(); err != nil {
		effect := contract.SaysNoneAdded
		if v.Guesses() {
			effect = contract.SaysAddedAsIfTheyFit
		}
		v.Fact(contract.ReasonCapacityUnknown, contract.Clauses(contract.Words(err.Error()), effect.With()))
		return
	}
	hole := r.Trial.LargestHole(v.In.Request)
	v.Plan.Slots, v.Plan.LargestHole = &contract.Slots{Count: r.Slots(v.In.Request), Bound: v.In.Request.Bound}, &hole
}

// Placed is a replica that was tried out on a node, or some that were charged alone.
type Placed struct {
	V             *Variant
	Node, Charged int
}

// Nodes are the indexes of the cluster's nodes by name.
func (r *Round) Nodes() map[string]int {
	if all := r.Trial.Cluster().Nodes; r.nodesByName == nil {
		r.nodesByName = make(map[string]int, len(all))
		for i := range all {
			r.nodesByName[all[i].Name] = i
		}
	}
	return r.nodesByName
}
