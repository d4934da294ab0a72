package decision

import (
	"fmt"
	"time"
)

const (
	// leastDeadline is the least start-up deadline.
	leastDeadline = time.Minute
	// placementPatience is how long a replica may hold no node before the cluster is
	// taken to have no room for it, where clusters do not grow.
	placementPatience = 30 * time.Second
	// nodePatience is the same for clusters that grow: a node takes minutes to come.
	nodePatience = 3 * time.Minute
)

// state is what a replica does; it is found once per round.
type state int

const (
	// stateServing: it is ready.
	stateServing state = iota
	// statePending: it starts, or is to get a pod, in time.
	statePending
	// stateUnschedulable: no node holds it, for longer than one takes to come.
	stateUnschedulable
	// stateCrashLooping: its containers keep failing, or its image cannot be had.
	stateCrashLooping
	// stateOverdue: a node holds it and it passed its start-up deadline.
	stateOverdue
	// stateNoPod: there is no pod of it, and none comes.
	stateNoPod
	// stateLeaving: it is one more than the target asks for.
	stateLeaving
	states
)

// fleet is how many replicas of a variant are in each state.
type fleet struct {
	count [states]int
	// of are the states of Variant.Starting, by index.
	of []state
	// supply is how many serve or will in time.
	supply int
	// paused is how long the variant is still left alone.
	paused time.Duration
	// unplaceable is set when its replicas come to nothing: they fit nowhere, have no pod,
	// or passed their start-up deadline; and unhealthy also when their containers fail.
	unplaceable, unhealthy bool
	// startupSeen is set when the time that a start-up takes was seen.
	startupSeen bool
}

// unplaced is the number of replicas that wait in vain for a node or a pod.
func (f *fleet) unplaced() int { return f.count[stateUnschedulable] + f.count[stateNoPod] }

// hopeless is the number of replicas that hold a node and will not come up: their
// containers keep failing, or others of the variant took a third of the time.
func (f *fleet) hopeless() int {
	if f.startupSeen {
		return f.count[stateCrashLooping] + f.count[stateOverdue]
	}
	return f.count[stateCrashLooping]
}

// starts reports whether replicas start that count as supply.
func (f *fleet) starts() bool { return f.supply > f.count[stateServing] }

// fleetOf finds the state of each replica of the variant, and which of them are supply:
// what is past its deadline, or fits nowhere, is none, so that its demand goes elsewhere.
func (r *round) fleetOf(v *variant) fleet {
	f := fleet{startupSeen: v.in.Startup > 0}
	f.count[stateServing] = v.in.Ready
	if !v.exists() {
		return f
	}
	f.of = make([]state, len(v.in.Starting))
	excess := v.in.Ready + len(v.in.Starting) - v.in.Current
	deadline, failing := r.startupDeadline(v), 0
	for i := len(v.in.Starting) - 1; i >= 0; i-- {
		s := &v.in.Starting[i]
		f.of[i] = r.stateOf(v, s, deadline)
		if s.Stuck {
			failing++
		}
		if excess > 0 && f.of[i] == statePending {
			f.of[i] = stateLeaving
			excess--
		}
		f.count[f.of[i]]++
	}
	awaiting := r.awaitingPod(v)
	f.count[stateNoPod] = v.in.noPod() - awaiting
	f.count[statePending] += awaiting
	// One that does not come up is its own fault; all that start are the variant's.
	mostly := func(bad int) bool {
		return bad > 0 && bad == len(v.in.Starting) && 2*bad >= v.in.Ready+len(v.in.Starting)
	}
	f.unplaceable = f.unplaced() > 0 || mostly(f.count[stateCrashLooping]+f.count[stateOverdue])
	f.unhealthy = f.unplaceable || mostly(failing)
	v.next.Backoff = r.backoffOf(v, f.unplaceable)
	f.paused = max(0, v.next.Backoff.Until.Sub(r.snapshot.Time))
	f.supply = min(v.in.Current, v.in.Ready+f.count[statePending])
	if f.paused > 0 {
		// Nor do its others that wait for a node, as long as it is left alone.
		f.supply = min(v.in.Current, max(v.in.Ready, v.in.Ready+f.count[statePending]-v.in.unscheduled()+f.count[stateUnschedulable]))
	}
	v.tellOverdue(&f)
	return f
}

// trustUnseen counts replicas that passed a deadline although nobody knows how long a start
// takes as supply, where no other variant could take their place: to buy them again would
// bring nothing sooner.
func (m *model) trustUnseen() {
	for _, v := range m.variants {
		f := &v.fleet
		if f.startupSeen || f.count[stateOverdue] == 0 {
			continue
		}
		alone := true
		for _, o := range m.variants {
			alone = alone && (o == v || !o.managed || o.fleet.unhealthy || o.fleet.paused > 0)
		}
		if alone {
			f.supply = min(v.in.Current, f.supply+f.count[stateOverdue])
		}
	}
}

// rolling reports whether a rolling update is under way and moves on: one all of whose new
// pods do not come up waits for its user.
func (v *variant) rolling() bool {
	f := &v.fleet
	stalled := f.count[statePending] == 0 && f.unplaced()+f.count[stateCrashLooping]+f.count[stateOverdue] > 0
	return v.in.Rolling && !stalled
}

// startupDeadline is how long a starting replica of the variant is taken to come up. Where
// none was ever seen to, the next ones have twice as long as those that were given up.
func (r *round) startupDeadline(v *variant) time.Duration {
	if v.in.Startup > 0 {
		return max(3*v.in.Startup, leastDeadline)
	}
	u := Unseen{Before: v.old.Unseen.Before}
	for i := range v.in.Starting {
		if s := &v.in.Starting[i]; !s.unscheduled() && !s.Stuck {
			u.Now = max(u.Now, r.snapshot.Time.Sub(s.Created))
		}
	}
	if u.Now < v.old.Unseen.Now {
		u.Before = max(u.Before, v.old.Unseen.Now)
	}
	v.next.Unseen = u
	return max(r.policy.StartupDeadline, 2*u.Before)
}

// stateOf is the state of one replica that does not serve.
func (r *round) stateOf(v *variant, s *Starting, deadline time.Duration) state {
	// Where clusters grow, a node may take its time to come, however fast a replica
	// starts once it is there.
	patience := min(r.policy.StartupDeadline, nodePatience)
	if r.policy.Limited {
		patience = min(deadline, placementPatience)
	}
	switch waited := r.snapshot.Time.Sub(s.Created); {
	case s.Unschedulable && waited > patience, s.unscheduled() && waited > max(patience, deadline):
		return stateUnschedulable
	case s.unscheduled():
		return statePending
	case s.Stuck && waited > min(deadline, v.crashPatience()):
		return stateCrashLooping
	case waited > deadline:
		return stateOverdue
	}
	return statePending
}

// crashPatience is how long a replica whose containers keep failing counts as supply:
// one restart may be mended by the next.
func (v *variant) crashPatience() time.Duration {
	if v.in.Startup == 0 {
		return nodePatience
	}
	return max(v.in.Startup*3/2, leastDeadline)
}

// tellOverdue records the replicas that did not come up in time.
func (v *variant) tellOverdue(f *fleet) {
	absent := f.count[stateNoPod]
	late := f.unplaced() + f.count[stateCrashLooping] + f.count[stateOverdue]
	if late == 0 {
		return
	}
	detail := "1 replica has not become ready in time and is no supply"
	if late > 1 {
		detail = fmt.Sprintf("%d replicas have not become ready in time and are no supply", late)
	}
	if absent > 0 {
		detail += fmt.Sprintf("; %s no pod, see the events of the target", plural(absent, "of them has", "of them have"))
	}
	v.plan.Facts = append(v.plan.Facts, Fact{ReasonStartupOverdue, detail})
}
