package round

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// LookEvery is the time between two looks at the gateways' queues while a model
	// sleeps.
	LookEvery = time.Second
	// LookSeldom is the longest between the end of one look and the next while none
	// is answered. An address may be dead and the other have nothing to show yet, and its
	// first request is to be seen within 5 s all the same.
	LookSeldom = 2 * time.Second
	// WakeAgain is the time between two rounds for the same model while it sleeps on.
	WakeAgain = 5 * time.Second
)

// Sleepers are the models of which nothing is asked to run, and when to look at what
// the gateways queue for them. The zero value has none.
type Sleepers struct {
	models map[decision.ModelKey]sleeper
	// looking is set while a look is under way, due is when the next one may begin.
	looking bool
	due     time.Time
	// failing is set while looks fail, if only in part. Pause is the time from a look
	// that nobody answered to the next one; 0 while somebody does.
	failing bool
	pause   time.Duration
}

// sleeper is one model that sleeps.
type sleeper struct {
	// tried is when a round was last begun for it, and waits is set when requests waited
	// for it when that was last known.
	tried time.Time
	waits bool
}

// Next is how long the next look may wait; false means that there is none to come
// before something else happens.
func (s *Sleepers) Next(now time.Time) (time.Duration, bool) {
	return until(s.due, now), len(s.models) > 0 && !s.looking
}

// Begin notes that a look begins.
func (s *Sleepers) Begin(now time.Time) { s.looking, s.due = true, now.Add(LookEvery) }

// Look is how a look ended.
type Look int

const (
	// LookAnswered is one that all answered who were asked.
	LookAnswered Look = iota
	// LookInPart is one that some answered and others did not.
	LookInPart
	// LookFailed is one that nobody answered.
	LookFailed
)

// End notes how a look ended, and reports whether looks begin to fail, or fail no more.
// While some answer, those are looked at as often as ever.
func (s *Sleepers) End(now time.Time, look Look) (news bool) {
	failing := look != LookAnswered
	news = failing != s.failing
	s.looking, s.failing = false, failing
	if look != LookFailed {
		s.pause = 0
		return news
	}
	s.pause = min(max(2*s.pause, LookEvery), LookSeldom)
	s.due = now.Add(s.pause)
	return news
}

// Settle takes over which models sleep after a round. What is known of one is kept while it
// sleeps on.
func (s *Sleepers) Settle(asleep []decision.ModelKey) {
	models := make(map[decision.ModelKey]sleeper, len(asleep))
	for _, key := range asleep {
		models[key] = s.models[key]
	}
	s.models = models
}

// Target is one of a model's, which is there.
type Target struct {
	// Replicas is what it asks for.
	Replicas int
	// Wakes is set for one that we may wake.
	Wakes bool
}

// Asleep reports whether none of a model's targets asks for a replica, and there is one
// that we may wake.
func Asleep(targets []Target) bool {
	return !slices.ContainsFunc(targets, func(t Target) bool { return t.Replicas > 0 }) &&
		slices.ContainsFunc(targets, func(t Target) bool { return t.Wakes })
}

// Heard is what a look says of a model.
type Heard int

const (
	// HeardNothing is that nobody says whether requests wait.
	HeardNothing Heard = iota
	// HeardSilence is that none wait.
	HeardSilence
	// HeardRequests is that some wait.
	HeardRequests
)

// Call is a round that a sleeping model is worth.
type Call struct {
	Model decision.ModelKey
	// Begins is set when none waited before.
	Begins bool
}

// Calls are the sleeping models for which requests wait, sorted by namespace and ID. One
// that still sleeps although a round was held for it waits for a while before the next one.
func (s *Sleepers) Calls(now time.Time, heard func(decision.ModelKey) Heard) (calls []Call) {
	for _, model := range slices.SortedFunc(maps.Keys(s.models), byNamespace) {
		before := s.models[model]
		switch heard(model) {
		case HeardSilence:
			s.models[model] = sleeper{tried: before.tried}
		case HeardRequests:
			if now.Sub(before.tried) >= WakeAgain {
				calls = append(calls, Call{model, !before.waits})
				s.models[model] = sleeper{tried: now, waits: true}
			}
		}
	}
	return calls
}

func byNamespace(a, b decision.ModelKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
}
