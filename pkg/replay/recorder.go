package replay

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// mostSamples is about how many samples a recording has: more than a picture shows.
const mostSamples = 720

// recorder keeps the course of a run.
type recorder struct {
	stage *stage
	out   Recording
	// latencies are those of the requests that arrived within each step, by model.
	latencies [][]latencies
}

type latencies struct{ ttft, itl []float32 }

// stepOf is the time between two samples: whole tens of seconds.
func stepOf(length time.Duration) time.Duration {
	step := (length/mostSamples + 10*time.Second - 1).Truncate(10 * time.Second)
	return max(step, 10*time.Second)
}

func newRecorder(s *stage) *recorder {
	r := &recorder{stage: s, out: Recording{
		Policy: s.play.policy, Startup: s.startup, Length: s.length, Step: stepOf(s.length),
		Models: make([]RecordedModel, len(s.scenario.Models)),
	}}
	steps := int((s.length + r.out.Step - 1) / r.out.Step)
	for i := range s.scenario.Models {
		model := &s.scenario.Models[i]
		m := RecordedModel{ID: model.ID, SLO: model.SLO, Samples: make([]Sample, steps)}
		for _, v := range model.Variants {
			m.Variants = append(m.Variants, RecordedVariant{
				Name: v.Name, Accelerator: v.Request.Shape.Accelerator, Devices: v.Request.Shape.Devices, Cost: v.Cost, Unpriced: v.Unpriced,
				Wanted: make([]int, steps), Ready: make([]int, steps),
			})
		}
		r.out.Models[i] = m
		r.latencies = append(r.latencies, make([]latencies, steps))
	}
	for i := range s.scenario.Cluster.Nodes {
		n := &s.scenario.Cluster.Nodes[i]
		r.out.Nodes = append(r.out.Nodes, RecordedNode{
			Name: n.Name, Accelerator: n.Accelerator, Devices: n.Allocatable.Devices, Others: n.Allocatable.Devices - n.Free.Devices,
		})
	}
	return r
}

func (r *recorder) outcome(o simulation.Outcome, met bool, ttft, itl float64) {
	at := int(o.Arrived / r.out.Step)
	if at >= len(r.latencies[o.Model]) {
		return
	}
	sample := &r.out.Models[o.Model].Samples[at]
	sample.Requests++
	if met {
		sample.Met++
	}
	if o.Failed {
		return
	}
	l := &r.latencies[o.Model][at]
	l.ttft = append(l.ttft, float32(ttft))
	if o.Output > 1 {
		l.itl = append(l.itl, float32(itl))
	}
}

func (r *recorder) move(m simulation.Move) { r.out.Moves = append(r.out.Moves, m) }

func (r *recorder) decision(now time.Duration, v simulation.VariantIndex, from, to int, plan *decision.Plan) {
	in := &r.stage.scenario.Models[v.Model]
	d := RecordedDecision{At: now, Variant: in.Variants[v.Variant].Name, From: from, To: to}
	if plan != nil {
		for i := range plan.Models {
			for j := range plan.Models[i].Variants {
				p := &plan.Models[i].Variants[j]
				if p.Key == (decision.Key{Namespace: in.Namespace, Name: d.Variant}) {
					d.Reason, d.Message, d.Steps = p.Reason, p.Message, slices.Clone(p.Steps)
				}
			}
		}
	}
	r.out.Decisions = append(r.out.Decisions, d)
}

// beat samples the replicas at the last second of each step.
func (r *recorder) beat(now time.Duration) {
	if (now+second)%r.out.Step != 0 && now+second < r.stage.length {
		return
	}
	at := int(now / r.out.Step)
	for i := range r.out.Models {
		m := &r.out.Models[i]
		for v := range m.Variants {
			index := simulation.VariantIndex{Model: i, Variant: v}
			held := 0
			for _, replica := range r.stage.world.Replicas(index) {
				if replica.Answers() {
					m.Variants[v].Ready[at]++
				}
				if replica.Node >= 0 {
					held++
				}
			}
			m.Variants[v].Wanted[at] = r.stage.world.Wanted(index)
			m.Samples[at].Cost += float64(held) * float64(m.Variants[v].Cost)
		}
		m.Samples[at].Bound = r.stage.bound.CostAt(min(int(now/minute), len(r.stage.load[i])-1), i)
	}
}

func (r *recorder) finish() Recording {
	for i := range r.latencies {
		for at := range r.latencies[i] {
			sample, l := &r.out.Models[i].Samples[at], &r.latencies[i][at]
			sample.TTFT, sample.ITL = percentilesOf(l.ttft).P95, percentilesOf(l.itl).P95
			sample.Cost = rounded(sample.Cost, 3)
		}
	}
	slices.SortStableFunc(r.out.Moves, func(a, b simulation.Move) int { return cmp.Compare(a.At, b.At) })
	return r.out
}
