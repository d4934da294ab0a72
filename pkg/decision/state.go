package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

const (
	// leastDeadline is the least start-up deadline, and deadlineStartups how many start-ups
	// as seen it is else.
	leastDeadline    = time.Minute
	deadlineStartups = 3
	// placementPatience is how long a replica may hold no node before the cluster is
	// taken to have no room for it, where clusters do not grow.
	placementPatience = 30 * time.Second
	// nodePatience is the same for clusters that grow: a node takes minutes to come.
	nodePatience = 3 * time.Minute
	// podPatience is how long a replica that was asked for may have no pod before it is
	// taken not to come: a quota or an admission rule keeps it away.
	podPatience = 2 * time.Minute
	// crashStartups is for how many start-ups containers may fail: one restart may mend it.
	crashStartups = 1.5
)

// A variant whose replicas found no node, or did not come up, is left alone for leastPause,
// and again times as long each time that it happens within recovery of the end of a pause.
const (
	again      = 2
	leastPause = time.Minute
	mostPause  = 16 * time.Minute
	recovery   = 10 * time.Minute
	// unreadRecovery is the same where the nodes cannot be read: only a start that fails
	// shows then how many replicas fit.
	unreadRecovery = 2 * time.Hour
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
	// stateNodeDown: the node that holds it is not ready, so that it serves nobody: no fault of
	// the variant's.
	stateNodeDown
	// stateNoPod: there is no pod of it, and none comes.
	stateNoPod
	// stateLeaving: it is one more than the target asks for beside those that serve; those
	// that come to nothing take no other's place.
	stateLeaving
	states
)

func (s state) String() string {
	return [states]string{"serving", "pending", "unschedulable", "crash-looping", "overdue", "on a node that is not ready", "without pod", "leaving"}[s]
}

// fleet is how many replicas of a variant are in each state.
type fleet struct {
	count [states]int
	// since is when the oldest was created, or stopped serving, that is pending or overdue.
	since time.Time
	// supply is how many serve or will in time.
	supply int
	// paused is how long the variant is still left alone.
	paused time.Duration
	// halted is set when a rollout that is paused is why replicas have no pod.
	halted bool
	// unplaceable is set when its replicas come to nothing: they fit nowhere, have no pod,
	// or passed their start-up deadline; and unhealthy also when their containers fail.
	unplaceable, unhealthy bool
	// slow is set when more than serve, and than one, take longer to start than was seen, and none
	// that started later was faster.
	slow bool
}

// unplaced is the number of replicas that wait in vain for a node or a pod.
func (f *fleet) unplaced() int { return f.count[stateUnschedulable] + f.count[stateNoPod] }

// hopeless is the number of replicas that hold a node and will not come up: their
// containers keep failing, or others of the variant took a third of the time.
func (v *variant) hopeless() int {
	f := &v.fleet
	if v.in.Startup > 0 {
		return f.count[stateCrashLooping] + f.count[stateOverdue]
	}
	return f.count[stateCrashLooping]
}

// lost says which replicas do not come up, by state: "3 unschedulable, 2 without pod".
func (f *fleet) lost() string {
	var parts []string
	for s := stateUnschedulable; s <= stateNoPod; s++ {
		if n := f.count[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, s))
		}
	}
	if f.halted {
		return strings.Join(parts, ", ") + ": the rollout is paused"
	}
	return strings.Join(parts, ", ")
}

// lostTo is the reason for which they do not.
func (f *fleet) lostTo() Reason {
	switch {
	case f.halted:
		return ReasonRolloutPaused
	case f.unplaced() == 0:
		return ReasonStartupOverdue
	}
	return ReasonNoSlots
}

// starts reports whether replicas start that count as supply.
func (f *fleet) starts() bool { return f.supply > f.count[stateServing] }

// fleetOf finds the state of each replica of the variant, and which of them are supply:
// what is past its deadline, or fits nowhere, is none, so that its demand goes elsewhere.
// Startup is how long a start takes; 0 means that nobody knows, or that it takes longer now.
func (r *round) fleetOf(v *variant, startup time.Duration) fleet {
	f := fleet{}
	f.count[stateServing] = v.in.Ready
	if !v.in.exists() {
		return f
	}
	deadline, unseen := r.startupDeadline(v, startup)
	v.next.Unseen = unseen
	failing := 0
	for i := range v.in.Starting {
		s := &v.in.Starting[i]
		at := r.stateOf(v, s, deadline)
		if at == statePending && f.count[at] >= v.in.Current-v.in.Ready {
			at = stateLeaving
		}
		if f.since.IsZero() && (at == statePending || at == stateOverdue) {
			f.since = s.Since
		}
		f.count[at]++
		if s.Failing {
			failing++
		}
	}
	awaiting := r.awaitingPod(v)
	f.count[stateNoPod] = v.in.noPod() - awaiting
	f.count[statePending] += awaiting
	f.halted = v.in.Paused && f.count[stateNoPod] > 0
	// One that does not come up is its own fault; all that start are the variant's.
	mostly := func(bad int) bool {
		return bad > 0 && bad == len(v.in.Starting) && bad >= v.in.Ready
	}
	f.slow = startup > 0 && f.count[stateOverdue] > max(1, v.in.Ready) && !v.in.begunAfter(f.since)
	f.unplaceable = f.unplaced() > 0 || mostly(f.count[stateCrashLooping]+f.count[stateOverdue])
	f.unhealthy = f.unplaceable || mostly(failing)
	v.next.Backoff = r.backoffOf(v, &f)
	f.paused = max(0, v.next.Backoff.Until.Sub(r.snapshot.Time))
	f.supply = min(v.in.Current, v.in.Ready+f.count[statePending])
	if f.paused > 0 {
		// Nor do its others that wait for a node, as long as it is left alone.
		f.supply = min(v.in.Current, max(v.in.Ready, v.in.Ready+f.count[statePending]-v.in.unscheduled()+f.count[stateUnschedulable]))
	}
	return f
}

// begunAfter reports whether a replica began to serve after an instant.
func (v *Variant) begunAfter(at time.Time) bool {
	return slices.ContainsFunc(v.Replicas, func(p Replica) bool { return p.Since.After(at) })
}

// startupDeadline is how long a starting replica of the variant is taken to come up. Where
// some were given up, and none came up since, the next ones have twice as long as those had.
func (r *round) startupDeadline(v *variant, startup time.Duration) (time.Duration, Unseen) {
	u := Unseen{Before: v.old.Unseen.Before}
	for i := range v.in.Starting {
		if s := &v.in.Starting[i]; !s.unscheduled() && !s.Failing {
			u.Now = max(u.Now, r.snapshot.Time.Sub(s.Since))
		}
	}
	last, _ := v.old.before()
	switch {
	case v.in.begunAfter(last.Until):
		u.Before = 0
	case u.Now < v.old.Unseen.Now:
		u.Before = max(u.Before, v.old.Unseen.Now)
	}
	least := r.policy.StartupDeadline
	if startup > 0 {
		least = max(deadlineStartups*startup, leastDeadline)
	}
	return max(least, again*u.Before), u
}

// stateOf is the state of one replica that does not serve. Where clusters grow, a node may
// take its time to come, however fast a replica starts once it is there.
func (r *round) stateOf(v *variant, s *Starting, deadline time.Duration) state {
	patience := min(r.policy.StartupDeadline, nodePatience)
	switch {
	case !s.Unschedulable:
		// Nobody has judged it, so the scheduler is down.
		patience = max(r.policy.StartupDeadline, deadline)
	case r.policy.Limited:
		patience = min(deadline, placementPatience)
	}
	crashPatience := nodePatience
	if v.in.Startup > 0 {
		crashPatience = max(time.Duration(crashStartups*float64(v.in.Startup)), leastDeadline)
	}
	switch waited := r.snapshot.Time.Sub(s.Since); {
	case s.unscheduled() && waited > patience:
		return stateUnschedulable
	case s.unscheduled():
		return statePending
	case r.down[s.Node]:
		return stateNodeDown
	case s.Failing && waited > min(deadline, crashPatience):
		return stateCrashLooping
	case waited > deadline:
		return stateOverdue
	}
	return statePending
}

// trustAlone takes replicas for supply that passed a deadline where no other variant could
// take their place: to ask for them again would bring nothing sooner. Where nobody knows how
// long a start takes they are waited for, and where all take longer than was seen that is
// forgotten. It records what does not come up in time.
func (r *round) trustAlone(m *model) {
	able := func(v *variant) bool { return v.managed && !v.fleet.unhealthy && v.fleet.paused == 0 }
	healthy := 0
	for _, v := range m.variants {
		if able(v) {
			healthy++
		}
	}
	for _, v := range m.variants {
		alone := healthy == 0 || healthy == 1 && able(v)
		if alone && v.fleet.slow {
			v.fleet = r.fleetOf(v, 0)
		}
		f := &v.fleet
		if alone && v.in.Startup == 0 {
			f.supply = min(v.in.Current, f.supply+f.count[stateOverdue])
			f.count[statePending] += f.count[stateOverdue]
			f.count[stateOverdue] = 0
		}
		if lost := f.lost(); lost != "" {
			v.fact(ReasonStartupOverdue, "not ready in time: %s", lost)
		}
	}
}

// rolling reports whether a rolling update is under way and moves on: one all of whose new
// pods do not come up waits for its user.
func (v *variant) rolling() bool {
	f := &v.fleet
	return v.in.Rolling && (f.count[statePending] > 0 || f.unplaced()+f.count[stateCrashLooping]+f.count[stateOverdue] == 0)
}

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

// noPod is the number of replicas that were asked for and have no pod.
func (v *Variant) noPod() int {
	return max(0, v.Current-v.Ready-len(v.Starting))
}

// noPodSince is since when replicas have no pod. A larger number is a new start, and those
// that wait for their turn begin to be late when it has come.
func (r *round) noPodSince(v *variant) time.Time {
	before, _ := v.old.before()
	switch {
	case v.in.noPod() == 0:
		return time.Time{}
	case before.Replicas < v.in.Current, r.waitTheirTurn(v):
		return r.snapshot.Time
	}
	since := r.since(v.old.NoPod)
	for i := range v.in.Replicas {
		// One that came up late let the next one's turn come then.
		if came := v.in.Replicas[i].Since; v.in.Ordered && came.After(since) {
			since = came
		}
	}
	return since
}

// waitTheirTurn reports whether replicas without a pod get one once those that start now
// serve, and these are in time.
func (r *round) waitTheirTurn(v *variant) bool {
	deadline, _ := r.startupDeadline(v, v.in.Startup)
	late := func(s Starting) bool { return r.stateOf(v, &s, deadline) != statePending }
	return v.in.Ordered && len(v.in.Starting) > 0 && !slices.ContainsFunc(v.in.Starting, late)
}

// awaitingPod is the number of replicas without a pod that may still get one: a write is
// not visible at once.
func (r *round) awaitingPod(v *variant) int {
	if r.snapshot.Time.Sub(v.next.NoPod) > podPatience+v.in.Settling {
		return 0
	}
	return v.in.noPod()
}

// backoffOf leaves a variant alone whose replicas wait in vain for a node or do not come
// up, and forgets that it did so when one came up, it has been well for a while, or the rolling
// update is over whose pods these were. Where there was no room for them, it is tried again once
// there is; where there was, and the scheduler refused them, it waits.
func (r *round) backoffOf(v *variant, f *fleet) Backoff {
	b, now := v.old.Backoff, r.snapshot.Time
	known, read, full, well := b != (Backoff{}), r.unknown(v) == nil, r.full(v), recovery
	if !read {
		well = unreadRecovery
	}
	over := b.Full && read && !full || !now.Before(b.Until) && now.Sub(b.Until) > well
	switch {
	case known && v.in.Ready > b.Ready, b.Rolling && !v.in.Rolling, over && !f.unplaceable:
		return Backoff{}
	case !f.unplaceable:
		return b
	case now.Before(b.Until):
		// It is left alone from when they are given back.
		b.Until = now.Add(b.Pause)
		return b
	}
	pause := min(max(again*b.Pause, leastPause), mostPause)
	full = full && f.unplaced() > 0 && v.next.Refused.IsZero()
	return Backoff{Until: now.Add(pause), Pause: pause, Ready: v.in.Ready, Rolling: v.in.Rolling, Full: full}
}

// oneAtATime is the limit of a variant that was left alone, until one of its replicas
// holds a node: it is tried, not trusted, but for as many as served when it was.
func (v *variant) oneAtATime(limit int) int {
	if v.next.Backoff == (Backoff{}) || v.fleet.paused > 0 || v.in.unscheduled() < len(v.in.Starting) {
		return limit
	}
	return max(0, min(limit, max(1, v.next.Backoff.Ready-v.in.Current))-v.in.unscheduled()-v.in.noPod())
}

// pausedDetail says that the variant is left alone, and for how long.
func (v *variant) pausedDetail() string {
	return fmt.Sprintf("%s; next try in %s", v.pausedFor(), v.fleet.paused.Round(time.Second))
}

// pausedFor says why the variant is left alone.
func (v *variant) pausedFor() string {
	if v.next.Backoff.Full {
		return "backing off: replicas found no node"
	}
	return "backing off after failed starts"
}

// down are the names of the nodes that are not ready.
func (s *Snapshot) down() map[string]bool {
	down := map[string]bool{}
	if s.Cluster == nil {
		return down
	}
	for i := range s.Cluster.Nodes {
		if n := &s.Cluster.Nodes[i]; n.Out == placement.NodeNotReady {
			down[n.Name] = true
		}
	}
	return down
}
