package decision

import (
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A variant whose replicas found no node is left alone for leastPause, and twice as
// long each time that it happens again within recovery of the end of a pause.
const (
	leastPause = time.Minute
	mostPause  = 16 * time.Minute
	recovery   = 10 * time.Minute
)

// backOff leaves a variant alone whose replicas wait in vain for a node, and forgets
// that it did so when the variant has been well for a while.
func (r *round) backOff(v *variant) {
	b, known := r.old.Backoffs[v.key]
	now := r.snapshot.Time
	switch {
	case known && now.Before(b.Until):
	case v.lost > 0:
		b = b.again(now)
	case !known || now.Sub(b.Until) > recovery:
		return
	}
	r.next.Backoffs[v.key] = b
	if now.Before(b.Until) {
		v.paused = b.Until.Sub(now)
	}
}

// atMost keeps a variant that was left alone to one replica at a time, until one holds
// a node: it is tried, not trusted. A negative limit is none.
func (r *round) atMost(v *variant, limit int) int {
	if _, tried := r.next.Backoffs[v.key]; !tried || v.paused > 0 || v.in.waiting() < len(v.in.Starting) {
		return limit
	}
	if limit < 0 || limit > 1 {
		limit = 1
	}
	return max(0, limit-v.in.waiting()-v.in.missing())
}

// again begins the next pause.
func (b Backoff) again(now time.Time) Backoff {
	pause := min(max(2*b.Pause, leastPause), mostPause)
	return Backoff{Until: now.Add(pause), Pause: pause}
}

// deny remembers the rate that a variant would have served for less, had there been
// room for it: it has its turn when there is.
func (r *round) deny(v *variant, rate capacity.Rate, why string) {
	r.next.Denied[v.key] = rate
	if why != "" {
		v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, why})
	}
}

// comeBack gives variants that were denied for lack of room their turn, now that
// there is some, in the place of dearer ones: those go when the scale-down's window
// allows it. It reports whether any did.
func (r *round) comeBack(m *model) bool {
	came := false
	m.each(func(v *variant) {
		if v.serves <= 0 && r.old.Denied[v.key] > 0 {
			// Whether it is the cheaper one will show.
			r.deny(v, r.old.Denied[v.key], "")
			return
		}
		rate := min(r.old.Denied[v.key], m.servedDearer(v))
		if rate <= 0 {
			return
		}
		crowded := r.crowded(v)
		if came || crowded != "" || v.paused > 0 || r.unknown(v) != nil || m.evidence != evidenceFull {
			r.deny(v, rate, crowded)
			return
		}
		n := r.place(v.in, m.saving(v, rate, r.fitting(v)))
		if n == 0 {
			r.deny(v, rate, "")
			return
		}
		came = true
		v.step(StageAllocation, v.target+n, ReasonRoomAppeared, "there is room now: %s in the place of dearer ones", plural(n, "replica", "replicas"))
	})
	return came
}

// dearer lists the variants with a higher cost per rate than v that have replicas,
// the dearest first.
func (m *model) dearer(v *variant) []*variant {
	return slices.DeleteFunc(m.byUnitCost(), func(o *variant) bool {
		return o == v || o.target == 0 || o.serves <= 0 || o.unitCost() <= v.unitCost()
	})
}

// servedDearer is the rate that the dearer variants serve.
func (m *model) servedDearer(v *variant) capacity.Rate {
	sum := capacity.Rate(0)
	for _, o := range m.dearer(v) {
		sum += o.serves * capacity.Rate(min(o.target, o.supply))
	}
	return sum
}

// saving is how many replicas of v, of at most limit (negative: no bound) and no more
// than serve the rate, cost less than the dearer ones that can go when they are there.
func (m *model) saving(v *variant, rate capacity.Rate, limit int) int {
	n := int(math.Ceil(float64(rate/v.serves) - 1e-9))
	if limit >= 0 {
		n = min(n, limit)
	}
	total := capacity.Rate(0)
	for _, o := range m.variants {
		if o.exists() {
			total += o.serves * capacity.Rate(min(o.target, o.supply))
		}
	}
	net := func(n int) capacity.Cost {
		left, saved := total+v.serves*capacity.Rate(n), -v.in.Cost*capacity.Cost(n)
		for _, o := range m.dearer(v) {
			for gone := max(o.policy.Min, o.target-o.supply); gone < o.target && left-o.serves >= lowerHeadroom*m.required; gone++ {
				left -= o.serves
				saved += o.in.Cost
			}
		}
		return saved
	}
	best, most := 0, net(0)
	for k := 1; k <= n; k++ {
		if got := net(k); got > most+1e-9 {
			best, most = k, got
		}
	}
	return best
}

// pausedDetail says that the variant is left alone.
func (v *variant) pausedDetail() string {
	return fmt.Sprintf("its replicas got no node, or no pod, lately; it is tried again in %s", v.paused.Round(time.Second))
}
