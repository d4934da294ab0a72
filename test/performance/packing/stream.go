package main

import "math/rand/v2"

// arrivals is how much of the cluster's devices a stream asks for in sum, in per cent.
const arrivals = 130

// Stream is one seed's order: indexes of pods as they arrive, and indexes of nodes in
// the order that breaks ties.
type Stream struct {
	Pods  []int
	Nodes []int
}

// stream follows the study: the pods, by name, are shuffled; more are drawn with
// replacement until the next one would ask for more than 130 % of the devices. Of a
// list that asks for more than that by itself random pods go instead, which in a
// shuffled list are the last ones.
func (s *Study) stream(seed uint64) Stream {
	random := rand.New(rand.NewPCG(seed, 0x0b5e55ed))
	order := random.Perm(len(s.Pods))
	budget := s.capacity * arrivals / 100
	for _, p := range order {
		budget -= s.Pods[p].Demand()
	}
	if budget < 0 {
		for budget < 0 {
			last := len(order) - 1
			budget += s.Pods[order[last]].Demand()
			order = order[:last]
		}
		return Stream{Pods: order, Nodes: random.Perm(len(s.Nodes))}
	}
	for {
		p := random.IntN(len(s.Pods))
		if budget -= s.Pods[p].Demand(); budget < 0 {
			return Stream{Pods: order, Nodes: random.Perm(len(s.Nodes))}
		}
		order = append(order, p)
	}
}
