package replay

import (
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Bound is the clairvoyant lower bound: what the least costly schedule of whole
// replicas costs that knows all arrivals before. It bounds the cost of every schedule
//
//   - that serves, in every minute, the minute's mean rate within the SLO, as the
//     capacity model has it (Scenario.serves), with at least one replica of each model;
//   - whose replicas keep the bounds of their variants and fit on the cluster, as
//     package placement has it, all that serve at the same time together;
//   - that pays for a replica from the beginning of its start-up. What serves in the
//     first minute is there from the start and pays for no start-up.
//
// It is generous where that keeps it a lower bound: nodes do not fail, a replica that
// starts, or drains, takes no room from others, drains for nothing, and starts in the mean
// time. A minute that no replicas that fit can serve is no reason to give up: what counts
// then is the vector that serves the most.
//
// It bounds nobody who breaks the promise in some minutes: such a policy may cost less, and
// what it attains in all may be as much as that of the bound's schedule when it is played.
// BoundFront bounds what that costs.
//
// Where the numbers of replicas are small enough to look at all of them (searchable),
// Replicas is an optimal schedule and Cost what it costs. Else Replicas is a good one,
// Cost a relaxation that no schedule goes below, and Gap what lies between them: below
// one per cent for one model of hundreds of replicas, but tens where several models
// contend for the same nodes for much of a day.
type Bound struct {
	// Replicas are those that serve: Replicas[minute][model][variant]. They are kept
	// through gaps where that costs less than to start again.
	Replicas [][][]int
	// Cost is the lower bound.
	Cost float64
	// Gap is what Replicas cost above Cost; 0 where they are proven to be optimal.
	Gap float64
	// ReplicaHours and GPUHours are those of Replicas, start-ups included.
	ReplicaHours, GPUHours float64
	// Overloaded counts the minutes of all models in which no replicas that fit serve
	// the mean rate.
	Overloaded int

	// pays is what Replicas cost per hour: pays[minute][model].
	pays [][]float64
	load Load
	// serves is what one replica serves: serves[model][minute][variant].
	serves [][][]capacity.Rate
}

// Bound finds the lower bound for a load and a start-up time.
func (s *Scenario) Bound(load Load, startup time.Duration) (Bound, error) {
	if len(load) != len(s.Models) || len(load) == 0 {
		return Bound{}, fmt.Errorf("the load is of %d models; expected that of all %d of the scenario", len(load), len(s.Models))
	}
	for m := range load {
		if len(load[m]) == 0 || len(load[m]) != len(load[0]) {
			return Bound{}, fmt.Errorf("the load of model %s has %d minutes; expected as many as that of the others and at least one", s.Models[m].ID, len(load[m]))
		}
	}
	return s.bound(load, s.rates(load), startup)
}

// bound is the same with what one replica serves in each minute.
func (s *Scenario) bound(load Load, serves [][][]capacity.Rate, startup time.Duration) (Bound, error) {
	b := Bound{load: load, serves: serves}
	c, err := s.course(load, b.serves, startup)
	if err != nil {
		return Bound{}, err
	}
	plan := c.solve()
	b.Replicas = c.byModel(plan.replicas)
	paid := b.account(s, startup)
	b.Cost, b.Gap = paid, 0
	if !plan.optimal {
		b.Cost = min(plan.least, paid)
		b.Gap = paid - b.Cost
	}
	for t := range b.Replicas {
		for m := range b.Replicas[t] {
			if b.Short(t, m, b.Replicas[t][m]) {
				b.Overloaded++
			}
		}
	}
	return b, nil
}

// boundAfterLearning is the bound whose schedule is for the whole load, while what it
// costs is the least for the part of it that counts.
func (s *Scenario) boundAfterLearning(load Load, serves [][][]capacity.Rate, startup time.Duration) (Bound, error) {
	whole, err := s.bound(load, serves, startup)
	if err != nil || s.Learning == 0 {
		return whole, err
	}
	counted := make([][][]capacity.Rate, len(serves))
	for m := range serves {
		counted[m] = serves[m][s.Learning/minute:]
	}
	part, err := s.bound(load.from(s.Learning), counted, startup)
	if err != nil {
		return Bound{}, err
	}
	whole.Cost, whole.Gap = part.Cost, part.Gap
	whole.ReplicaHours, whole.GPUHours, whole.Overloaded = part.ReplicaHours, part.GPUHours, part.Overloaded
	return whole, nil
}

// Initial are the replicas of the first minute.
func (b Bound) Initial() [][]int { return b.Replicas[0] }

// CostAt is a model's part of Cost in a minute, per hour: what its Replicas cost, with
// those that start then, less the same share of all that is Gap.
func (b Bound) CostAt(minute, model int) float64 {
	if b.Gap == 0 {
		return b.pays[minute][model]
	}
	return b.pays[minute][model] * b.Cost / (b.Cost + b.Gap)
}

// Short reports whether so many serving replicas of a model's variants could not, by the
// capacity model, keep the SLO at the mean rate of a minute.
func (b Bound) Short(minute, model int, serving []int) bool {
	serves := 0.0
	for v, n := range serving {
		serves += float64(n) * float64(b.serves[model][minute][v])
	}
	return !enough(serves, float64(b.load[model][minute].Rate))
}

// fine is the relative difference below which two rates are equal.
const fine = 1e-9

// enough reports whether replicas that serve a rate do for what is needed.
func enough(serves, need float64) bool { return serves >= need*(1-fine) }

// account adds up what the replicas cost, and when: each from the beginning of its
// start-up.
func (b *Bound) account(s *Scenario, startup time.Duration) (cost float64) {
	minutes := b.load[0]
	b.pays = make([][]float64, len(minutes))
	for t := range b.pays {
		b.pays[t] = make([]float64, len(s.Models))
	}
	for t := range minutes {
		for m := range s.Models {
			for v := range s.Models[m].Variants {
				variant := &s.Models[m].Variants[v]
				hours := float64(b.Replicas[t][m][v]) * minutes[t].Length.Hours()
				b.pays[t][m] += float64(b.Replicas[t][m][v]) * float64(variant.Cost)
				if started := b.started(t, m, v); started > 0 {
					hours += float64(started) * startup.Hours()
					b.payStarts(t, m, startup, float64(started)*float64(variant.Cost))
				}
				cost += hours * float64(variant.Cost)
				b.ReplicaHours += hours
				if variant.Request != nil {
					b.GPUHours += hours * float64(variant.Request.Shape.Devices*max(1, variant.Request.Shape.Pods))
				}
			}
		}
	}
	return cost
}

// started is how many replicas serve from the beginning of a minute on.
func (b *Bound) started(t, model, variant int) int {
	if t == 0 {
		return 0
	}
	return max(0, b.Replicas[t][model][variant]-b.Replicas[t-1][model][variant])
}

// payStarts adds the price per hour of replicas that serve from minute t on to the
// minutes of their start-up.
func (b *Bound) payStarts(t, model int, startup time.Duration, price float64) {
	for at := t - 1; at >= 0 && startup > 0; at-- {
		length := b.load[0][at].Length
		part := min(startup, length)
		b.pays[at][model] += price * part.Seconds() / length.Seconds()
		startup -= part
	}
}
