package main

// Policy chooses a node for each pod. A policy serves one replay at a time.
type Policy interface {
	// Start begins a replay on an empty cluster.
	Start(c *Cluster, seed uint64)
	// Choose is where the pod goes; false when it fits nowhere.
	Choose(p *Pod, class int) (Choice, bool)
	// Placed tells what the node was before the pod that was just placed.
	Placed(node int, before *State)
}

// The policies, by the names that the results carry.
var policies = []struct {
	name string
	make func(s *Study) Policy
}{
	{"random", func(s *Study) Policy { return &randomPolicy{study: s} }},
	{"bestfit", func(s *Study) Policy { return &bestFit{study: s} }},
	{"gradient", func(s *Study) Policy { return newGradient(s) }},
	{"ours", func(s *Study) Policy { return newOurs(s) }},
}

// Curve is the mean allocation, in per cent of the devices, over the arrivals that
// round to each per cent arrived, from 0 to 130. Where no arrival rounds to a per cent
// it is the last allocation before.
type Curve [arrivals + 1]float64

// replay lets the stream arrive at an empty cluster. There are no departures and no
// second tries.
func replay(s *Study, stream Stream, seed uint64, policy Policy) Curve {
	c := newCluster(s, stream.Nodes)
	policy.Start(c, seed)
	var sum, last Curve
	var events [arrivals + 1]int
	arrived := int64(0)
	for _, i := range stream.Pods {
		p, class := &s.Pods[i], s.classOf[i]
		if choice, fits := policy.Choose(p, class); fits {
			before := c.Members[choice.Node].State
			c.place(p, &s.Classes[class], choice)
			policy.Placed(choice.Node, &before)
		}
		arrived += p.Demand()
		pct := (arrived*100 + c.Capacity/2) / c.Capacity
		last[pct] = 100 * float64(c.Allocated) / float64(c.Capacity)
		sum[pct] += last[pct]
		events[pct]++
	}
	var curve Curve
	allocated := 0.0
	for pct := range curve {
		curve[pct] = allocated
		if events[pct] > 0 {
			curve[pct] = sum[pct] / float64(events[pct])
			allocated = last[pct]
		}
	}
	return curve
}
