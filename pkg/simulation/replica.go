package simulation

import (
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// replica is one replica and its engine, which it has from when it serves.
type replica struct {
	Replica
	variant *variant
	// ordinal is its place among all replicas of the world, number that among those of
	// its variant.
	ordinal, number int
	engine          *Engine
	// next is a time before which its engine need not be asked; never without one.
	next time.Duration
	// serves is when it comes to serve, deadline when it must be gone.
	serves, deadline time.Duration
	// inFlight is the number of requests that it has, load that over its weight.
	inFlight int
	load     float64
	// sums are what the events say; its engine knows the rest.
	sums Metrics
}

// Scale sets how many replicas of a variant are wanted. Of those that have to go, the
// victims go first, in their order; names of no replica that could go are of no
// account. The others go in the order of Kubernetes.
func (w *World) Scale(v VariantIndex, replicas int, victims []string) {
	of := w.variant(v)
	of.wanted = max(replicas, 0)
	for of.active < of.wanted {
		w.create(of)
	}
	if surplus := of.active - of.wanted; surplus > 0 {
		for _, r := range w.victims(of, victims)[:surplus] {
			w.leave(r, w.options.Drain)
		}
		w.clear()
	}
	w.place()
	w.plan()
	w.Advance(w.now)
}

// Wanted is how many replicas of a variant are wanted.
func (w *World) Wanted(v VariantIndex) int { return w.variant(v).wanted }

// Replicas are the replicas of a variant that are not gone, in order of creation,
// which is also that of their names.
func (w *World) Replicas(v VariantIndex) []Replica {
	return w.Asked(v, func(*Replica) bool { return true })
}

// Asked are those of Replicas alone that are wanted. What is shown to say so has no metrics,
// which take time, and must not be changed.
func (w *World) Asked(v VariantIndex, wanted func(*Replica) bool) []Replica {
	of := w.variant(v)
	var replicas []Replica
	for _, r := range w.live {
		if r.variant == of && wanted(&r.Replica) {
			replicas = append(replicas, r.said())
		}
	}
	return replicas
}

// Answering is how many replicas of a variant answer.
func (w *World) Answering(v VariantIndex) int {
	of, n := w.variant(v), 0
	for _, r := range w.live {
		if r.variant == of && r.Answers() {
			n++
		}
	}
	return n
}

func (w *World) variant(v VariantIndex) *variant { return &w.models[v.Model].variants[v.Variant] }

// said is the replica as its metrics endpoint shows it.
func (r *replica) said() Replica {
	said := r.Replica
	if r.engine == nil {
		return said
	}
	state := r.engine.State()
	said.Metrics = r.sums
	said.Metrics.Running, said.Metrics.Waiting = state.Running, state.Waiting
	said.Metrics.Tokens += r.engine.decoded
	said.Metrics.BetweenTokens += r.engine.between
	said.Metrics.KVUsed, said.Metrics.KVCapacity = state.KVUsed, state.KVCapacity
	return said
}

// move brings a replica to a stage and tells of it.
func (w *World) move(r *replica, stage Stage) {
	r.Stage = stage
	if w.options.Moved != nil {
		w.options.Moved(Move{At: w.now, Variant: r.variant.index, Replica: r.Name, Stage: stage, Node: r.Node})
	}
}

// create makes a replica that waits for a node.
func (w *World) create(v *variant) {
	r := &replica{
		Replica: Replica{
			Name: fmt.Sprintf("%s-%05d", v.Name, w.created), Node: -1, Created: w.now, Placed: -1, Ready: -1,
		},
		variant: v, ordinal: w.created, number: v.created, next: never, deadline: never,
	}
	w.created++
	w.unplaced++
	v.created++
	v.active++
	v.unplaced++
	w.live = append(w.live, r)
	w.move(r, Created)
}

// start has a replica start on its node.
func (w *World) start(r *replica) {
	r.Placed = w.now
	if w.dead[r.Node] {
		// Nobody is there to start it.
		r.Silent, r.serves = true, never
		w.move(r, Placed)
		return
	}
	r.serves = later(w.now, w.options.Startup.draw(w.options.Seed, r.variant.index, r.number))
	w.move(r, Placed)
}

// serve lets a replica take requests, first those that wait for one.
func (w *World) serve(r *replica) {
	engine, err := r.variant.engine()
	if err != nil {
		// NewWorld has made one with the same options.
		panic(err)
	}
	r.engine, r.Ready = engine, w.now
	w.move(r, Serving)
	m := &w.models[r.variant.index.Model]
	at, _ := slices.BinarySearchFunc(m.serving, r.ordinal, func(r *replica, ordinal int) int { return r.ordinal - ordinal })
	m.serving = slices.Insert(m.serving, at, r)
	for m.queue.count > 0 {
		w.dispatch(m, m.queue.pop())
	}
}

// leave takes a replica out: at once when it serves nobody, else when its requests are
// done or a time is over. The caller clears up.
func (w *World) leave(r *replica, within time.Duration) {
	r.variant.active--
	if !r.Answers() {
		w.end(r)
		return
	}
	w.withdraw(r)
	r.deadline = later(w.now, within)
	w.move(r, Leaving)
	if r.inFlight == 0 || r.deadline <= w.now {
		w.end(r)
	}
}

// withdraw has the router send no more requests to a replica.
func (w *World) withdraw(r *replica) {
	m := &w.models[r.variant.index.Model]
	m.serving = slices.DeleteFunc(m.serving, func(o *replica) bool { return o == r })
}

// end takes a replica off its node. What it still has, has failed. The caller clears
// up.
func (w *World) end(r *replica) {
	if r.engine != nil {
		w.abandon(r)
		w.tell()
	}
	w.release(r)
	w.move(r, Gone)
	r.next = never
}

// abandon has the requests of a replica fail, in the order in which it has them.
func (w *World) abandon(r *replica) {
	r.engine.drop(func(request Request) { w.fail(r.variant.index, request) })
	r.sums.Prefilling = 0
	r.settle(-r.inFlight)
	r.next = never
}

// clear forgets replicas that are gone and gives their room to those that wait.
func (w *World) clear() {
	w.live = slices.DeleteFunc(w.live, func(r *replica) bool { return r.Stage == Gone })
	w.place()
}

// settle changes how many requests the replica has.
func (r *replica) settle(by int) {
	r.inFlight += by
	r.load = float64(r.inFlight) / r.variant.weight
}

// observe adds up what the metrics of a model server see of an event.
func (r *replica) observe(e *Event) {
	switch e.Kind {
	case FirstToken:
		r.sums.FirstTokens++
		r.sums.Prefilling -= e.Request.Input
		r.sums.FirstToken += e.At - e.Times.Arrived
	case Resumed:
		r.sums.Tokens++
		r.sums.BetweenTokens += e.Gap
	case Finished:
		r.sums.Finished++
		if e.misses(r.variant.slo) {
			r.sums.Missed++
		}
		r.sums.Input += uint64(e.Request.Input)
		r.sums.Output += uint64(e.Request.Output)
		r.sums.InService += e.At - e.Times.Started
	}
}

// misses reports whether a request that ended took longer than promised, from its arrival
// at the replica to its first token or for each further one in the mean.
func (e *Event) misses(slo capacity.SLO) bool {
	longer := func(took time.Duration, tokens int, promised capacity.Milliseconds) bool {
		return promised > 0 && took > time.Duration(float64(promised)*float64(tokens)*float64(time.Millisecond))
	}
	return longer(e.Times.FirstToken-e.Times.Arrived, 1, slo.TTFT) || e.Request.Output > 1 && longer(e.At-e.Times.FirstToken, e.Request.Output-1, slo.ITL)
}

// engine makes the engine of one replica.
func (v *variant) engine() (*Engine, error) {
	return NewEngine(Options{Profile: v.Profile, TokenBudget: v.TokenBudget, PrefixCache: v.PrefixCache, PrefixHits: v.PrefixHits})
}
