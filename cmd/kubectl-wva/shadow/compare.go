package shadow

import (
	"time"
)

// Sample is what the metrics said at one time.
type Sample struct {
	// Wanted and There are replicas: what the last decision wanted, and what was there.
	Wanted, There float64
	// Known says that both are.
	Known bool
	// Met is what share of the model's requests met the SLO, and Requests how many arrived each second;
	// MetKnown says that both are known.
	Met      Share
	Requests float64
	MetKnown bool
}

// Share is a share, 0 to 1, that is known to lie between two: servers count latencies in buckets.
type Share struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// Side is one of the two that are compared.
type Side struct {
	// ReplicaHours is the sum of replicas over time, Mean and Most their mean and maximum.
	ReplicaHours float64 `json:"replicaHours"`
	Mean         float64 `json:"meanReplicas"`
	Most         float64 `json:"mostReplicas"`
	// Cost is in the currency of spec.variantCost; nil where nobody gave a price.
	Cost *float64 `json:"cost,omitempty"`
	// Saturated is how many seconds fewer replicas served than were wanted.
	Saturated float64 `json:"saturatedSeconds"`
	// Changes is how often the number of replicas changed.
	Changes int `json:"changes"`
	// Attainment is the share of the model's requests that met the SLO; of the object it is an
	// estimate. Nil where it is not known, as without an SLO.
	Attainment *Share `json:"attainment,omitempty"`

	met      Share
	requests float64
}

// Comparison is what was there and what the object would have done.
type Comparison struct {
	// There is what was there, Object what the object's decisions asked for.
	There  Side `json:"there"`
	Object Side `json:"object"`
	// Known is the share of the time for which there are samples.
	Known float64 `json:"knownShare"`
}

// Compare compares the samples, one for each step of time. A replica costs so much per hour, where that is known,
// and serves the startup after it was asked for.
//
// What was there is saturated while it is less than what the decision wants. What the
// object would have had serves only as far as it was wanted throughout the startup before,
// so it is saturated while it wants more than that.
//
// The objective is the share of requests that the decisions size for. While the object would have had
// fewer replicas than it wants, no request of that time counts as met. With fewer than were there,
// no more count than were met and no more than the objective; with more than too few, the objective.
func Compare(samples []Sample, step, startup time.Duration, cost *float64, objective float64) Comparison {
	var c Comparison
	back := int((startup + step - 1) / step)
	known := 0
	var last *Sample
	for i := range samples {
		s := &samples[i]
		if !s.Known {
			continue
		}
		known++
		c.There.add(s.There, step, s.There < s.Wanted, last != nil && last.There != s.There)
		short := serving(samples[max(0, i-back):i+1]) < s.Wanted
		c.Object.add(s.Wanted, step, short, last != nil && last.Wanted != s.Wanted)
		if s.MetKnown {
			c.There.meets(s.Met, s.Requests)
			c.Object.meets(s.estimated(short, objective), s.Requests)
		}
		last = s
	}
	if known > 0 {
		hours := float64(known) * step.Hours()
		c.There.finish(hours, cost)
		c.Object.finish(hours, cost)
		c.Known = float64(known) / float64(len(samples))
	}
	return c
}

// serving is how many replicas were wanted throughout the samples.
func serving(samples []Sample) float64 {
	least := samples[len(samples)-1].Wanted
	for _, s := range samples {
		if s.Known {
			least = min(least, s.Wanted)
		}
	}
	return least
}

func (s *Side) add(replicas float64, step time.Duration, saturated, changed bool) {
	s.ReplicaHours += replicas * step.Hours()
	s.Most = max(s.Most, replicas)
	if saturated {
		s.Saturated += step.Seconds()
	}
	if changed {
		s.Changes++
	}
}

// estimated is the share that would have met the SLO with the replicas of the object.
func (s *Sample) estimated(short bool, objective float64) Share {
	met := s.Met
	switch {
	case short:
		return Share{}
	case s.Wanted < s.There:
		met.Least, met.Most = min(met.Least, objective), min(met.Most, objective)
	case s.Wanted > s.There:
		met.Least, met.Most = max(met.Least, objective), max(met.Most, objective)
	}
	return met
}

// meets counts requests of which a share met the SLO.
func (s *Side) meets(met Share, requests float64) {
	s.met.Least += met.Least * requests
	s.met.Most += met.Most * requests
	s.requests += requests
}

func (s *Side) finish(hours float64, cost *float64) {
	if s.requests > 0 {
		s.Attainment = &Share{Least: s.met.Least / s.requests, Most: s.met.Most / s.requests}
	}
	s.met, s.requests = Share{}, 0
	s.Mean = s.ReplicaHours / hours
	if cost != nil {
		sum := s.ReplicaHours * *cost
		s.Cost = &sum
	}
}
