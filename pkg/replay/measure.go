package replay

import (
	"cmp"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// measure takes down what happens in a run.
type measure struct {
	stage *stage
	// requests, failed and met count requests; ttft and itl are in milliseconds.
	requests, failed, met int
	ttft, itl             []float32
	// since is when each replica that a node holds got it, by its name.
	since map[string]time.Duration
	// held is the time that replicas of each variant were held by nodes.
	held [][]time.Duration
	// last is the direction of the variant's latest change, 0 before the first.
	last          [][]int
	events, flips int
	unplaceable   int
	short         time.Duration
	// serving is room to count the replicas that serve in.
	serving  [][]int
	recorder *recorder
	tooLong  *TooLong
}

func newMeasure(s *stage) *measure {
	m := &measure{stage: s, since: map[string]time.Duration{}}
	for i := range s.scenario.Models {
		n := len(s.scenario.Models[i].Variants)
		m.held = append(m.held, make([]time.Duration, n))
		m.last = append(m.last, make([]int, n))
		m.serving = append(m.serving, make([]int, n))
	}
	if s.record {
		m.recorder = newRecorder(s)
	}
	return m
}

// itlOf is the mean time per further token in milliseconds; false for a request of one
// token.
func itlOf(o simulation.Outcome) (float64, bool) {
	if o.Output < 2 {
		return 0, false
	}
	return milliseconds(o.Finished-o.FirstToken) / float64(o.Output-1), true
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// outcome is told of every request.
func (m *measure) outcome(o simulation.Outcome) {
	slo := m.stage.scenario.Models[o.Model].SLO
	met := !o.Failed
	ttft, itl, further := 0.0, 0.0, false
	if !o.Failed {
		ttft = milliseconds(o.FirstToken - o.Arrived)
		met = slo.TTFT <= 0 || ttft <= float64(slo.TTFT)
		if itl, further = itlOf(o); further {
			met = met && (slo.ITL <= 0 || itl <= float64(slo.ITL))
		}
	}
	if m.recorder != nil {
		m.recorder.outcome(o, met, ttft, itl)
	}
	if o.Arrived < m.stage.scenario.Learning {
		return
	}
	m.requests++
	switch {
	case o.Failed:
		m.failed++
		m.tooLong = m.tooLong.note(m.stage.scenario, o)
	case further:
		m.itl = append(m.itl, float32(itl))
		fallthrough
	default:
		m.ttft = append(m.ttft, float32(ttft))
	}
	if met {
		m.met++
	}
}

// move is told of every step in the life of a replica.
func (m *measure) move(move simulation.Move) {
	switch move.Stage {
	case simulation.Placed:
		// One that starts again on its node was held all the time.
		if _, held := m.since[move.Replica]; !held {
			m.since[move.Replica] = move.At
		}
	case simulation.Gone:
		if from, held := m.since[move.Replica]; held {
			m.hold(move.Variant, from, move.At)
			delete(m.since, move.Replica)
		}
	case simulation.Created, simulation.Serving, simulation.Leaving, simulation.NotReady:
	}
	if m.recorder != nil {
		m.recorder.move(move)
	}
}

// hold counts the time that a node held a replica, to the end of the trace.
func (m *measure) hold(v simulation.VariantIndex, from, to time.Duration) {
	m.held[v.Model][v.Variant] += max(0, min(to, m.stage.length)-max(from, m.stage.scenario.Learning))
}

// spent is what the replicas have cost until now.
func (m *measure) spent(now time.Duration) float64 {
	sum := 0.0
	for i := range m.stage.scenario.Models {
		for v := range m.stage.scenario.Models[i].Variants {
			time := m.held[i][v]
			for _, r := range m.stage.world.Replicas(simulation.VariantIndex{Model: i, Variant: v}) {
				if from, held := m.since[r.Name]; held {
					time += max(0, now-max(from, m.stage.scenario.Learning))
				}
			}
			sum += time.Hours() * float64(m.stage.scenario.Models[i].Variants[v].Cost)
		}
	}
	return sum
}

// decision counts a change of the wanted replicas.
func (m *measure) decision(now time.Duration, v simulation.VariantIndex, from, to int, plan *decision.Plan) {
	direction, counts := cmp.Compare(to, from), now >= m.stage.scenario.Learning
	if counts {
		m.events++
	}
	if last := &m.last[v.Model][v.Variant]; *last != direction {
		if *last != 0 && counts {
			m.flips++
		}
		*last = direction
	}
	if m.recorder != nil {
		m.recorder.decision(now, v, from, to, plan)
	}
}

// beat looks at the world once a second.
func (m *measure) beat(now time.Duration) {
	if now >= m.stage.length {
		return
	}
	if now >= m.stage.scenario.Learning {
		m.unplaceable = max(m.unplaceable, m.stage.world.Unplaced())
		if m.lacking(now) {
			m.short += second
		}
	}
	if m.recorder != nil {
		m.recorder.beat(now)
	}
}

// lacking reports whether the replicas that serve some model could not keep its SLO at
// the mean load of the minute.
func (m *measure) lacking(now time.Duration) bool {
	at := int(now / minute)
	for i := range m.stage.scenario.Models {
		for v := range m.serving[i] {
			m.serving[i][v] = m.stage.world.Answering(simulation.VariantIndex{Model: i, Variant: v})
		}
		if m.stage.bound.Short(min(at, len(m.stage.load[i])-1), i, m.serving[i]) {
			return true
		}
	}
	return false
}

// finish is the result, once the run is over.
func (m *measure) finish(s *stage) (Result, Recording) {
	for i := range s.scenario.Models {
		for v := range s.scenario.Models[i].Variants {
			index := simulation.VariantIndex{Model: i, Variant: v}
			for _, r := range s.world.Replicas(index) {
				if from, held := m.since[r.Name]; held {
					m.hold(index, from, s.length)
				}
			}
		}
	}
	r := Result{
		Policy: s.play.policy, Parameters: s.policy.Parameters(), StartupSeconds: s.startup.Seconds(),
		Requests: m.requests, Failed: m.failed, TooLong: m.tooLong, ScaleEvents: m.events, Flips: m.flips,
		UnderProvisionedSeconds: m.short.Seconds(), UnplaceableReplicas: m.unplaceable,
		TTFT: percentilesOf(m.ttft), ITL: percentilesOf(m.itl), Dispersion: s.scatter, TraceDispersion: s.multiplied,
		LearningSeconds: s.scenario.Learning.Seconds(),
	}
	if m.requests > 0 {
		r.Attainment = rounded(float64(m.met)/float64(m.requests), 6)
	}
	for i := range s.scenario.Models {
		for v := range s.scenario.Models[i].Variants {
			variant, hours := &s.scenario.Models[i].Variants[v], m.held[i][v].Hours()
			r.ReplicaHours += hours
			r.GPUHours += hours * float64(variant.Request.Shape.Devices*max(1, variant.Request.Shape.Pods))
			r.Cost += hours * float64(variant.Cost)
			r.Unpriced = r.Unpriced || variant.Unpriced
		}
	}
	if s.bound.Cost > 0 {
		r.CostOverBound = rounded(r.Cost/s.bound.Cost, 4)
	}
	r.ReplicaHours, r.GPUHours, r.Cost = rounded(r.ReplicaHours, 6), rounded(r.GPUHours, 6), rounded(r.Cost, 6)
	if m.recorder == nil {
		return r, Recording{}
	}
	return r, m.recorder.finish()
}

// percentilesOf are by nearest rank: the smallest value that at least so many per cent
// of the values do not exceed. The values change their order.
func percentilesOf(values []float32) Percentiles {
	if len(values) == 0 {
		return Percentiles{}
	}
	// What the greatest rank leaves on its left is all that the others need.
	p99 := rankOf(values, len(values), 99)
	p95 := rankOf(values, rank(len(values), 99)+1, 95)
	return Percentiles{P50: rankOf(values, rank(len(values), 95)+1, 50), P95: p95, P99: p99}
}

// rank is the place of a percentile among so many sorted values.
func rank(values int, percent float64) int {
	return max(0, int(math.Ceil(percent/100*float64(values)))-1)
}

// rankOf is a percentile of the values, of which it moves the first ones so that none to
// the left of its place is greater and none to the right less.
func rankOf(values []float32, first int, percent float64) float64 {
	at := rank(len(values), percent)
	place(values[:first], at)
	return rounded(float64(values[at]), 3)
}

// place moves the value that belongs to a place of the sorted values there, and those that
// are not greater to its left (Hoare 1961). Sorting all of millions would take longer than
// what else a run measures.
func place(values []float32, at int) {
	for low, high := 0, len(values)-1; low < high; {
		pivot := middle(values[low], values[(low+high)/2], values[high])
		i, j := low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case at <= j:
			high = j
		case at >= i:
			low = i
		default:
			return
		}
	}
}

// middle is the second largest of three values.
func middle(a, b, c float32) float32 { return max(min(a, b), min(max(a, b), c)) }

func rounded(value float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(value*scale) / scale
}
