package churn

import (
	"math/rand/v2"
	"slices"
)

// policy decides where replicas go and which of them leave. One policy serves one
// run.
type policy interface {
	// begin is called once in every step, before anything is placed.
	begin(w *world)
	// place is the node for one more replica of the variant, or -1 when none has
	// room.
	place(w *world, v *variant) int
}

// chooser decides which replicas leave.
type chooser interface {
	// victims are, for each variant of the world, the indexes into its nodes of as
	// many replicas as it has too many, all different.
	victims(w *world) [][]int
}

// sums is what a run adds up over its reported steps, in devices times steps.
type sums struct {
	wanted, pending, pendingThoughFree int64
	beside                             beside
}

// pct is a part of the demand in per cent.
func (s sums) pct(part int64) float64 {
	if s.wanted == 0 {
		return 0
	}
	return 100 * float64(part) / float64(s.wanted)
}

// add counts the replicas that are pending now. One is pending though devices are
// free when the nodes of its types have at least as many of them in sum as it wants.
func (s *sums) add(w *world) {
	for _, v := range w.variants {
		s.wanted += int64(v.target * v.kind.devices)
		pending := int64(v.missing() * v.kind.devices)
		if pending == 0 {
			continue
		}
		s.pending += pending
		if w.free(v) >= v.kind.devices {
			s.pendingThoughFree += pending
		}
	}
}

// Chance comes in streams of their own, so that every policy meets the same targets
// whatever it draws itself.
const (
	streamTargets = iota + 1
	streamOrder
	streamVictims
	streamPolicy
)

func stream(seed, which uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, which)) }

// run plays a scenario at a load in per cent. Every step sets targets, removes what is
// too many, then places what is missing in random order; what finds no room is tried
// again in the next step.
func run(s *scenario, loadPct int, by player, seed uint64) sums {
	targets, order := stream(seed, streamTargets), stream(seed, streamOrder)
	w := newWorld(s, loadPct, targets)
	p, c := by.policy(w, stream(seed, streamPolicy)), by.chooser(stream(seed, streamVictims))
	total := sums{}
	for t := range s.steps {
		for _, v := range w.variants {
			v.target = v.wave.target(t, targets)
		}
		leave(w, c)
		place(w, p, order)
		if t >= s.warmUp {
			total.add(w)
		}
	}
	total.beside = w.beside
	return total
}

// leave removes what is too many.
func leave(w *world, c chooser) {
	for i, victims := range c.victims(w) {
		// From the back, because stop moves the last replica into the gap.
		slices.Sort(victims)
		for _, victim := range slices.Backward(victims) {
			w.stop(w.variants[i], victim)
		}
	}
}

// place tries to place what is missing.
func place(w *world, p policy, chance *rand.Rand) {
	var queue []*variant
	for _, v := range w.variants {
		for range v.missing() {
			queue = append(queue, v)
		}
	}
	chance.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	p.begin(w)
	for _, v := range queue {
		if node := p.place(w, v); node >= 0 {
			w.start(v, node)
		}
	}
}
