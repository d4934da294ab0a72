package fleet

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

const (
	// leastDeadline is the least start-up deadline, and deadlineStartups how many start-ups
	// as seen it is else.
	leastDeadline    = time.Minute
	deadlineStartups = 3
	// PlacementPatience is how long a replica may hold no node before the cluster is
	// taken to have no room for it, where clusters do not grow.
	PlacementPatience = 30 * time.Second
	// NodePatience is the same for clusters that grow: a node takes minutes to come.
	NodePatience = 3 * time.Minute
	// PodPatience is how long a replica that was asked for may have no pod before it is
	// taken not to come: a quota or an admission rule keeps it away.
	PodPatience = 2 * time.Minute
	// crashStartups is for how many start-ups containers may fail: one restart may mend it.
	crashStartups = 1.5
)

// A variant whose replicas found no node, or did not come up, is left alone for leastPause,
// and again times as long each time that it happens within recovery of the end of a pause.
const (
	LeastPause = time.Minute
	MostPause  = 16 * time.Minute
	recovery   = 10 * time.Minute
	// unreadRecovery is the same where the nodes cannot be read: only a start that fails
	// shows then how many replicas fit.
	unreadRecovery = 2 * time.Hour
)

// State is what a replica does; it is found once per round.
type State int

// The states of a replica.
const (
	// StateServing: it is ready.
	StateServing State = iota
	// StatePending: it starts, or is to get a pod, in time.
	StatePending
	// StateUnschedulable: no node holds it, for longer than one takes to come.
	StateUnschedulable
	// StateCrashLooping: its containers keep failing, or its image cannot be had.
	StateCrashLooping
	// StateOverdue: a node holds it and it passed its start-up deadline.
	StateOverdue
	// stateNodeDown: the node that holds it is not ready, so that it serves nobody: no fault of
	// the variant's.
	stateNodeDown
	// StateNoPod: there is no pod of it, and none comes.
	StateNoPod
	// StateLeaving: it is one more than the target asks for beside those that serve; those
	// that come to nothing take no other's place.
	StateLeaving
	states
)

// Fleet is how many replicas of a variant are in each state.
type Fleet struct {
	Count [states]int
	// Since is when the oldest was created, or stopped serving, that is pending or overdue.
	Since time.Time
	// Supply is how many serve or will in time.
	Supply int
	// Paused is how long the variant is still left alone.
	Paused time.Duration
	// halted is set when a rollout that is paused is why replicas have no pod.
	halted bool
	// Unplaceable is set when its replicas come to nothing: they fit nowhere, have no pod,
	// or passed their start-up deadline; and unhealthy also when their containers fail.
	Unplaceable, Unhealthy bool
	// slow is set when more than serve, and than one, take longer to start than was seen, and none
	// that started later was faster.
	slow bool
}

// Unplaced is the number of replicas that wait in vain for a node or a pod.
func (f *Fleet) Unplaced() int { return f.Count[StateUnschedulable] + f.Count[StateNoPod] }

// Hopeless is the number of replicas that hold a node and will not come up: their
// containers keep failing, or others of the variant took a third of the time.
func (v *Variant) Hopeless() int {
	f := &v.Fleet
	if v.In.Startup > 0 {
		return f.Count[StateCrashLooping] + f.Count[StateOverdue]
	}
	return f.Count[StateCrashLooping]
}

// Lost says which replicas do not come up, by state; nothing where all do.
func (f *Fleet) Lost() contract.Finding {
	c := &f.Count
	if !f.halted && !slices.ContainsFunc(c[StateUnschedulable:StateNoPod+1], func(n int) bool { return n > 0 }) {
		return contract.Finding{}
	}
	return contract.SaysLost.With(c[StateUnschedulable], c[StateCrashLooping], c[StateOverdue], c[stateNodeDown], c[StateNoPod], f.halted)
}

// LostTo is the reason for which they do not.
func (f *Fleet) LostTo() contract.Reason {
	switch {
	case f.halted:
		return contract.ReasonRolloutPaused
	case f.Unplaced() == 0:
		return contract.ReasonStartupOverdue
	}
	return contract.ReasonNoSlots
}

// Starts reports whether replicas start that count as supply.
func (f *Fleet) Starts() bool { return f.Supply > f.Count[StateServing] }

// FleetOf finds the state of each replica of the variant, and which of them are supply:
// what is past its deadline, or fits nowhere, is none, so that its demand goes elsewhere.
// Startup is how long a start takes; 0 means that nobody knows, or that it takes longer now.
func (v *Variant) FleetOf(startup time.Duration) Fleet {
	f := Fleet{}
	f.Count[StateServing] = v.In.Ready
	if !v.In.Exists() {
		return f
	}
	deadline, unseen := v.StartupDeadline(startup)
	v.Next.StartupWait = unseen
	failing := 0
	for i := range v.In.Starting {
		s := &v.In.Starting[i]
		at := v.stateOf(s, deadline)
		if at == StatePending && f.Count[at] >= v.In.Current-v.In.Ready {
			at = StateLeaving
		}
		if f.Since.IsZero() && (at == StatePending || at == StateOverdue) {
			f.Since = s.Since
		}
		f.Count[at]++
		if s.Failing {
			failing++
		}
	}
	awaiting := v.AwaitingPod()
	f.Count[StateNoPod] = v.In.NoPod() - awaiting
	f.Count[StatePending] += awaiting
	f.halted = v.In.Paused && f.Count[StateNoPod] > 0
	// One that does not come up is its own fault; all that start are the variant's.
	mostly := func(bad int) bool {
		return bad > 0 && bad == len(v.In.Starting) && bad >= v.In.Ready
	}
	f.slow = startup > 0 && f.Count[StateOverdue] > max(1, v.In.Ready) && !v.In.BegunAfter(f.Since)
	f.Unplaceable = f.Unplaced() > 0 || mostly(f.Count[StateCrashLooping]+f.Count[StateOverdue])
	f.Unhealthy = f.Unplaceable || mostly(failing)
	v.Next.Backoff = v.BackoffOf(&f)
	f.Paused = max(0, v.Next.Backoff.Until.Sub(v.Round.Snapshot.Time))
	f.Supply = min(v.In.Current, v.In.Ready+f.Count[StatePending])
	if f.Paused > 0 {
		// Nor do its others that wait for a node, as long as it is left alone.
		f.Supply = min(v.In.Current, max(v.In.Ready, v.In.Ready+f.Count[StatePending]-v.In.Unscheduled()+f.Count[StateUnschedulable]))
	}
	return f
}

// StartupDeadline is how long a starting replica of the variant is taken to come up. Where
// some were given up, and none came up since, the next ones have twice as long as those had.
func (v *Variant) StartupDeadline(startup time.Duration) (time.Duration, contract.StartupWait) {
	u := contract.StartupWait{Before: v.Old.StartupWait.Before}
	for i := range v.In.Starting {
		if s := &v.In.Starting[i]; !s.Unscheduled() && !s.Failing {
			u.Now = max(u.Now, v.Round.Snapshot.Time.Sub(s.Since))
		}
	}
	last, _ := v.Old.Before()
	switch {
	case v.In.BegunAfter(last.Until):
		u.Before = 0
	case u.Now < v.Old.StartupWait.Now:
		u.Before = max(u.Before, v.Old.StartupWait.Now)
	}
	least := v.Round.Policy.StartupDeadline
	if startup > 0 {
		least = max(deadlineStartups*startup, leastDeadline)
	}
	return max(least, signal.Again*u.Before), u
}

// stateOf is the state of one replica that does not serve. Where clusters grow, a node may
// take its time to come, however fast a replica starts once it is there.
func (v *Variant) stateOf(s *contract.Starting, deadline time.Duration) State {
	patience := min(v.Round.Policy.StartupDeadline, NodePatience)
	switch {
	case !s.Unschedulable:
		// Nobody has judged it, so the scheduler is down.
		patience = max(v.Round.Policy.StartupDeadline, deadline)
	case v.Round.Policy.Limited:
		patience = min(deadline, PlacementPatience)
	}
	crashPatience := NodePatience
	if v.In.Startup > 0 {
		crashPatience = max(time.Duration(crashStartups*float64(v.In.Startup)), leastDeadline)
	}
	switch waited := v.Round.Snapshot.Time.Sub(s.Since); {
	case s.Unscheduled() && waited > patience:
		return StateUnschedulable
	case s.Unscheduled():
		return StatePending
	case v.Round.Down[s.Node]:
		return stateNodeDown
	case s.Failing && waited > min(deadline, crashPatience):
		return StateCrashLooping
	case waited > deadline:
		return StateOverdue
	}
	return StatePending
}

// TrustAlone takes replicas for supply that passed a deadline where no other variant could
// take their place: to ask for them again would bring nothing sooner. Where nobody knows how
// long a start takes they are waited for, and where all take longer than was seen that is
// forgotten. It records what does not come up in time.
func (m *Model) TrustAlone() {
	able := func(v *Variant) bool { return v.Managed && !v.Fleet.Unhealthy && v.Fleet.Paused == 0 }
	healthy := 0
	for _, v := range m.Variants {
		if able(v) {
			healthy++
		}
	}
	for _, v := range m.Variants {
		alone := healthy == 0 || healthy == 1 && able(v)
		if alone && v.Fleet.slow {
			v.Fleet = v.FleetOf(0)
		}
		f := &v.Fleet
		if alone && v.In.Startup == 0 {
			f.Supply = min(v.In.Current, f.Supply+f.Count[StateOverdue])
			f.Count[StatePending] += f.Count[StateOverdue]
			f.Count[StateOverdue] = 0
		}
		if lost := f.Lost(); !lost.None() {
			v.Fact(contract.ReasonStartupOverdue, contract.SaysNotReady.With(lost))
		}
	}
}

// Rolling reports whether a rolling update is under way and moves on: one all of whose new
// pods do not come up waits for its user.
func (v *Variant) Rolling() bool {
	f := &v.Fleet
	return v.In.Rolling && (f.Count[StatePending] > 0 || f.Unplaced()+f.Count[StateCrashLooping]+f.Count[StateOverdue] == 0)
}

// NoPodSince is since when replicas have no pod. A larger number is a new start, and those
// that wait for their turn begin to be late when it has come.
func (v *Variant) NoPodSince() time.Time {
	before, _ := v.Old.Before()
	switch {
	case v.In.NoPod() == 0:
		return time.Time{}
	case before.Replicas < v.In.Current, v.waitTheirTurn():
		return v.Round.Snapshot.Time
	}
	since := v.Round.Since(v.Old.NoPod)
	for i := range v.In.Replicas {
		// One that came up late let the next one's turn come then.
		if came := v.In.Replicas[i].Since; v.In.Ordered && came.After(since) {
			since = came
		}
	}
	return since
}

// waitTheirTurn reports whether replicas without a pod get one once those that start now
// serve, and these are in time.
func (v *Variant) waitTheirTurn() bool {
	deadline, _ := v.StartupDeadline(v.In.Startup)
	late := func(s contract.Starting) bool { return v.stateOf(&s, deadline) != StatePending }
	return v.In.Ordered && len(v.In.Starting) > 0 && !slices.ContainsFunc(v.In.Starting, late)
}

// AwaitingPod is the number of replicas without a pod that may still get one: a write is
// not visible at once.
func (v *Variant) AwaitingPod() int {
	if v.Round.Snapshot.Time.Sub(v.Next.NoPod) > PodPatience+v.In.Settling {
		return 0
	}
	return v.In.NoPod()
}

// BackoffOf leaves a variant alone whose replicas wait in vain for a node or do not come
// up, and forgets that it did so when one came up, it has been well for a while, or the rolling
// update is over whose pods these were. Where there was no room for them, it is tried again once
// there is; where there was, and the scheduler refused them, it waits.
func (v *Variant) BackoffOf(f *Fleet) contract.Backoff {
	b, now := v.Old.Backoff, v.Round.Snapshot.Time
	known, read, full, well := b != (contract.Backoff{}), v.Unknown() == nil, v.Crowded, recovery
	if !read {
		well = unreadRecovery
	}
	over := b.Full && read && !full || !now.Before(b.Until) && now.Sub(b.Until) > well
	switch {
	case known && v.In.Ready > b.Ready, b.Rolling && !v.In.Rolling, over && !f.Unplaceable:
		return contract.Backoff{}
	case !f.Unplaceable:
		return b
	case now.Before(b.Until):
		// It is left alone from when they are given back.
		b.Until = now.Add(b.Pause)
		return b
	}
	pause := min(max(signal.Again*b.Pause, LeastPause), MostPause)
	full = full && f.Unplaced() > 0 && v.Next.Refused.IsZero()
	return contract.Backoff{Until: now.Add(pause), Pause: pause, Ready: v.In.Ready, Rolling: v.In.Rolling, Full: full}
}

// OneAtATime is the limit of a variant that was left alone, until one of its replicas
// holds a node: it is tried, not trusted, but for as many as served when it was.
func (v *Variant) OneAtATime(limit int) int {
	if v.Next.Backoff == (contract.Backoff{}) || v.Fleet.Paused > 0 || v.In.Unscheduled() < len(v.In.Starting) {
		return limit
	}
	return max(0, min(limit, max(1, v.Next.Backoff.Ready-v.In.Current))-v.In.Unscheduled()-v.In.NoPod())
}

// PausedDetail says that the variant is left alone, and for how long.
func (v *Variant) PausedDetail() contract.Finding {
	return contract.Clauses(v.PausedFor(), contract.SaysNextTry.With(v.Fleet.Paused.Round(time.Second)))
}

// PausedFor says why the variant is left alone.
func (v *Variant) PausedFor() contract.Finding {
	if v.Next.Backoff.Full {
		return contract.SaysFoundNoNode.With()
	}
	return contract.SaysFailedStarts.With()
}

// Starts reports whether replicas start that count as supply.
func (m *Model) Starts() bool {
	return slices.ContainsFunc(m.Variants, func(v *Variant) bool { return v.Fleet.Starts() })
}

// Alive is the number of replicas that do not wait in vain for a node, nor are on one that is
// not ready, nor dead.
func (m *Model) Alive() int {
	return signal.Count(m.Variants, func(v *Variant) int {
		return max(0, min(v.Target, max(v.Target, v.In.Current)-v.Fleet.Unplaced()-v.Hopeless()-v.Fleet.Count[stateNodeDown]-v.Load.Dead))
	})
}
